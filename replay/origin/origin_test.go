package origin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serve starts an origin for the plan and returns its address.
func serve(t *testing.T, p *Catalog, certificate *tls.Certificate) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "origin")
	folder, err := OpenFolder(root)
	if err == nil {
		err = p.Prepare(context.Background(), folder, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, p.Handler(folder), certificate) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

// send writes one raw request and reads the response, whose body may be cut off by the end of the connection.
func send(t *testing.T, address, method, request string) (*http.Response, []byte, error) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go io.WriteString(c, request)
	response, err := http.ReadResponse(bufio.NewReaderSize(c, 1<<16), &http.Request{Method: method})
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(response.Body)
	return response, body, err
}

func oddPlan() *Catalog {
	p := NewCatalog(Limits{Targets: 100, Bytes: 1 << 20})
	for _, l := range []struct {
		target string
		logged
	}{
		{"/file", logged{"GET", 200, 5000}},
		{"/file?v=2", logged{"GET", 200, 7}},
		{"/empty", logged{"GET", 200, 0}},
		{"/huge", logged{"GET", 200, 3 << 20}},
		{"/part", logged{"GET", 206, 1000}},
		{"/gone", logged{"GET", 404, 564}},
		{"/moved", logged{"GET", 301, 178}},
		{"/same", logged{"GET", 304, 0}},
		{"/made", logged{"POST", 201, 40}},
		{"/nothing", logged{"GET", 204, 0}},
		{"/impatient", logged{"GET", 499, 0}},
		{"/slow", logged{"GET", 408, 0}},
		{"/dropped", logged{"GET", 444, 0}},
		{"/socket", logged{"GET", 101, 9}},
		{"/cdn", logged{"GET", 0, 5}},
		{"//double//slash", logged{"GET", 200, 11}},
		{"/a/../b/./c", logged{"GET", 200, 12}},
		{"/esc%2Faped%20x", logged{"GET", 200, 13}},
		{"http://site.example/abs", logged{"GET", 200, 14}},
		{"/dir/index.html", logged{"GET", 200, 15}},
		{"*", logged{"OPTIONS", 200, 16}},
		{"/" + strings.Repeat("x", 1<<20), logged{"GET", 414, 17}},
	} {
		p.Add([]byte(l.target), l.method, l.status, l.bytes)
	}
	return p
}

func TestAnswersOnTheWire(t *testing.T) {
	address := serve(t, oddPlan(), nil)
	for _, c := range []struct {
		why, method, target, headers string
		status, length               int
	}{
		{"a file", "GET", "/file", "", 200, 5000},
		{"the query is part of the target", "GET", "/file?v=2", "", 200, 7},
		{"an empty file", "GET", "/empty", "", 200, 0},
		{"a file from memory", "GET", "/huge", "", 200, 3 << 20},
		{"HEAD has no body", "HEAD", "/file", "", 200, 0},
		{"a range of a file", "GET", "/file", "Range: bytes=10-19\r\n", 206, 10},
		{"a range of a file from memory", "GET", "/huge", "Range: bytes=-262145\r\n", 206, 262145},
		{"a range past the end", "GET", "/file", "Range: bytes=5000-\r\n", 416, 33},
		{"a known date", "GET", "/file", "If-Modified-Since: Mon, 17 Jul 1995 00:00:00 GMT\r\n", 304, 0},
		{"a part that is asked for as it was logged", "GET", "/part", "Range: bytes=0-999\r\n", 206, 1000},
		{"a part that is asked for as a whole", "GET", "/part", "", 200, 1000},
		{"a logged failure with its body", "GET", "/gone", "", 404, 564},
		{"a logged redirection", "GET", "/moved", "", 301, 178},
		{"a logged 304", "GET", "/same", "", 304, 0},
		{"a logged 201", "POST", "/made", "Content-Length: 0\r\n", 201, 40},
		{"a logged 204", "GET", "/nothing", "", 204, 0},
		{"a client that went away then", "GET", "/impatient", "", 499, 0},
		{"a request that came too slowly then", "GET", "/slow", "", 408, 0},
		{"an upgrade that cannot be", "GET", "/socket", "", 200, 9},
		{"no status at all", "GET", "/cdn", "", 200, 5},
		{"unknown targets", "GET", "/unknown", "", 404, 30},
		{"nothing is cleaned of double slashes", "GET", "//double//slash", "", 200, 11},
		{"nor of dots", "GET", "/a/../b/./c", "", 200, 12},
		{"nor unescaped", "GET", "/esc%2Faped%20x", "", 200, 13},
		{"what only unescapes to a target is another", "GET", "/esc%2Faped x", "", 400, -1},
		{"the absolute form as it was logged", "GET", "http://site.example/abs", "", 200, 14},
		{"the absolute form of a plain target", "GET", "http://site.example/file", "", 200, 5000},
		{"the absolute form of nothing", "GET", "http://site.example", "", 404, 30},
		{"an index is not redirected to its folder", "GET", "/dir/index.html", "", 200, 15},
		{"the asterisk", "OPTIONS", "*", "", 200, 16},
		{"a target of a megabyte", "GET", "/" + strings.Repeat("x", 1<<20), "", 414, 17},
		{"an escape that is none is refused by the library", "GET", "/%zz", "", 400, -1},
	} {
		request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: site.example\r\n%sConnection: close\r\n\r\n",
			c.method, c.target, c.headers)
		response, body, err := send(t, address, c.method, request)
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		if response.StatusCode != c.status || c.length >= 0 && len(body) != c.length {
			t.Errorf("%s: %d with %d bytes, want %d with %d", c.why, response.StatusCode, len(body), c.status, c.length)
		}
		if response.Header.Get("Location") != "" {
			t.Errorf("%s: redirected to %s", c.why, response.Header.Get("Location"))
		}
	}
}

