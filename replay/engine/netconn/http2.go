// HTTP/2 on one connection: each request is a stream; what is written goes through an outbox.

package netconn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// http2Connection speaks HTTP/2: many requests at once, each a stream.
type http2Connection struct {
	link    *link
	out     *outbox
	useless useless

	mu        sync.Mutex // of all below, and of writing frames
	frames    *wire.HTTP2Frames
	streams   map[uint32]*stream
	ids       map[*exchange.Attempt]uint32
	nextID    uint32
	leaving   bool  // the server takes no more streams
	unackedIn int64 // bytes of the connection's window that the server has not got back yet
}

// stream is one request under way.
type stream struct {
	attempt   *exchange.Attempt
	answer    wire.Response
	firstNS   int64
	length    int64 // of the body, as the headers have it; −1: unknown
	unackedIn int64 // as for the connection
}

func newHTTP2(l *link, conn net.Conn) *http2Connection {
	out := newOutbox(func() { _ = conn.SetReadDeadline(l.driver.Clock.T0) }) // reading says what became of it
	h := &http2Connection{
		link: l, out: out, frames: wire.NewHTTP2Frames(conn, out),
		streams: map[uint32]*stream{}, ids: map[*exchange.Attempt]uint32{}, nextID: 1,
	}
	h.frames.Greet()
	go out.carry(conn)
	return h
}

func (h *http2Connection) stop() { h.out.finish(0) }

func (h *http2Connection) send(s *exchange.Attempt) {
	d := h.link.driver
	h.mu.Lock()
	if h.leaving { // since the pool chose this connection
		h.mu.Unlock()
		d.update(func(pool *exchange.ConnectionPool, now int64) {
			pool.Leaving(h.link.conn, now)
			pool.Refused(h.link.conn, s, now)
		})
		return
	}
	defer h.mu.Unlock()
	id := h.nextID
	h.nextID += 2
	h.streams[id] = &stream{attempt: s, length: -1}
	h.ids[s] = id
	h.frames.Request(id, &s.Request, d.Target.Host, d.Headers)
	h.out.Flush()
}

func (h *http2Connection) cancel(s *exchange.Attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id, known := h.ids[s]; known {
		h.removeStream(id)
		h.frames.Cancel(id)
		h.out.Flush()
	}
}

func (h *http2Connection) received(s *exchange.Attempt) exchange.PartialAnswer {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.streams[h.ids[s]]
	if st == nil {
		return exchange.PartialAnswer{}
	}
	return exchange.PartialAnswer{Status: st.answer.Status, Bytes: st.answer.Bytes, Served: st.answer.Served, FirstNS: st.firstNS}
}

// removeStream ends a stream. It is called with the lock.
func (h *http2Connection) removeStream(id uint32) *stream {
	st := h.streams[id]
	if st != nil {
		delete(h.streams, id)
		delete(h.ids, st.attempt)
	}
	return st
}

// read handles frames until the connection ends.
func (h *http2Connection) read() {
	for {
		frame, err := h.frames.Read()
		if _, push := frame.(*http2.PushPromiseFrame); push && err == nil {
			err = http2.ConnectionError(http2.ErrCodeProtocol) // the settings allow none
		}
		var ofStream http2.StreamError
		var useful bool
		switch {
		case errors.As(err, &ofStream):
			useful, err = h.failStream(ofStream.StreamID, record.BadResponse), nil
		case err == nil:
			useful = h.handle(frame)
		}
		if err == nil && !useful && h.useless.tooMany(h.link.driver.Clock.Now()) {
			err = http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
		}
		if err != nil {
			code, err := explain(err)
			if code != http2.ErrCodeNo {
				h.leave(code)
			}
			h.link.reportClosed(err)
			return
		}
	}
}

// mostUseless is how many frames a second a server may send that bring no answer on.
const mostUseless = 10_000

// useless counts them.
type useless struct {
	sinceNS int64
	frames  int
}

// tooMany counts one more, and reports whether that is more than mostUseless in a second.
func (u *useless) tooMany(now int64) bool {
	if now-u.sinceNS >= int64(time.Second) {
		*u = useless{sinceNS: now}
	}
	u.frames++
	return u.frames > mostUseless
}

// How long a server that broke the rules has to take in that it did, and how much more of it is read for that.
const (
	leaveWithin = time.Second
	leaveBytes  = 8 << 20
)

