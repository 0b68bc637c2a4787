package wire

import (
	"strings"
	"testing"
	"time"
)

func TestUnsafe(t *testing.T) {
	rows := []struct {
		why  string
		r    Request
		want string
	}{
		{"an ordinary request", Request{Method: "GET", Target: "/a?b=c"}, ""},
		{"an absolute URI goes to the target as it is", Request{Method: "GET", Target: "http://elsewhere/"}, ""},
		{"raw bytes above ASCII", Request{Method: "GET", Target: "/\xc3\xa9\xff"}, ""},
		{"markup is only text on the wire", Request{Method: "GET", Target: "/<script>"}, ""},
		{"a megabyte of target", Request{Method: "GET", Target: "/" + strings.Repeat("a", 1<<20)}, ""},
		{"a line feed would begin a header", Request{Method: "GET", Target: "/\nX: y"}, SkipTarget},
		{"a carriage return likewise", Request{Method: "GET", Target: "/\r"}, SkipTarget},
		{"a space ends the target", Request{Method: "GET", Target: "/a HTTP/1.1"}, SkipTarget},
		{"a NUL", Request{Method: "GET", Target: "/\x00"}, SkipTarget},
		{"DEL", Request{Method: "GET", Target: "/\x7f"}, SkipTarget},
		{"no target", Request{Method: "GET"}, SkipTarget},
		{"CONNECT would make a tunnel", Request{Method: "CONNECT", Target: "elsewhere:443"}, SkipTarget},
		{"a method with a space", Request{Method: "GET /", Target: "/"}, SkipMethod},
		{"no method", Request{Target: "/"}, SkipMethod},
		{"a user agent with a line feed", Request{Method: "GET", Target: "/", UserAgent: "a\r\nX: y"}, SkipHeader},
		{"a referer with a NUL", Request{Method: "GET", Target: "/", Referer: "\x00"}, SkipHeader},
		{"a tab in a user agent is allowed", Request{Method: "GET", Target: "/", UserAgent: "a\tb"}, ""},
		{"a host with a slash", Request{Method: "GET", Target: "/", Host: "a/b"}, SkipHeader},
		{"a host with a space", Request{Method: "GET", Target: "/", Host: "a b"}, SkipHeader},
		{"an IPv6 host", Request{Method: "GET", Target: "/", Host: "[::1]:80"}, ""},
	}
	for _, row := range rows {
		if got := row.r.Unsafe(); got != row.want {
			t.Errorf("%s: %q, want %q", row.why, got, row.want)
		}
	}
}

func TestAppendHTTP1(t *testing.T) {
	const site = "site.example"
	rows := []struct {
		why     string
		r       Request
		headers []string
		want    string
	}{
		{
			"what a browser sends", Request{Method: "GET", Target: "/a", UserAgent: "UA", Referer: "http://r/"}, nil,
			"GET /a HTTP/1.1\r\nHost: site.example\r\nUser-Agent: UA\r\nAccept: */*\r\nReferer: http://r/\r\nAccept-Encoding: gzip, deflate, br\r\n\r\n",
		},
		{
			"HTTP/1.0 closes", Request{Method: "HEAD", Target: "/", Proto: HTTP10}, []string{"Accept:", "Accept-Encoding:"},
			"HEAD / HTTP/1.0\r\nHost: site.example\r\nConnection: close\r\n\r\n",
		},
		{
			"the log's host", Request{Method: "GET", Target: "/", Host: "other.example"}, []string{"accept:", "accept-encoding:"},
			"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
		},
		{
			"the user's headers win", Request{Method: "GET", Target: "/", Host: "other.example", UserAgent: "UA"},
			[]string{"Host: mine", "User-Agent: me", "X-A: b", "Accept:", "Accept-Encoding: identity"},
			"GET / HTTP/1.1\r\nHost: mine\r\nUser-Agent: me\r\nX-A: b\r\nAccept-Encoding: identity\r\n\r\n",
		},
		{
			"a logged 304 asks whether it changed", Request{Method: "GET", Target: "/", IfModifiedSince: time.Unix(0, 0)},
			[]string{"Accept:", "Accept-Encoding:"},
			"GET / HTTP/1.1\r\nHost: site.example\r\nIf-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n",
		},
		{
			"a logged 206 asks for a part", Request{Method: "GET", Target: "/", RangeBytes: 100},
			[]string{"Accept:", "Accept-Encoding:"},
			"GET / HTTP/1.1\r\nHost: site.example\r\nRange: bytes=0-99\r\n\r\n",
		},
		{
			"a POST has an empty body", Request{Method: "POST", Target: "/"}, []string{"Accept:", "Accept-Encoding:"},
			"POST / HTTP/1.1\r\nHost: site.example\r\nContent-Length: 0\r\n\r\n",
		},
	}
	for _, row := range rows {
		own, wrong := ParseHeaders(row.headers)
		if wrong != nil {
			t.Fatal(wrong)
		}
		if got := string(row.r.AppendHTTP1(nil, site, own)); got != row.want {
			t.Errorf("%s:\n%q, want\n%q", row.why, got, row.want)
		}
	}
}

func TestParseProtocol(t *testing.T) {
	rows := map[string]Protocol{
		"HTTP/1.1": HTTP11, "HTTP/1.0": HTTP10, "HTTP/0.9": HTTP10, "HTTP/2.0": HTTP2, "HTTP/2": HTTP2, "HTTP/3": HTTP2, "": HTTP11, "-": HTTP11,
	}
	for text, want := range rows {
		if got := ParseProtocol([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// FuzzSafeRequestStaysOneRequest: whatever a log line holds, what is sent is one request line, with the headers that
// were meant.
func FuzzSafeRequestStaysOneRequest(f *testing.F) {
	f.Add("GET", "/a", "host", "UA", "ref")
	f.Add("GET", "/a\r\nX: y", "h\r\n", "U\nA", "\x00")
	own, err := ParseHeaders(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, target, host, agent, referer string) {
		r := Request{Method: method, Target: target, Host: host, UserAgent: agent, Referer: referer}
		if r.Unsafe() != "" {
			return
		}
		text := string(r.AppendHTTP1(nil, "t", own))
		lines := strings.Split(text, "\r\n")
		if strings.Count(text, "\n") != len(lines)-1 || strings.Count(lines[0], " ") != 2 {
			t.Fatalf("%q", text)
		}
		for _, line := range lines[1 : len(lines)-2] {
			name, _, _ := strings.Cut(line, ":")
			switch name {
			case "Host", "User-Agent", "Accept", "Referer", "Accept-Encoding", "Content-Length":
			default:
				t.Fatalf("header %q in %q", name, text)
			}
		}
	})
}
