package wire

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseHeadersSaysAllThatIsWrong(t *testing.T) {
	rows := []struct{ why, line, says string }{
		{"a line without a colon", "hunter2", "is not a header"},
		{"a name that is none", "hun ter2: x", "is not a header"},
		{"a name that is not there", ": hunter2", "is not a header"},
		{"what says where a message ends", "Content-Length: 5", "sets Content-Length"},
		{"what would begin a line of its own", "A: hunter2\x01", "control characters"},
		{"a host with a path", "Host: hunter2/b", "is not a host name"},
		{"a host with half a bracket", "Host: [", "is not a host name"},
		{"a host that is a name in brackets", "Host: [hunter2]", "is not a host name"},
		{"no host", "Host:", "is not a host name"},
		{"a header", "Good: yes", ""},
		{"a header taken away", "Accept:", ""},
		{"an IPv6 address", "Host: [2001:db8::1]:8080", ""},
	}
	var lines []string
	for _, row := range rows {
		lines = append(lines, row.line)
	}
	_, wrong := ParseHeaders(lines)
	said := map[int]string{}
	for _, one := range wrong {
		said[one.Line] = one.Why
	}
	for i, row := range rows {
		if why, found := said[i]; found != (row.says != "") || !strings.Contains(why, row.says) {
			t.Errorf("%s: %q, want %q", row.why, why, row.says)
		}
	}
	if strings.Contains(fmt.Sprint(wrong), "hunter2") {
		t.Errorf("what is wrong is repeated: %v", wrong)
	}
}

func TestAuthorities(t *testing.T) {
	for host, want := range map[string]bool{
		"site.example": true, "site.example:8080": true, "192.0.2.1": true, "[::1]": true, "[2001:db8::1]:443": true,
		"[": false, "[::1": false, "::1]": false, "[::1]x": false, "[192.0.2.1]": false, "[::1]:[": false, "a[::1]": false, "a/b": false,
	} {
		if IsAuthority(host) != want {
			t.Errorf("%q: %v, want %v", host, !want, want)
		}
	}
}

// TestTheClientOfALogIsSentAsAnAddressOrNotAtAll: what else a log has in its place never goes out.
func TestTheClientOfALogIsSentAsAnAddressOrNotAtAll(t *testing.T) {
	for _, row := range []struct{ says, client, sent string }{
		{"an IPv4 address", "203.0.113.7", "203.0.113.7"},
		{"an IPv6 address, in its short form", "2001:DB8:0:0::1", "2001:db8::1"},
		{"a name", "client.example", ""},
		{"nothing", "-", ""},
		{"a zone, which is a text of its own", "fe80::1%a\r\nX: y", ""},
		{"a line feed", "203.0.113.7\r\nX: y", ""},
		{"two addresses", "203.0.113.7, 10.0.0.1", ""},
		{"a port", "203.0.113.7:80", ""},
		{"an address that some read as octal", "203.0.113.010", ""},
	} {
		h, _ := ParseHeaders([]string{"Accept:", "Accept-Encoding:"})
		if err := h.NameClients([]string{"x-real-ip", "X-Forwarded-For", "X-Real-IP"}); err != nil {
			t.Fatal(err)
		}
		want := "GET / HTTP/1.1\r\nHost: site.example\r\n"
		if row.sent != "" {
			want += "X-Real-IP: " + row.sent + "\r\nX-Forwarded-For: " + row.sent + "\r\n"
		}
		r := Request{Method: "GET", Target: "/", ClientIP: ClientAddress([]byte(row.client))}
		if got := string(r.AppendHTTP1(nil, "site.example", h)); got != want+"\r\n" {
			t.Errorf("%s: %q", row.says, got)
		}
	}
	own, _ := ParseHeaders([]string{"X-Real-IP: 192.0.2.1"})
	for name, says := range map[string]string{"X-Real-Ip": "among your own", "Via": `"Via" is not a header for a client`} {
		if err := own.NameClients([]string{name}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