func TestDroppedConnection(t *testing.T) {
	address := serve(t, oddPlan(), nil)
	if response, _, err := send(t, address, "GET", "GET /dropped HTTP/1.1\r\nHost: x\r\n\r\n"); err == nil {
		t.Errorf("444 was answered with %s", response.Status)
	}
}

func TestKeepAlive(t *testing.T) {
	address := serve(t, oddPlan(), nil)
	for _, c := range []struct{ why, first, second string }{
		{"HTTP/1.1", "GET /gone HTTP/1.1\r\nHost: x\r\n\r\n", "GET /file HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"HTTP/1.0 that asks for it", "GET /gone HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET /file HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"},
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		reader := bufio.NewReader(conn)
		for i, request := range []string{c.first, c.second} {
			io.WriteString(conn, request)
			response, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatalf("%s, request %d: %v", c.why, i, err)
			}
			if n, err := io.Copy(io.Discard, response.Body); err != nil || n != []int64{564, 5000}[i] {
				t.Errorf("%s, request %d: %d bytes, %v", c.why, i, n, err)
			}
		}
		conn.Close()
	}
}

func TestTLSWithHTTP2(t *testing.T) {
	certificate, err := SelfSigned("site.example", "192.0.2.7")
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	address := serve(t, oddPlan(), certificate)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	for _, c := range []struct {
		why  string
		h2   bool
		host string
	}{
		{"HTTP/2 by its address", true, ""},
		{"HTTP/2 by a name of its own", true, "site.example"},
		{"HTTP/1.1 for those who do not ask", false, "localhost"},
	} {
		transport := &http.Transport{ForceAttemptHTTP2: c.h2, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: c.host}}
		if !c.h2 {
			transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		}
		client := &http.Client{Transport: transport, Timeout: time.Minute}
		response, err := client.Get("https://" + address + "/file")
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || len(body) != 5000 || (response.ProtoMajor == 2) != c.h2 {
			t.Errorf("%s: %s with %d bytes, %v", c.why, response.Proto, len(body), err)
		}
		if c.h2 {
			if response, err := client.Get("https://" + address + "/dropped"); err == nil {
				t.Errorf("%s: 444 was answered with %s", c.why, response.Status)
			}
		}
		transport.CloseIdleConnections()
	}
}

func TestMemoryFilesReadTheSameFromAnywhere(t *testing.T) {
	const size = 3*chunkBytes + 100
	all, err := io.ReadAll(&memoryFile{size: size})
	if err != nil || len(all) != size {
		t.Fatalf("%d bytes, %v", len(all), err)
	}
	for _, at := range []int64{0, 1, chunkBytes - 1, chunkBytes, 2*chunkBytes + 7, size - 1, size} {
		m := &memoryFile{size: size}
		if _, err := m.Seek(at-size, io.SeekEnd); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(m)
		if err != nil || !bytes.Equal(rest, all[at:]) {
			t.Errorf("from %d on: %d bytes, %v", at, len(rest), err)
		}
	}
	if _, err := (&memoryFile{size: 5}).Seek(-1, io.SeekStart); err == nil {
		t.Error("one can seek to before the start")
	}
}

