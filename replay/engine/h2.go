package engine

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"plimsoll/replay/record"
)

// Windows as browsers open them: large enough that flow control never limits a download.
const (
	h2StreamWindow = 6 << 20
	h2ConnWindow   = 15 << 20
	h2FirstWindow  = 65535 // what both begin with (RFC 9113, 6.9.2)
	h2FrameBytes   = 16384 // the largest frame that every peer accepts
)

// h2 is one HTTP/2 connection (RFC 9113): many requests at once, each a stream. It sends no bodies. Frames and header
// compression are golang.org/x/net/http2's; the targets go out as they are in the log, which its client would not do.
type h2 struct {
	pool *pool
	cl   *client
	net  net.Conn

	mu        sync.Mutex // of all below, and of writing
	out       *bufio.Writer
	framer    *http2.Framer
	fields    bytes.Buffer
	encoder   *hpack.Encoder
	streams   map[uint32]*stream
	nextID    uint32
	maxOpen   uint32
	closed    bool // takes no new streams
	leaving   bool // closes when the last stream is done
	unackedIn int64
}

// stream is one request under way.
type stream struct {
	shot      *Shot
	status    int
	bytes     int64
	unackedIn int64
	timer     *time.Timer
}

func newH2(p *pool, cl *client, conn net.Conn) *h2 {
	h := &h2{pool: p, cl: cl, net: conn, streams: map[uint32]*stream{}, nextID: 1, maxOpen: 100}
	h.out = bufio.NewWriter(conn)
	h.framer = http2.NewFramer(h.out, bufio.NewReaderSize(conn, 32<<10))
	h.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	h.framer.MaxHeaderListSize = maxHeadBytes
	h.encoder = hpack.NewEncoder(&h.fields)
	return h
}

// run greets the server, sends the first request and what waits, and reads until the connection ends.
func (h *h2) run(first *Shot) {
	h.mu.Lock()
	_, _ = h.out.WriteString(http2.ClientPreface)
	_ = h.framer.WriteSettings(
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: h2StreamWindow},
	)
	_ = h.framer.WriteWindowUpdate(0, h2ConnWindow-h2FirstWindow)
	_ = h.write(first)
	h.mu.Unlock()
	h.pool.opened(h)

	err := h.read()

	_ = h.net.Close()
	h.pool.closed(h)
	h.fail(err)
	h.pool.gone(h.cl, h.net)
}

var (
	errH2Full   = errors.New("as many streams as the server allows")
	errH2Closed = errors.New("the connection takes no more streams")
)

// submit sends a request, or lets it wait for a stream or another connection.
func (h *h2) submit(s *Shot) {
	h.mu.Lock()
	err := h.write(s)
	h.mu.Unlock()
	if err != nil {
		h.pool.waitHTTP2(h, s)
	}
}

// write opens a stream for a request, under the lock. A failing connection is noticed by the reader.
func (h *h2) write(s *Shot) error {
	switch {
	case h.closed:
		return errH2Closed
	case uint32(len(h.streams)) >= h.maxOpen:
		return errH2Full
	}
	p := h.pool
	if s.startNS == 0 {
		s.startNS = p.clock.now()
	}
	s.flags |= record.HTTP2 | record.TLS
	if h.nextID > 1 {
		s.flags |= record.Reused
	}
	id := h.nextID
	h.nextID += 2
	st := &stream{shot: s}
	left := time.Duration(s.startNS + p.opts.Timeout.Nanoseconds() - p.clock.now())
	st.timer = time.AfterFunc(left, func() { h.timeout(id) })
	h.streams[id] = st
	h.writeHeaders(id, s)
	_ = h.out.Flush()
	return nil
}

func (h *h2) writeHeaders(id uint32, s *Shot) {
	p := h.pool
	h.fields.Reset()
	field := func(name, value string) {
		_ = h.encoder.WriteField(hpack.HeaderField{Name: name, Value: value})
	}
	field(":method", s.Method)
	field(":scheme", "https")
	field(":authority", s.host(p.target, p.headers))
	field(":path", s.Target)
	s.fields(p.headers, func(name, value string) { field(strings.ToLower(name), value) })
	if s.Method != "GET" && s.Method != "HEAD" {
		field("content-length", "0")
	}
	block := h.fields.Bytes()
	part := block[:min(len(block), h2FrameBytes)]
	block = block[len(part):]
	_ = h.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: part, EndStream: true, EndHeaders: len(block) == 0,
	})
	for len(block) > 0 {
		part = block[:min(len(block), h2FrameBytes)]
		block = block[len(part):]
		_ = h.framer.WriteContinuation(id, len(block) == 0, part)
	}
}

// read handles frames until the connection ends, and returns why.
func (h *h2) read() error {
	for {
		frame, err := h.framer.ReadFrame()
		if err != nil {
			var streamError http2.StreamError
			if errors.As(err, &streamError) {
				h.end(streamError.StreamID, record.BadResponse)
				continue
			}
			return early(err)
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
				h.reply(func() { _ = h.framer.WritePing(true, f.Data) })
			}
		case *http2.GoAwayFrame:
			h.onGoAway(f)
		}
		if h.isDone() {
			return errH2Closed
		}
	}
}

