package main

import (
	"strings"
	"testing"
)

// TestTheHostOfTheLogIsSent: the log's host comes first in it, with its port.
func TestTheHostOfTheLogIsSent(t *testing.T) {
	for _, c := range []struct {
		why, host string
		sent      string // "" where it is not
	}{
		{"a name", "shop.example:443", "shop.example"},
		{"an IPv6 address", "[2001:db8::1]:80", "[2001:db8::1]"},
		{"the host itself", "[::1]:80", "[::1]"},
		{"half a bracket is no host", "[:80", ""},
	} {
		server := newSite(t)
		out := t.TempDir()
		log := writeLog(t, c.host+" "+logLine(0, "GET /host HTTP/1.1", "UA"), "shop.example:80 "+logLine(0, "GET / HTTP/1.1", "UA"))
		code, _, errOut := call("run", log, "--format", "VCOMBINED", "--target", server.URL, "--out", out, "--quiet")
		sent := ""
		for _, request := range server.requests() {
			if host, found := strings.CutPrefix(request, "GET /host "); found {
				sent, _, _ = strings.Cut(host, "|")
			}
		}
		skipped := latest(t, out).Summary.Requests.Skipped["unsafe_header"] == 1
		if code != 0 || sent != c.sent || skipped != (c.sent == "") {
			t.Errorf("%s: exit %d, sent %q, want %q; skipped %v: %s", c.why, code, sent, c.sent, skipped, errOut)
		}
	}
}