// plenty is more than any test's log asks for.
var plenty = Limits{Targets: 2_000_000, Bytes: 10 << 30}

type logged struct {
	method string
	status int
	bytes  int64
}

func TestAnswersOfATarget(t *testing.T) {
	for _, c := range []struct {
		why  string
		log  []logged
		want answer
	}{
		{"a file that was read", []logged{{"GET", 200, 500}}, answer{500, 200, whole, true}},
		{"the first size wins", []logged{{"GET", 200, 500}, {"GET", 200, 900}}, answer{500, 200, whole, true}},
		{"a 304 before says nothing of the file", []logged{{"GET", 304, 0}, {"GET", 200, 500}}, answer{500, 200, whole, true}},
		{"nor does a 404 after it", []logged{{"GET", 200, 500}, {"GET", 404, 9}}, answer{500, 200, whole, true}},
		{"a part is less than the whole", []logged{{"GET", 206, 10}, {"GET", 200, 500}}, answer{500, 200, whole, true}},
		{"of parts the longest counts", []logged{{"GET", 206, 10}, {"GET", 206, 30}, {"GET", 206, 20}}, answer{30, 206, partial, true}},
		{"HEAD does not know the size", []logged{{"HEAD", 200, 0}, {"GET", 200, 500}}, answer{500, 200, whole, true}},
		{"a 201 is a status with a body", []logged{{"POST", 201, 70}}, answer{70, 201, success, false}},
		{"the first failure wins", []logged{{"GET", 404, 9}, {"GET", 500, 99}}, answer{9, 404, failure, false}},
		{"an empty file takes no room on the disk", []logged{{"GET", 200, 0}}, answer{0, 200, whole, false}},
		{"a log without sizes", []logged{{"GET", 200, -1}}, answer{0, 200, whole, false}},
		{"a file beyond the limit is in memory", []logged{{"GET", 200, 2000}}, answer{2000, 200, whole, false}},
	} {
		p := NewCatalog(Limits{Targets: 10, Bytes: 1000})
		for _, l := range c.log {
			p.Add([]byte("/x"), l.method, l.status, l.bytes)
		}
		if got := p.answers[hash("/x")]; got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.why, got, c.want)
		}
	}
}

func TestPlanCountsWhatItHolds(t *testing.T) {
	p := NewCatalog(Limits{Targets: 4, Bytes: 1000})
	p.Add([]byte("/part"), "GET", 206, 300)
	p.Add([]byte("/part"), "GET", 200, 400) // in place of its part
	p.Add([]byte("/big"), "GET", 200, 700)
	p.Add([]byte("/small"), "GET", 200, 600)
	p.Add([]byte("/gone"), "GET", 410, 6)
	p.Add([]byte("/one-too-many"), "GET", 200, 1)
	p.Add([]byte("/one-too-many"), "GET", 200, 1)
	p.Add([]byte("/gone"), "GET", 410, 6)
	want := Stats{Targets: 4, Files: 2, FileBytes: 1000, InMemory: 1, Forgotten: 2}
	// /big does not fit after /part, /small does.
	if got := p.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestFingerprintsTellPlansApart(t *testing.T) {
	plan := func(order ...int) *Catalog {
		p := NewCatalog(plenty)
		for _, i := range order {
			p.Add(fmt.Appendf(nil, "/%d", i), "GET", 200, int64(i)*100)
		}
		return p
	}
	if plan(1, 2, 3).fingerprint() != plan(3, 1, 2).fingerprint() {
		t.Error("the order of the log changes the fingerprint")
	}
	seen := map[string]string{}
	for _, order := range [][]int{{}, {1}, {2}, {1, 2}, {1, 2, 3}, {2, 3}} {
		print := plan(order...).fingerprint()
		if other, ok := seen[print]; ok {
			t.Errorf("%v and %s have the same fingerprint", order, other)
		}
		seen[print] = fmt.Sprint(order)
	}
}