// leave tells the server why the connection ends, and reads on until the server closes it, too: what is closed with
// bytes unread is reset, and a server that is reset may never read why.
func (h *http2Connection) leave(code http2.ErrCode) {
	tcp := h.link.tcp()
	_ = tcp.SetReadDeadline(time.Now().Add(leaveWithin))
	h.mu.Lock()
	h.frames.Leave(code)
	h.mu.Unlock()
	h.out.finish(leaveWithin)
	_ = tcp.CloseWrite()
	_, _ = io.CopyN(io.Discard, tcp, leaveBytes)
}

// explain turns what went wrong on a connection into an error that KindOf knows, and into what to tell the server;
// ErrCodeNo if nobody can be informed.
func explain(err error) (http2.ErrCode, error) {
	var network net.Error
	var connection http2.ConnectionError
	bad := fmt.Errorf("%w: %s", wire.ErrBadResponse, err)
	switch {
	case errors.As(err, &connection):
		return http2.ErrCode(connection), bad
	case errors.Is(err, http2.ErrFrameTooLarge):
		return http2.ErrCodeFrameSize, bad
	case errors.As(err, &network) && network.Timeout(): // the outbox is full
		return http2.ErrCodeNo, bad
	case errors.Is(err, io.ErrUnexpectedEOF):
		return http2.ErrCodeNo, wire.ErrClosedEarly
	}
	return http2.ErrCodeNo, wire.Early(err)
}

// handle returns whether a frame brought an answer on: a head, bytes of a body, or an end.
func (h *http2Connection) handle(frame http2.Frame) bool {
	switch f := frame.(type) {
	case *http2.MetaHeadersFrame:
		return h.onHeaders(f)
	case *http2.DataFrame:
		return h.onData(f)
	case *http2.RSTStreamFrame:
		return h.onReset(f)
	case *http2.SettingsFrame:
		h.onSettings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			h.mu.Lock()
			h.frames.Pong(f)
			h.mu.Unlock()
			h.out.Flush()
		}
	case *http2.GoAwayFrame:
		h.onGoAway(f)
	}
	return false
}

func (h *http2Connection) onHeaders(f *http2.MetaHeadersFrame) bool {
	status, ok := wire.HTTP2Status(f)
	length, plausible := wire.HTTP2Length(f)
	ok = ok && plausible
	h.mu.Lock()
	st := h.streams[f.StreamID]
	useful := st != nil && (f.StreamEnded() || st.answer.Status == 0 && status >= 200)
	if st != nil && ok {
		if st.firstNS == 0 {
			st.firstNS = h.link.driver.Clock.Now()
		}
		if status >= 200 {
			st.answer.TakeHTTP2(f, status, h.link.driver.Software)
			st.length = length
			if st.attempt.HasSession() {
				st.answer.SessionInfo = wire.HTTP2Session(f, st.attempt.ReadsPages())
			}
		}
	}
	h.mu.Unlock()
	switch {
	case !ok:
		return h.failStream(f.StreamID, record.BadResponse)
	case f.StreamEnded():
		h.finishStream(f.StreamID)
	}
	return useful
}

func (h *http2Connection) onData(f *http2.DataFrame) bool {
	h.mu.Lock()
	size := int64(f.Length) // with padding: flow control counts it (RFC 9113, 6.9)
	h.unackedIn += size
	if h.unackedIn > wire.HTTP2ConnWindow/4 {
		h.frames.Widen(0, h.unackedIn)
		h.unackedIn = 0
	}
	st := h.streams[f.StreamID]
	if st != nil {
		st.answer.Bytes += int64(len(f.Data()))
		st.answer.SessionInfo.Keep(f.Data())
		st.unackedIn += size
		if st.unackedIn > wire.HTTP2StreamWindow/4 && !f.StreamEnded() {
			h.frames.Widen(f.StreamID, st.unackedIn)
			st.unackedIn = 0
		}
	}
	h.mu.Unlock()
	h.out.Flush()
	if f.StreamEnded() {
		h.finishStream(f.StreamID)
	}
	return st != nil && (len(f.Data()) > 0 || f.StreamEnded())
}

func (h *http2Connection) onReset(f *http2.RSTStreamFrame) bool {
	switch f.ErrCode {
	case http2.ErrCodeRefusedStream:
		return h.refuseStream(f.StreamID)
	case http2.ErrCodeNo:
		return h.failStream(f.StreamID, record.ClosedEarly)
	}
	return h.failStream(f.StreamID, record.H2Refused)
}

