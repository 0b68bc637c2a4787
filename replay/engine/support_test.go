package engine

import (
	"bufio"
	"context"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// memory is a Recorder that keeps everything.
type memory struct {
	mu      sync.Mutex
	records []record.Record
	skipped map[string]int
	retried int
}

func (m *memory) Start(time.Time) error { return nil }

func (m *memory) Add(r *record.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = append(m.records, *r)
}

func (m *memory) Skip(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.skipped == nil {
		m.skipped = map[string]int{}
	}
	m.skipped[reason]++
}

func (m *memory) Retried() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.retried++
}

// get is a GET of a target by a client, due so many milliseconds after the start.
func get(client uint32, path string, dueMS int64) Entry {
	return Entry{AtNS: dueMS * 1e6, Value: &exchange.LoggedRequest{
		Request: wire.Request{Method: "GET", Target: path}, Client: client, LoggedBytes: -1, Line: uint64(dueMS) + 1,
	}}
}

func noHeaders(t *testing.T) *wire.Headers {
	t.Helper()
	h, err := wire.ParseHeaders(nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// targetOf makes a checked target of a base URL.
func targetOf(t *testing.T, base string, insecure bool) *target.Target {
	t.Helper()
	to, err := target.New(context.Background(), base, "", insecure)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// replay sends requests in the open loop and returns what was recorded.
func replay(t *testing.T, base string, opts Options, entries ...Entry) (*memory, Outcome) {
	t.Helper()
	rec := &memory{}
	e := New(targetOf(t, base, true), noHeaders(t), opts, rec, context.Background())
	outcome := e.Open(context.Background(), slices.Values(entries))
	return rec, outcome
}

// script is a server that answers the n-th request of each connection with what answer says; then it does as told.
type script struct {
	net.Listener
	mu       sync.Mutex
	conns    int
	requests []string
}

// serveScript listens on loopback. answer gets the number of the connection and of the request on it, both from 0; it
// returns the bytes to send and whether to close afterwards.
func serveScript(t *testing.T, answer func(conn, request int) (string, bool)) *script {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{Listener: listener}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			number := s.conns
			s.conns++
			s.mu.Unlock()
			go s.serve(conn, number, answer)
		}
	}()
	return s
}

func (s *script) serve(conn net.Conn, number int, answer func(conn, request int) (string, bool)) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for request := 0; ; request++ {
		var head strings.Builder
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			head.WriteString(line)
			if line == "\r\n" {
				break
			}
		}
		s.mu.Lock()
		s.requests = append(s.requests, head.String())
		s.mu.Unlock()
		text, last := answer(number, request)
		if _, err := conn.Write([]byte(text)); err != nil || last {
			return
		}
	}
}

// seen is how many connections and which requests there were.
func (s *script) seen() (conns int, requests []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns, slices.Clone(s.requests)
}

func requestsOf(s *script) []string {
	_, requests := s.seen()
	return requests
}

func (s *script) connections() int {
	conns, _ := s.seen()
	return conns
}

func (s *script) url() string { return "http://" + s.Addr().String() }

const plainOK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func always(text string, last bool) func(int, int) (string, bool) {
	return func(int, int) (string, bool) { return text, last }
}

func tlsServer(t *testing.T, s *httptest.Server, http2 bool) string {
	t.Helper()
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}