func (h *h2) reply(write func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	write()
	_ = h.out.Flush()
}

func (h *h2) onHeaders(f *http2.MetaHeadersFrame) {
	h.mu.Lock()
	st := h.streams[f.StreamID]
	bad := false
	if st != nil {
		if st.shot.firstNS == 0 {
			st.shot.firstNS = h.pool.clock.now()
		}
		if status := f.PseudoValue("status"); status != "" { // trailers have none
			n, err := strconv.Atoi(status)
			bad = err != nil || n < 100 || n > 999
			if !bad && n >= 200 {
				st.status = n
			}
			if n == 200 {
				h.pool.versions.learn(st.shot, versionOf(f))
			}
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

func versionOf(f *http2.MetaHeadersFrame) validator {
	var v validator
	for _, field := range f.RegularFields() {
		switch field.Name {
		case "etag":
			v.set(v.etag[:], &v.ne, []byte(field.Value))
		case "last-modified":
			v.set(v.modified[:], &v.nm, []byte(field.Value))
		}
	}
	return v
}

func (h *h2) onData(f *http2.DataFrame) {
	h.mu.Lock()
	size := int64(f.Length) // with padding: flow control counts it (RFC 9113, 6.9)
	h.unackedIn += size
	if h.unackedIn > h2ConnWindow/4 {
		_ = h.framer.WriteWindowUpdate(0, uint32(h.unackedIn))
		h.unackedIn = 0
	}
	if st := h.streams[f.StreamID]; st != nil {
		st.bytes += int64(len(f.Data()))
		st.unackedIn += size
		if st.unackedIn > h2StreamWindow/4 && !f.StreamEnded() {
			_ = h.framer.WriteWindowUpdate(f.StreamID, uint32(st.unackedIn))
			st.unackedIn = 0
		}
	}
	_ = h.out.Flush()
	h.mu.Unlock()
	if f.StreamEnded() {
		h.end(f.StreamID, record.None)
	}
}

func (h *h2) onReset(f *http2.RSTStreamFrame) {
	if f.ErrCode == http2.ErrCodeRefusedStream && h.retry(f.StreamID) {
		return
	}
	if f.ErrCode == http2.ErrCodeNo {
		h.end(f.StreamID, record.ClosedEarly)
		return
	}
	h.end(f.StreamID, record.H2Refused)
}

func (h *h2) onSettings(f *http2.SettingsFrame) {
	if f.IsAck() {
		return
	}
	h.reply(func() {
		_ = f.ForeachSetting(func(s http2.Setting) error {
			switch s.ID {
			case http2.SettingMaxConcurrentStreams:
				h.maxOpen = s.Val
			case http2.SettingHeaderTableSize:
				h.encoder.SetMaxDynamicTableSizeLimit(s.Val)
				h.encoder.SetMaxDynamicTableSize(min(s.Val, 4096))
			}
			return nil
		})
		_ = h.framer.WriteSettingsAck()
	})
	h.pool.nextHTTP2(h)
}

func (h *h2) hasRoom() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.closed && uint32(len(h.streams)) < h.maxOpen
}

// onGoAway takes no more streams; those that the server will not handle go to another connection.
func (h *h2) onGoAway(f *http2.GoAwayFrame) {
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
func (h *h2) retry(id uint32) bool {
	h.mu.Lock()
	st := h.streams[id]
	again := st != nil && !st.shot.retried
	if again {
		delete(h.streams, id)
		st.timer.Stop()
	}
	h.mu.Unlock()
	if again {
		h.pool.again(h.cl, st.shot)
	}
	return again
}

// end records a stream's request and lets the next one have its place.
func (h *h2) end(id uint32, kind record.ErrorKind) {
	now := h.pool.clock.now()
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

func (h *h2) timeout(id uint32) {
	h.reply(func() { _ = h.framer.WriteRSTStream(id, http2.ErrCodeCancel) })
	h.end(id, record.Timeout)
}

// leave closes the connection once nothing is under way.
func (h *h2) leave() {
	h.mu.Lock()
	h.leaving = true
	idle := len(h.streams) == 0
	h.mu.Unlock()
	if idle {
		_ = h.net.Close()
	}
}

func (h *h2) isDone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return (h.closed || h.leaving) && len(h.streams) == 0
}

// fail ends all that was under way when the connection ended.
func (h *h2) fail(err error) {
	h.mu.Lock()
	h.closed = true
	rest := h.streams
	h.streams = map[uint32]*stream{}
	h.mu.Unlock()
	now := h.pool.clock.now()
	for _, st := range rest {
		st.timer.Stop()
		h.pool.done(st.shot, now, st.status, st.bytes, kindOf(err))
	}
}
