package exchange

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// scene is a pool with a fake clock. The scene itself is its source, its transport and its recorder, and keeps in words
// what the pool asks of them.
type scene struct {
	t     testing.TB
	pool  *ConnectionPool
	now   int64
	abort context.CancelFunc
	heard []string // since the last input

	source   []*Attempt
	attempts []*Attempt // all there were, by line of the log from 1
	names    map[*Attempt]string
	fates    map[*Attempt]*fate
	last     record.Record
	leaving  map[*Attempt]bool // their clients do not come back
	skipped  string            // the reason that the recorder has and the source does not have yet
	ended    bool              // nothing more becomes due
	conns    []*Conn           // all there were, by number from 1
}

// fate counts what became of a request.
type fate struct{ submitted, recorded, skipped, done int }

// pipe is the transport's side of a connection.
type pipe struct {
	number   int
	openedNS int64
	closed   bool
	came     map[*Attempt]PartialAnswer
	answer   wire.Response // as drivers do, it has room for one answer
}

func newScene(t testing.TB, bounds Bounds, tls bool) *scene {
	headers, err := wire.ParseHeaders(nil)
	if err != nil {
		t.Fatal(err)
	}
	abort, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s := &scene{
		t: t, now: 1, abort: cancel,
		names: map[*Attempt]string{}, fates: map[*Attempt]*fate{}, leaving: map[*Attempt]bool{},
	}
	s.pool = NewConnectionPool(&RunState{
		Target: &target.Target{Host: "site.example", TLS: tls}, Headers: headers, Timeout: time.Second,
		Warmup: 2 * time.Millisecond, Recorder: s, Validators: NewValidators(nil), Health: &Health{}, Abort: abort,
	}, bounds, s, s)
	return s
}

func (s *scene) hear(format string, args ...any) {
	s.heard = append(s.heard, fmt.Sprintf(format, args...))
}

// add gives the source a request that is due now, as "a1:POST:h2" says: request 1 of client a, and what is special about
// it.
func (s *scene) add(text string) *Attempt {
	words := strings.Split(text, ":")
	client := uint32(text[0])
	one := &Attempt{Client: client, Key: Key{Client: client}, DueNS: s.now, LoggedRequest: &LoggedRequest{
		Request: wire.Request{Method: "GET", Target: "/"}, Client: client, Line: uint64(len(s.attempts) + 1),
	}}
	for _, word := range words[1:] {
		switch word {
		case "1.0":
			one.Proto = wire.HTTP10
		case "h2":
			one.Proto = wire.HTTP2
		case "304":
			one.IfModifiedSince = time.Unix(1e9, 0)
		case "absolute":
			one.Target = "http://site.example/"
		case "late":
			one.DueNS -= 2e6
		case "leaves":
			s.leaving[one] = true
		default:
			one.Method = word
		}
	}
	s.attempts, s.source = append(s.attempts, one), append(s.source, one)
	s.names[one], s.fates[one] = words[0], &fate{}
	return one
}

// The source.

func (s *scene) Next(now int64) (*Attempt, int64) {
	if len(s.source) == 0 {
		return nil, Never
	}
	one := s.source[0]
	s.source = s.source[1:]
	s.fates[one].submitted++
	return one, now
}

func (s *scene) Done(one *Attempt, _ record.ErrorKind, _ int64) bool {
	f := s.fates[one]
	f.done++
	if s.skipped != "" {
		f.skipped++
		s.hear("%s skipped: %s", s.names[one], s.skipped)
		s.skipped = ""
	}
	if !s.pool.stopped && f.recorded+f.skipped != 1 || f.submitted != 1 || f.done != 1 {
		s.t.Errorf("%s: %+v", s.names[one], *f)
	}
	return s.leaving[one]
}

func (s *scene) Ended() bool { return s.ended && len(s.source) == 0 }

// The transport.

func (s *scene) Open(c *Conn, one *Attempt) {
	s.conns = append(s.conns, c)
	c.Link = &pipe{number: len(s.conns), openedNS: s.now, came: map[*Attempt]PartialAnswer{}}
	s.hear("open %d %s", len(s.conns), s.names[one])
}

func (s *scene) Send(c *Conn, one *Attempt) {
	p := c.Link.(*pipe)
	if p.closed {
		s.t.Errorf("%s is sent on connection %d, which is closed", s.names[one], p.number)
	}
	p.answer = wire.Response{}
	asks := ""
	if head := string(one.AppendHTTP1(nil, "site.example", s.pool.Headers)); strings.Contains(head, "If-None-Match: \"v1\"") {
		asks = " if not v1"
	}
	s.hear("send %s %d%s", s.names[one], p.number, asks)
}

func (s *scene) Cancel(c *Conn, one *Attempt) {
	if p := c.Link.(*pipe); p.closed || !c.http2 {
		s.t.Errorf("%s is cancelled on connection %d", s.names[one], p.number)
	}
	s.hear("cancel %s", s.names[one])
}

func (s *scene) Close(c *Conn) {
	p := c.Link.(*pipe)
	if p.closed {
		s.t.Errorf("connection %d is closed twice", p.number)
	}
	p.closed = true
	s.hear("close %d", p.number)
}

func (s *scene) Received(c *Conn, one *Attempt) PartialAnswer { return c.Link.(*pipe).came[one] }

// The recorder.

func (s *scene) Start(time.Time) error { return nil }

func (s *scene) Skip(reason string) { s.skipped = reason }

func (s *scene) Retried() { s.hear("again") }

