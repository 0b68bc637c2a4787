package eventloop

import (
	"context"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// single is a source of one request, and the recorder of what became of it.
type single struct {
	attempt *exchange.Attempt
	last    record.Record
}

func (p *single) Next(now int64) (*exchange.Attempt, int64) {
	s := p.attempt
	p.attempt = nil
	if s == nil {
		return nil, exchange.Never
	}
	return s, now
}

func (p *single) Done(*exchange.Attempt, record.ErrorKind, int64) bool { return false }
func (p *single) Ended() bool                                          { return p.attempt == nil }
func (p *single) Start(time.Time) error                                { return nil }
func (p *single) Skip(string)                                          {}
func (p *single) Retried()                                             {}
func (p *single) Add(r *record.Record)                                 { p.last = *r }

// loopTo returns a loop that sends one request to an address.
func loopTo(t *testing.T, address string) (*Loop, *single) {
	t.Helper()
	headers, _ := wire.ParseHeaders(nil)
	source := &single{attempt: &exchange.Attempt{LoggedRequest: &exchange.LoggedRequest{Request: wire.Request{Method: "GET", Target: "/"}}}}
	state := &exchange.RunState{
		Target: &target.Target{Host: "site.example", Addresses: []string{address}}, Headers: headers,
		Clock: exchange.Clock{T0: time.Now()}, Timeout: 5 * time.Second, Recorder: source,
		Validators: exchange.NewValidators(nil), Health: &exchange.Health{}, Abort: context.Background(),
	}
	bounds := exchange.Bounds{IdleTimeout: time.Minute, MaxConnections: 1, MaxQueued: 1, PerClient: 1}
	l, err := New(state, bounds, source)
	if err != nil {
		t.Fatal(err)
	}
	return l, source
}

// The kernel tells once that a socket is connected and what it has to read by then.
func TestWhatComesWithTheConnectionIsRead(t *testing.T) {
	rows := []struct {
		why string
		do  func(conn *net.TCPConn)
		is  record.ErrorKind
	}{
		{"a server that speaks first", func(c *net.TCPConn) { _, _ = c.Write([]byte("220 mail.example ESMTP\r\n")) }, record.BadResponse},
		{"a server that has said all before it was asked", func(c *net.TCPConn) { _ = c.CloseWrite() }, record.ClosedEarly},
	}
	for _, row := range rows {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l, source := loopTo(t, listener.Addr().String())
		l.turn()
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		row.do(conn.(*net.TCPConn))
		readable := []unix.PollFd{{Fd: int32(l.sockets[0].fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(readable, 5000); n != 1 {
			t.Fatalf("%s: nothing came: %v", row.why, err)
		}
		l.Run(context.Background())
		if source.last.Error != row.is {
			t.Errorf("%s: %s, want %s", row.why, source.last.Error, row.is)
		}
		_, _ = conn.Close(), listener.Close()
	}
}

func TestNothingIsSentAfterAStop(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	l, source := loopTo(t, listener.Addr().String())
	stop, cancel := context.WithCancel(context.Background())
	cancel()
	l.Run(stop)
	if source.attempt == nil || source.last != (record.Record{}) {
		t.Errorf("it was stopped before it began, and sent: %+v", source.last)
	}
}
