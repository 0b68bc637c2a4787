// HTTP/1.x on one connection.

package netconn

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/wire"
)

// http1 speaks HTTP/1.x. The goroutine that sends a request also writes it; the connection's own reads the answers. So
// sending needs no switch to another goroutine.
type http1 struct {
	link *link
	net  net.Conn

	writing   sync.Mutex
	out       []byte
	unwritten atomic.Bool // a long request may not have left yet

	mu      sync.Mutex
	attempt *exchange.Attempt // nil while idle
	firstNS int64
	parser  wire.ResponseParser
}

const (
	readBytes    = 4 << 10
	bodyBytes    = 64 << 10 // read at once of a long body
	bigHeadBytes = 8 << 10  // less than that fits the socket's buffer, so that writing it does not block
)

func (h *http1) send(s *exchange.Attempt) {
	h.mu.Lock()
	h.attempt, h.firstNS = s, 0
	h.parser.Begin(s.Method == "HEAD")
	if s.HasSession() {
		h.parser.KeepSession(s.ReadsPages())
	}
	h.mu.Unlock()
	if len(s.Target)+len(s.Referer)+len(s.UserAgent)+len(s.Cookie)+len(s.Body) > bigHeadBytes {
		h.unwritten.Store(true)
		go func() {
			h.write(s)
			h.unwritten.Store(false)
		}()
		return
	}
	h.write(s)
}

// write writes a request. When that fails, reading says what became of it.
func (h *http1) write(s *exchange.Attempt) {
	h.writing.Lock()
	defer h.writing.Unlock()
	d := h.link.driver
	h.out = s.AppendHTTP1(h.out[:0], d.Target.Host, d.Headers)
	_, _ = h.net.Write(h.out)
	if cap(h.out) > bigHeadBytes {
		h.out = nil
	}
}

func (h *http1) cancel(*exchange.Attempt) {}

func (h *http1) stop() {}

func (h *http1) received(s *exchange.Attempt) exchange.PartialAnswer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.attempt != s {
		return exchange.PartialAnswer{}
	}
	return exchange.PartialAnswer{Status: h.parser.Status, Bytes: h.parser.Bytes, Served: h.parser.Served, FirstNS: h.firstNS}
}

func (h *http1) read() {
	small := make([]byte, readBytes)
	buffer := small
	for {
		n, err := h.net.Read(buffer)
		if n > 0 && !h.receive(buffer[:n]) {
			return
		}
		if err != nil {
			h.receiveEnd(err)
			return
		}
		switch {
		case n == readBytes && len(buffer) == readBytes:
			buffer = bodies.Get().(*[bodyBytes]byte)[:]
		case len(buffer) == bodyBytes && (n < readBytes || h.isIdle()):
			bodies.Put((*[bodyBytes]byte)(buffer))
			buffer = small
		}
	}
}

func (h *http1) isIdle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.attempt == nil
}

var bodies = sync.Pool{New: func() any { return new([bodyBytes]byte) }}

// receive deals with bytes that have come. Those that nobody asked for end the connection. It returns false when nothing
// more is to be read.
func (h *http1) receive(b []byte) bool {
	d := h.link.driver
	h.mu.Lock()
	s := h.attempt
	if s == nil {
		h.mu.Unlock()
		h.link.reportClosed(wire.ErrBadResponse)
		return false
	}
	if h.firstNS == 0 {
		h.firstNS = d.Clock.Now()
	}
	used, whole, err := h.parser.Feed(b)
	if err != nil || !whole {
		h.mu.Unlock()
		if err != nil {
			h.link.reportClosed(err)
		}
		return err == nil
	}
	answer := h.parser.Response
	answer.KeepAlive = answer.KeepAlive && used == len(b) && !h.unwritten.Load()
	h.answered(s, answer)
	return true
}

// answered tells the pool of a whole answer. It is called with the lock, and gives it back.
func (h *http1) answered(s *exchange.Attempt, answer wire.Response) {
	firstNS := h.firstNS
	h.attempt = nil
	h.mu.Unlock()
	h.link.driver.update(func(pool *exchange.ConnectionPool, now int64) {
		s.FirstNS = firstNS
		pool.Answered(h.link.conn, s, &answer, now)
	})
}

// receiveEnd deals with the end of the connection, which may be that of an answer.
func (h *http1) receiveEnd(err error) {
	h.mu.Lock()
	if s := h.attempt; s != nil && errors.Is(err, io.EOF) && h.firstNS != 0 && h.parser.End() == nil {
		answer := h.parser.Response
		answer.KeepAlive = false
		h.answered(s, answer)
		return
	}
	h.mu.Unlock()
	h.link.reportClosed(wire.Early(err))
}
