package pool

import (
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// http2Conn is one HTTP/2 connection: many requests at once, each a stream.
type http2Conn struct {
	pool   *Pool
	client *client
	net    net.Conn

	mu        sync.Mutex // of all below, and of writing frames
	frames    *wire.HTTP2Frames
	streams   map[uint32]*stream
	nextID    uint32
	maxOpen   uint32
	closed    bool  // takes no new streams
	leaving   bool  // closes when the last stream is done
	unackedIn int64 // bytes of the connection's window that the server has not got back yet
}

// stream is one request under way.
type stream struct {
	shot      *exchange.Shot
	status    int
	bytes     int64
	unackedIn int64 // as for the connection
	timer     *time.Timer
}

// firstMaxOpen is how many streams are opened at once until the server has said how many it allows.
const firstMaxOpen = 100

func newHTTP2Conn(p *Pool, cl *client, conn net.Conn) *http2Conn {
	return &http2Conn{
		pool: p, client: cl, net: conn, frames: wire.NewHTTP2Frames(conn),
		streams: map[uint32]*stream{}, nextID: 1, maxOpen: firstMaxOpen,
	}
}

// run greets the server, sends the first request and what waits, and reads until the connection ends.
func (h *http2Conn) run(first *exchange.Shot) {
	h.mu.Lock()
	h.frames.Greet()
	_ = h.write(first)
	h.mu.Unlock()
	h.pool.opened(h)

	err := h.read()

	_ = h.net.Close()
	h.pool.closed(h)
	h.fail(err)
	h.pool.gone(h.client, h.net)
}

var (
	errHTTP2Full   = errors.New("as many streams as the server allows")
	errHTTP2Closed = errors.New("the connection takes no more streams")
)

// submit sends a request, or lets it wait for a stream or another connection.
func (h *http2Conn) submit(s *exchange.Shot) {
	h.mu.Lock()
	err := h.write(s)
	h.mu.Unlock()
	if err != nil {
		h.pool.waitHTTP2(h, s)
	}
}

// write opens a stream for a request, under the lock. A failing connection is noticed by the reader.
func (h *http2Conn) write(s *exchange.Shot) error {
	switch {
	case h.closed:
		return errHTTP2Closed
	case uint32(len(h.streams)) >= h.maxOpen:
		return errHTTP2Full
	}
	p := h.pool
	if s.StartNS == 0 {
		s.StartNS = p.Clock.Now()
	}
	s.Flags |= record.HTTP2 | record.TLS
	if h.nextID > 1 {
		s.Flags |= record.Reused
	}
	id := h.nextID
	h.nextID += 2
	st := &stream{shot: s}
	left := time.Duration(p.DeadlineNS(s) - p.Clock.Now())
	st.timer = time.AfterFunc(left, func() { h.timeout(id) })
	h.streams[id] = st
	h.frames.Request(id, &s.Request, p.Target.Host, p.Headers)
	h.frames.Flush()
	return nil
}

// read handles frames until the connection ends, and returns why.
func (h *http2Conn) read() error {
	for {
		frame, err := h.frames.Read()
		if err != nil {
			var streamError http2.StreamError
			if errors.As(err, &streamError) {
				h.end(streamError.StreamID, record.BadResponse)
				continue
			}
			return wire.Early(err)
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			h.onHeaders(f)
		case *http2.DataFrame:
			h.onData(f)
		case *http2.RSTStreamFrame:
			h.onReset(f)
		case *http2.SettingsFrame:
			h.onSettings(f)
		case *http2.PingFrame:
			if !f.IsAck() {
				h.reply(func() { h.frames.Pong(f) })
			}
		case *http2.GoAwayFrame:
			h.onGoAway(f)
		}
		if h.isDone() {
			return errHTTP2Closed
		}
	}
}

func (h *http2Conn) reply(write func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	write()
	h.frames.Flush()
}

func (h *http2Conn) onHeaders(f *http2.MetaHeadersFrame) {
	h.mu.Lock()
	st := h.streams[f.StreamID]
	bad := false
	if st != nil {
		if st.shot.FirstNS == 0 {
			st.shot.FirstNS = h.pool.Clock.Now()
		}
		status, ok := wire.HTTP2Status(f)
		bad = !ok
		if ok && status >= 200 {
			st.status = status
		}
		if status == 200 {
			version := wire.HTTP2Validator(f)
			h.pool.Answered(st.shot, status, &version)
		}
	}
	h.mu.Unlock()
	switch {
	case bad:
		h.end(f.StreamID, record.BadResponse)
	case f.StreamEnded():
		h.end(f.StreamID, record.None)
	}
}

func (h *http2Conn) onData(f *http2.DataFrame) {
	h.mu.Lock()
	size := int64(f.Length) // with padding: flow control counts it (RFC 9113, 6.9)
	h.unackedIn += size
	if h.unackedIn > wire.HTTP2ConnWindow/4 {
		h.frames.Widen(0, h.unackedIn)
		h.unackedIn = 0
	}
	if st := h.streams[f.StreamID]; st != nil {
		st.bytes += int64(len(f.Data()))
		st.unackedIn += size
		if st.unackedIn > wire.HTTP2StreamWindow/4 && !f.StreamEnded() {
			h.frames.Widen(f.StreamID, st.unackedIn)
			st.unackedIn = 0
		}
	}
	h.frames.Flush()
	h.mu.Unlock()
	if f.StreamEnded() {
		h.end(f.StreamID, record.None)
	}
}

func (h *http2Conn) onReset(f *http2.RSTStreamFrame) {
	if f.ErrCode == http2.ErrCodeRefusedStream && h.retry(f.StreamID) {
		return
	}
	if f.ErrCode == http2.ErrCodeNo {
		h.end(f.StreamID, record.ClosedEarly)
		return
	}
	h.end(f.StreamID, record.H2Refused)
}

func (h *http2Conn) onSettings(f *http2.SettingsFrame) {
	if f.IsAck() {
		return
	}
	h.reply(func() { h.maxOpen = h.frames.Settle(f, h.maxOpen) })
	h.pool.nextHTTP2(h)
}

func (h *http2Conn) hasRoom() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.closed && uint32(len(h.streams)) < h.maxOpen
}

