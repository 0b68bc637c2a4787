// The user's own headers: parsed, checked, and in place of those of the log.

package wire

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Headers are the user's own, sent with every request. They replace what the engine or the log would send.
type Headers struct {
	list     []header
	host     string
	replaced []string
	client   []string
}

type header struct{ name, value string }

// HeaderProblem is what is wrong with one line of headers. It does not repeat the line, which may hold a secret.
type HeaderProblem struct {
	Line int // from 0
	Why  string
}

// ParseHeaders reads 'Name: value' lines; an empty value takes a header away. It returns all problems.
func ParseHeaders(lines []string) (*Headers, []HeaderProblem) {
	h := &Headers{}
	var wrong []HeaderProblem
	for i, line := range lines {
		name, value, found := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		why := ""
		switch {
		case !found || !isToken(name):
			why = "is not a header: write 'Name: value'"
		case !isFieldValue(value):
			why = "has control characters in its value: remove them"
		case framing[strings.ToLower(name)]:
			why = fmt.Sprintf("sets %s, which the connection sets itself: leave it out", name)
		case strings.EqualFold(name, "Host"):
			if value == "" || !IsAuthority(value) {
				why = "is not a host name: write 'Host: NAME' or 'Host: NAME:PORT'"
			}
			h.host = value
		default:
			h.list = append(h.list, header{name, value})
			h.replaced = append(h.replaced, strings.ToLower(name))
		}
		if why != "" {
			wrong = append(wrong, HeaderProblem{i, why})
		}
	}
	return h, wrong
}

// IsAuthority reports whether a text can be a Host header. Brackets are only around an IPv6 address (RFC 3986, 3.2.2).
func IsAuthority(host string) bool {
	if !isHost(host) {
		return false
	}
	if !strings.ContainsAny(host, "[]") {
		return true
	}
	address, port, found := strings.Cut(strings.TrimPrefix(host, "["), "]")
	ip, err := netip.ParseAddr(address)
	return found && err == nil && ip.Is6() && host[0] == '[' && (port == "" || port[0] == ':') && !strings.ContainsAny(port, "[]")
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

// Host returns the Host header among them, or "".
func (h *Headers) Host() string { return h.host }

// Each calls use with every header that has a value, except Host.
func (h *Headers) Each(use func(name, value string)) {
	for _, one := range h.list {
		if one.value != "" {
			use(one.name, one.value)
		}
	}
}

// clientHeaders are those that proxies name their clients in.
var clientHeaders = []string{"X-Forwarded-For", "X-Real-IP"}

// NameClients sends the address of the log's client in these headers, too.
func (h *Headers) NameClients(names []string) error {
	for _, name := range names {
		at := slices.IndexFunc(clientHeaders, func(known string) bool { return strings.EqualFold(known, name) })
		switch {
		case at < 0:
			return fmt.Errorf("%q is not a header for a client: give %s", name, strings.Join(clientHeaders, " or "))
		case h.Sets(name):
			return fmt.Errorf("%s is among your own headers, too: leave it out there", clientHeaders[at])
		case !slices.Contains(h.client, clientHeaders[at]):
			h.client = append(h.client, clientHeaders[at])
		}
	}
	return nil
}

// ClientAddress returns a text of the log as an IP address that may be sent; "" where it is not one.
func ClientAddress(text []byte) string {
	address, err := netip.ParseAddr(string(text))
	if err != nil || address.Zone() != "" {
		return ""
	}
	return address.String()
}

// Sets reports whether a header is among them, also one that takes it away.
func (h *Headers) Sets(name string) bool {
	return len(h.replaced) > 0 && slices.Contains(h.replaced, strings.ToLower(name))
}
