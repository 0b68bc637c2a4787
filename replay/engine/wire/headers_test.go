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
