package same

import (
	"crypto/sha256"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// Answer is what one side answered, once.
type Answer struct {
	Status    int
	Headers   map[string]string // those that are compared, by name as in comparedHeaders; "" where one is not there
	MediaType string            // text/html
	Sent      int64             // bytes of the body as they came
	Bytes     int64             // bytes of the body, unpacked
	SHA256    [sha256.Size]byte // of the body, unpacked, in which the side's own links stand as they are
	Kept      []byte            // the body, unpacked, up to keptBytes of it
	Packed    bool              // it came in a coding that cannot be unpacked, and is compared as it came
	Err       error             // why there is no whole answer; nothing else holds then, but perhaps Status
}

// keptBytes is how much of a body is held. What goes beyond counts in sums only.
const keptBytes = 4 << 20

// isWhole reports whether the whole body is held.
func (a *Answer) isWhole() bool { return a.Bytes == int64(len(a.Kept)) }

// isText reports whether what varies by itself in a body can be distinguished from what does not. All else, images
// above all, is compared byte by byte.
func (a *Answer) isText() bool {
	kind := a.MediaType
	switch {
	case a.Packed:
		return false
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "+json"), kind == "":
		return true
	case strings.HasSuffix(kind, "+xml"):
		return !strings.HasPrefix(kind, "image/")
	}
	switch kind {
	case "application/json", "application/xml", "application/javascript", "application/x-javascript", "application/ld+json":
		return true
	}
	return false
}

// comparedHeaders are the headers by which two answers differ for a visitor. Last-Modified and ETag are compared as
// present or not: they decide whether a browser's cache can ask again, but a good copy may have new times, and some
// servers make an ETag of the inode. Dates, cookies, and what names the server or a cache are not part of a page.
var comparedHeaders = []string{
	"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Cache-Control", "Location", "Link",
	"Vary", "WWW-Authenticate", "X-Robots-Tag", "Access-Control-Allow-Origin", "Last-Modified", "ETag",
}

// onlyPresent are the headers of which it is compared whether they are there.
var onlyPresent = map[string]bool{"Last-Modified": true, "ETag": true}

// headersOf returns the compared headers of an answer, spelled alike. The values of those in exact are compared, too.
func headersOf(from http.Header, own *ownLinks, exact bool) map[string]string {
	out := map[string]string{}
	for _, name := range comparedHeaders {
		value := strings.Join(from.Values(name), ", ")
		switch {
		case value == "":
		case onlyPresent[name] && !(exact && name == "Last-Modified"):
			value = "present"
		case name == "Content-Type":
			value = spelled(value)
		case name == "Cache-Control" || name == "Vary":
			value = sortedList(value)
		case name == "Location":
			value = fromRoot(string(own.normalise([]byte(value))))
		default:
			value = string(own.normalise([]byte(value)))
		}
		out[name] = value
	}
	return out
}

// spelled returns a Content-Type in small letters with one space between its parts.
func spelled(value string) string {
	kind, parameters, err := mime.ParseMediaType(value)
	if err != nil {
		return value
	}
	if charset, ok := parameters["charset"]; ok {
		parameters["charset"] = strings.ToLower(charset)
	}
	return mime.FormatMediaType(kind, parameters)
}

// sortedList returns a list with commas between its parts in one order.
func sortedList(value string) string {
	parts := strings.Split(strings.ToLower(value), ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// fromRoot returns a location on the side itself without its address: /path and the whole URL lead to one place.
func fromRoot(location string) string {
	for _, own := range []string{"site://" + ownSite, "//" + ownSite} {
		if rest, ok := strings.CutPrefix(location, own); ok {
			if rest == "" {
				return "/"
			}
			return rest
		}
	}
	return location
}