func (h *http2Connection) onSettings(f *http2.SettingsFrame) {
	if f.IsAck() {
		return
	}
	h.mu.Lock()
	room, given := h.frames.Settle(f)
	h.mu.Unlock()
	h.out.Flush()
	if given {
		h.link.driver.update(func(pool *exchange.ConnectionPool, now int64) { pool.Allow(h.link.conn, room, now) })
	}
}

// onGoAway takes no more streams; those that the server will not handle go to another connection.
func (h *http2Connection) onGoAway(f *http2.GoAwayFrame) {
	h.mu.Lock()
	h.leaving = true
	var refused []uint32
	for id := range h.streams {
		if id > f.LastStreamID {
			refused = append(refused, id)
		}
	}
	h.mu.Unlock()
	h.link.driver.update(func(pool *exchange.ConnectionPool, now int64) { pool.Leaving(h.link.conn, now) })
	for _, id := range refused {
		h.refuseStream(id)
	}
}

// finishStream tells the pool of a whole answer, where it is one.
func (h *http2Connection) finishStream(id uint32) {
	h.mu.Lock()
	st := h.streams[id]
	if st == nil {
		h.mu.Unlock()
		return
	}
	noBody := st.attempt.Method == "HEAD" || st.answer.Status == 304
	if st.answer.Status == 0 || st.length >= 0 && st.length != st.answer.Bytes && !noBody {
		h.mu.Unlock()
		h.failStream(id, record.BadResponse)
		return
	}
	h.removeStream(id)
	h.mu.Unlock()
	h.link.driver.update(func(pool *exchange.ConnectionPool, now int64) {
		st.attempt.FirstNS = st.firstNS
		pool.Answered(h.link.conn, st.attempt, &st.answer, now)
	})
}

// failStream tells the pool that a stream has failed, where there is such a stream. What had come is still known then.
func (h *http2Connection) failStream(id uint32, kind record.ErrorKind) bool {
	h.mu.Lock()
	st := h.streams[id]
	h.mu.Unlock()
	if st == nil {
		return false
	}
	h.link.driver.update(func(pool *exchange.ConnectionPool, now int64) {
		pool.Failed(h.link.conn, st.attempt, kind, now)
		h.mu.Lock()
		h.removeStream(id)
		h.mu.Unlock()
	})
	return true
}

func (h *http2Connection) refuseStream(id uint32) bool {
	h.mu.Lock()
	st := h.removeStream(id)
	h.mu.Unlock()
	if st != nil {
		h.link.driver.update(func(pool *exchange.ConnectionPool, now int64) { pool.Refused(h.link.conn, st.attempt, now) })
	}
	return st != nil
}

// mostUnwritten bounds what a server that does not read may leave unwritten.
const mostUnwritten = 1 << 20

var errUnwritten = errors.New("the server does not read")

// outbox holds what is to be written to a connection, so that whoever writes never waits for the network.
type outbox struct {
	full    func() // is called when the server does not read
	mu      sync.Mutex
	changed *sync.Cond
	buffer  []byte
	err     error
	carried chan struct{} // closed when nothing more is written
}

func newOutbox(full func()) *outbox {
	o := &outbox{full: full, carried: make(chan struct{})}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// Write adds bytes that leave with the next Flush, or before.
func (o *outbox) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && len(o.buffer)+len(b) > mostUnwritten {
		o.err = errUnwritten
		o.full()
	}
	if o.err != nil {
		return 0, o.err
	}
	o.buffer = append(o.buffer, b...)
	return len(b), nil
}

// Flush has written what was added.
func (o *outbox) Flush() { o.changed.Signal() }

// finish has the rest written, and waits for that for so long.
func (o *outbox) finish(within time.Duration) {
	o.mu.Lock()
	if o.err == nil {
		o.err = io.EOF
	}
	o.mu.Unlock()
	o.changed.Signal()
	select {
	case <-o.carried:
	case <-time.After(within):
	}
}

// carry writes to the connection until that fails or the outbox is finished.
func (o *outbox) carry(to io.Writer) {
	defer close(o.carried)
	var written []byte
	for {
		o.mu.Lock()
		for len(o.buffer) == 0 && o.err == nil {
			o.changed.Wait()
		}
		if o.err != nil && (len(o.buffer) == 0 || !errors.Is(o.err, io.EOF)) {
			o.mu.Unlock()
			return
		}
		out := o.buffer
		o.buffer = written[:0]
		o.mu.Unlock()
		if _, err := to.Write(out); err != nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.err = err
			return
		}
		written = out
	}
}
