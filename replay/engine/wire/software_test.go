package wire

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// TestSoftware: of what servers call themselves a little is kept, whatever they send.
func TestSoftware(t *testing.T) {
	long := strings.Repeat("x", 99)
	for _, row := range []struct {
		says string
		sent []string
		want []string
	}{
		{"nothing", nil, nil},
		{"an empty name", []string{""}, nil},
		{"one, again and again", []string{"nginx", "nginx", "nginx"}, []string{"nginx"}},
		{"two, in order", []string{"b", "a", "b"}, []string{"a", "b"}},
		{"long ones are cut", []string{long + "ab", long + "ac"}, []string{long + "a"}},
		{"within a letter, too", []string{long + "é"}, []string{long + "�"}},
		{"bytes that are not text", []string{"\xff\x00"}, []string{"�\x00"}},
		{"no more than eight", strings.Split("9 8 7 6 5 4 3 2 1 0", " "), strings.Split("2 3 4 5 6 7 8 9", " ")},
	} {
		var v values
		for _, value := range row.sent {
			v.note([]byte(value))
		}
		if got := v.sorted(); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.says, got, row.want)
		}
	}
}

func TestSoftwareOfManyAtOnce(t *testing.T) {
	var v values
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for n := range 1000 {
				v.note(fmt.Appendf(nil, "%d", (n+i)%6))
			}
		})
	}
	all.Wait()
	if got := v.sorted(); len(got) != 6 {
		t.Errorf("%q", got)
	}
}

const withNames = "HTTP/1.1 200 OK\r\nServer: nginx/1.24.0\r\nDate: Sat, 28 Nov 2026 14:00:00 GMT\r\nContent-Type: text/html; charset=UTF-8\r\n" +
	"Content-Length: 2\r\nConnection: keep-alive\r\nX-Powered-By: PHP/8.2.7\r\nCache-Control: max-age=300\r\nVary: Accept-Encoding\r\n" +
	"X-Varnish: 32770 3\r\nAge: 12\r\nX-Cache: HIT\r\nAccept-Ranges: bytes\r\n\r\nok"

func TestNamesAllocateNothing(t *testing.T) {
	in, p := []byte(withNames), &ResponseParser{Software: &Software{}}
	frame := &http2.MetaHeadersFrame{HeadersFrame: &http2.HeadersFrame{}, Fields: []hpack.HeaderField{
		{Name: ":status", Value: "200"}, {Name: "server", Value: "nginx/1.24.0"}, {Name: "x-cache", Value: "HIT from a cache with quite a long name"},
		{Name: "content-security-policy", Value: strings.Repeat("default-src 'self'; ", 20)},
	}}
	var r Response
	for name, parse := range map[string]func(){
		"HTTP/1.1": func() { p.Begin(false); _, _, _ = p.Feed(in) },
		"HTTP/2":   func() { r.TakeHTTP2(frame, 200, p.Software) },
	} {
		if n := testing.AllocsPerRun(100, parse); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkFeed parses an answer as nginx, PHP and Varnish make it.
func BenchmarkFeed(b *testing.B) {
	in, p := []byte(withNames), &ResponseParser{Software: &Software{}}
	for b.Loop() {
		p.Begin(false)
		if _, whole, err := p.Feed(in); !whole || err != nil {
			b.Fatal(whole, err)
		}
	}
}