func (s *scene) Add(r *record.Record) {
	s.last = *r
	one := s.attempts[r.Line-1]
	s.fates[one].recorded++
	text := s.names[one] + " " + strings.Replace(r.Error.String(), "none", "ok", 1)
	for _, n := range []struct {
		name string
		of   int64
	}{
		{"", int64(r.Status)}, {"bytes=", r.Bytes}, {"lag=", int64(r.LagUS) / 1000}, {"late=", int64(r.LateUS) / 1000},
		{"connect=", int64(r.ConnectUS) / 1000}, {"tls=", int64(r.TLSUS) / 1000}, {"first=", int64(r.TTFBUS) / 1000},
		{"total=", int64(r.TotalUS) / 1000},
	} {
		if n.of != 0 {
			text += fmt.Sprintf(" %s%d", n.name, n.of)
		}
	}
	for i, name := range []string{"reused", "h2", "tls", "warmup", "queued", "member", "login", "own"} {
		if r.Flags&(1<<i) != 0 {
			text += " " + name
		}
	}
	s.hear("%s", text)
}

// What happens to the pool.

// until lets time pass, with every turn that the pool asks for on the way.
func (s *scene) until(ns int64) {
	for turns := 0; ; turns++ {
		if turns > 10_000 {
			s.t.Fatal("the pool asks for turns without end")
		}
		again := s.pool.Turn(s.now)
		s.check()
		switch {
		case again <= s.now:
		case s.now >= ns:
			return
		default:
			s.now = min(again, ns)
		}
	}
}

func (s *scene) opened(c *Conn, http2 bool) {
	took := s.now - c.Link.(*pipe).openedNS
	tls := int64(0)
	if s.pool.Target.TLS {
		tls = took / 2
	}
	s.pool.Opened(c, http2, record.SaturatedUS(took-tls), record.SaturatedUS(tls), s.now)
}

// part lets some bytes of an answer come.
func (s *scene) part(c *Conn, one *Attempt, status int, bytes int64) {
	came := c.Link.(*pipe).came
	first := came[one].FirstNS
	if first == 0 {
		first = s.now
	}
	came[one] = PartialAnswer{Status: status, Bytes: bytes, FirstNS: first}
}

// answered gives a request its whole answer: a 200 without a body, unless the words say otherwise.
func (s *scene) answered(c *Conn, one *Attempt, words ...string) {
	status, more := "200", ""
	for _, word := range words {
		switch word {
		case "close":
			more += "Connection: close\r\n"
		case "v1":
			more += "ETag: \"v1\"\r\n"
		default:
			status = word
		}
	}
	var parser wire.ResponseParser
	parser.Begin(one.Method == "HEAD")
	text := "HTTP/1.1 " + status + " so\r\nContent-Length: 0\r\n" + more + "\r\n"
	if _, whole, err := parser.Feed([]byte(text)); !whole || err != nil {
		s.t.Fatalf("%q is no answer", text)
	}
	p := c.Link.(*pipe)
	p.answer = parser.Response
	if one.FirstNS = p.came[one].FirstNS; one.FirstNS == 0 {
		one.FirstNS = s.now
	}
	s.pool.Answered(c, one, &p.answer, s.now)
}

// errorOf is how a connection ends.
var errorOf = map[string]error{
	"closed": wire.ErrClosedEarly, "reset": syscall.ECONNRESET, "garbage": wire.ErrBadResponse,
	"refused": &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
}

// give carries out one input, as "answered a1:404 a2" says.
func (s *scene) give(input string) {
	words := strings.Fields(input)
	for _, word := range words[1:] {
		parts := strings.Split(word, ":")
		if s.giveAttempt(words[0], word, parts) || s.giveConn(words[0], parts) {
			continue
		}
		s.t.Fatalf("no input is called %q", input)
	}
	switch words[0] {
	case "stop":
		s.pool.Stop()
	case "abort":
		s.abort()
		s.pool.GiveUp(s.now)
	}
}

// giveAttempt tells something about a request.
func (s *scene) giveAttempt(verb, word string, parts []string) bool {
	if verb == "due" {
		s.add(word)
		return true
	}
	i := slices.IndexFunc(s.attempts, func(one *Attempt) bool { return s.names[one] == parts[0] })
	if i < 0 {
		return false
	}
	one := s.attempts[i]
	switch c := one.conn; verb {
	case "came":
		bytes, _ := strconv.Atoi(parts[2])
		status, _ := strconv.Atoi(parts[1])
		s.part(c, one, status, int64(bytes))
	case "answered":
		s.answered(c, one, parts[1:]...)
	case "failed":
		s.pool.Failed(c, one, record.BadResponse, s.now)
	case "unheard":
		s.pool.Refused(c, one, s.now)
	default:
		return false
	}
	return true
}

// giveConn tells something about a connection.
func (s *scene) giveConn(verb string, parts []string) bool {
	number, err := strconv.Atoi(parts[0])
	if err != nil || number > len(s.conns) {
		return false
	}
	c := s.conns[number-1]
	switch verb {
	case "opened":
		s.opened(c, len(parts) > 1)
	case "refused":
		s.pool.OpenFailed(c, record.SaturatedUS(s.now-c.Link.(*pipe).openedNS), 0, errorOf[verb], s.now)
	case "closed", "reset", "garbage":
		s.pool.Closed(c, errorOf[verb], s.now)
	case "allow":
		room, _ := strconv.Atoi(parts[1])
		s.pool.Allow(c, room, s.now)
	case "leaving":
		s.pool.Leaving(c, s.now)
	default:
		return false
	}
	return true
}