// onGoAway takes no more streams; those that the server will not handle go to another connection.
func (h *http2Conn) onGoAway(f *http2.GoAwayFrame) {
	h.mu.Lock()
	h.closed = true
	var refused []uint32
	for id := range h.streams {
		if id > f.LastStreamID {
			refused = append(refused, id)
		}
	}
	h.mu.Unlock()
	h.pool.closed(h)
	for _, id := range refused {
		if !h.retry(id) {
			h.end(id, record.H2Refused)
		}
	}
}

// retry sends a stream's request again on another connection, once.
func (h *http2Conn) retry(id uint32) bool {
	h.mu.Lock()
	st := h.streams[id]
	again := st != nil && !st.shot.Retried
	if again {
		delete(h.streams, id)
		st.timer.Stop()
	}
	h.mu.Unlock()
	if again {
		h.pool.again(h.client, st.shot)
	}
	return again
}

// end records a stream's request and lets the next one have its place.
func (h *http2Conn) end(id uint32, kind record.ErrorKind) {
	now := h.pool.Clock.Now()
	h.mu.Lock()
	st := h.streams[id]
	delete(h.streams, id)
	h.mu.Unlock()
	if st == nil {
		return
	}
	st.timer.Stop()
	if kind == record.None && st.status == 0 {
		kind = record.BadResponse
	}
	h.pool.done(st.shot, now, st.status, st.bytes, kind)
	h.pool.nextHTTP2(h)
}

func (h *http2Conn) timeout(id uint32) {
	h.reply(func() { h.frames.Cancel(id) })
	h.end(id, record.Timeout)
}

// leave closes the connection once nothing is under way.
func (h *http2Conn) leave() {
	h.mu.Lock()
	h.leaving = true
	idle := len(h.streams) == 0
	h.mu.Unlock()
	if idle {
		_ = h.net.Close()
	}
}

func (h *http2Conn) isDone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return (h.closed || h.leaving) && len(h.streams) == 0
}

// fail ends all that was under way when the connection ended.
func (h *http2Conn) fail(err error) {
	h.mu.Lock()
	h.closed = true
	rest := h.streams
	h.streams = map[uint32]*stream{}
	h.mu.Unlock()
	now := h.pool.Clock.Now()
	for _, st := range rest {
		st.timer.Stop()
		h.pool.done(st.shot, now, st.status, st.bytes, exchange.KindOf(err))
	}
}
