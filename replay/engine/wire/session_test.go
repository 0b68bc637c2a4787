package wire

import (
	"fmt"
	"strings"
	"testing"
)

func TestSessionInfo(t *testing.T) {
	const end = "Content-Length: 0\r\n\r\n"
	many := strings.Builder{}
	for i := range 10_000 {
		fmt.Fprintf(&many, "Set-Cookie: c%d=1\r\n", i)
	}
	for _, c := range []struct {
		why, head string
		location  string
		cookies   int
	}{
		{"nothing", "HTTP/1.1 200 OK\r\n", "", 0},
		{"a redirect and two cookies", "HTTP/1.1 302 Found\r\nlocation: /wp-login.php\r\nSet-Cookie: a=1\r\nSET-COOKIE: b=2\r\n", "/wp-login.php", 2},
		{"of the interim response nothing is kept", "HTTP/1.1 103 Early Hints\r\nSet-Cookie: a=1\r\n\r\nHTTP/1.1 200 OK\r\n", "", 0},
		{"a bare carriage return", "HTTP/1.1 302 Found\r\nLocation: /a\rX: 1\r\nSet-Cookie: a=1\rX: 1\r\n", "", 0},
		{"a huge cookie", "HTTP/1.1 200 OK\r\nSet-Cookie: a=" + strings.Repeat("x", 100_000) + "\r\n", "", 0},
		{"ten thousand cookies", "HTTP/1.1 200 OK\r\n" + many.String(), "", maxCookies},
	} {
		var p ResponseParser
		p.Begin(false)
		p.KeepSession(false)
		if _, whole, err := p.Feed([]byte(c.head + end)); err != nil || !whole {
			t.Errorf("%s: %v, %v", c.why, whole, err)
			continue
		}
		if p.SessionInfo == nil || p.SessionInfo.Location != c.location || len(p.SessionInfo.SetCookie) != c.cookies {
			t.Errorf("%s: %.200v", c.why, p.SessionInfo)
		}
	}
}

func TestNobodyPaysForWhatNobodyAsks(t *testing.T) {
	answer := []byte("HTTP/1.1 302 Found\r\nLocation: /\r\nSet-Cookie: a=1\r\nContent-Length: 2\r\n\r\nok")
	var p ResponseParser
	allocations := testing.AllocsPerRun(100, func() {
		p.Begin(false)
		_, _, _ = p.Feed(answer)
	})
	if allocations > 0 || p.SessionInfo != nil {
		t.Errorf("%v allocations, %v", allocations, p.SessionInfo)
	}
	p.Begin(false)
	p.KeepSession(false)
	_, _, _ = p.Feed(answer)
	p.Begin(false)
	if _, _, _ = p.Feed(answer); p.SessionInfo != nil {
		t.Error("it was asked once, and tells twice")
	}
}

func TestACookieGoesOutUnlessTheUserHasOne(t *testing.T) {
	request := &Request{Method: "GET", Target: "/", Cookie: "a=1; b=2"}
	for _, c := range []struct {
		why, own string
		want     bool
	}{
		{"a member", "", true},
		{"the user's own header takes its place", "Cookie: c=3", false},
		{"or removes it", "Cookie:", false},
	} {
		var lines []string
		if c.own != "" {
			lines = []string{c.own}
		}
		own, _ := ParseHeaders(lines)
		if text := string(request.AppendHTTP1(nil, "site", own)); strings.Contains(text, "\r\nCookie: a=1; b=2\r\n") != c.want {
			t.Errorf("%s: %q", c.why, text)
		}
	}
}
