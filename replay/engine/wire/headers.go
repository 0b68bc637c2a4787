package wire

import (
	"fmt"
	"slices"
	"strings"
)

// Headers are the user's own, sent with every request. They replace what the engine or the log would send.
type Headers struct {
	list     []header
	host     string
	replaced []string
}

type header struct{ name, value string }

// ParseHeaders reads 'Name: value' lines; an empty value takes a header away. The error names all that are wrong.
func ParseHeaders(lines []string) (*Headers, error) {
	h := &Headers{}
	var wrong []string
	for _, line := range lines {
		name, value, found := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case !found || !isToken(name):
			wrong = append(wrong, fmt.Sprintf("%q is not a header: write 'Name: value'", line))
		case !isFieldValue(value):
			wrong = append(wrong, fmt.Sprintf("the value of header %s has control characters", name))
		case framing[strings.ToLower(name)]:
			wrong = append(wrong, fmt.Sprintf("header %s is set by the connection and cannot be replaced", name))
		case strings.EqualFold(name, "Host"):
			if value == "" || !isHost(value) {
				wrong = append(wrong, fmt.Sprintf("%q is not a host name for the Host header", value))
			}
			h.host = value
		default:
			h.list = append(h.list, header{name, value})
			h.replaced = append(h.replaced, strings.ToLower(name))
		}
	}
	if wrong != nil {
		return nil, fmt.Errorf("--header: %s", strings.Join(wrong, "; "))
	}
	return h, nil
}

// framing are the headers that would change where a message ends.
var framing = map[string]bool{
	"connection": true, "content-length": true, "transfer-encoding": true, "upgrade": true,
	"keep-alive": true, "te": true, "trailer": true, "proxy-connection": true, "expect": true,
}

// Digests returns the headers by name in small letters, each value as its digest, since it may be a secret. The values of
// a name that was given more than once are joined by line feeds.
func (h *Headers) Digests(digest func(text []byte) string) map[string]string {
	values := map[string][]string{}
	for i, one := range h.list {
		values[h.replaced[i]] = append(values[h.replaced[i]], one.value)
	}
	if h.host != "" {
		values["host"] = []string{h.host}
	}
	digests := map[string]string{}
	for name, given := range values {
		digests[name] = digest([]byte(strings.Join(given, "\n")))
	}
	return digests
}

func (h *Headers) replaces(name string) bool {
	return len(h.replaced) > 0 && slices.Contains(h.replaced, strings.ToLower(name))
}
