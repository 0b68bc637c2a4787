package engine_test

import (
	"bytes"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frames is what the streams of one HTTP/2 connection share.
type frames struct {
	writing sync.Mutex
	framer  *http2.Framer
	encoder *hpack.Encoder
	block   bytes.Buffer
	deaf    atomic.Bool              // nothing more is read
	left    func(code http2.ErrCode) // is called when the client says GOAWAY; may be nil
	acked   func()                   // is called when the client answers a ping or settings; may be nil

	settled chan struct{} // closed when the client has acknowledged the first settings
	settle  sync.Once

	mu     sync.Mutex
	wider  *sync.Cond
	window map[uint32]int64 // what may still be sent on a stream; 0 is the connection
	first  int64            // of each stream
	over   bool
}

func newFrames(p *peer) *frames {
	const firstWindow = 65535
	f := &frames{
		framer: http2.NewFramer(p.Conn, p.in), settled: make(chan struct{}),
		window: map[uint32]int64{0: firstWindow}, first: firstWindow,
	}
	f.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.framer.AllowIllegalWrites = true
	f.encoder = hpack.NewEncoder(&f.block)
	f.wider = sync.NewCond(&f.mu)
	return f
}

// serveHTTP2 reads frames, and plays what the script says for each request beside that, once the client has nothing more
// to say by itself.
func (s server) serveHTTP2(p *peer, number int) {
	f := newFrames(p)
	f.left, f.acked, p.frames = s.left, s.acked, f
	defer f.end()
	if _, err := io.CopyN(io.Discard, p.in, int64(len(http2.ClientPreface))); err != nil || !settings()(p) || !s.greet.on(p) {
		return
	}
	for request := 0; !f.deaf.Load(); {
		frame, err := f.framer.ReadFrame()
		if err != nil {
			return
		}
		if head, ok := frame.(*http2.MetaHeadersFrame); ok {
			on := *p
			on.stream = head.StreamID
			moves := s.script(asked{number, request, head.PseudoValue("path")})
			go func() {
				<-f.settled
				moves.on(&on)
			}()
			request++
			continue
		}
		p.react(frame)
	}
	<-p.ending
}

// react does what HTTP/2 expects of whoever reads a frame.
func (p *peer) react(frame http2.Frame) {
	f := p.frames
	if head := frame.Header(); head.Flags.Has(http2.FlagPingAck) && f.acked != nil && (head.Type == http2.FramePing || head.Type == http2.FrameSettings) {
		f.acked()
	}
	switch frame := frame.(type) {
	case *http2.SettingsFrame:
		if value, ok := frame.Value(http2.SettingInitialWindowSize); ok {
			f.mu.Lock()
			f.first = int64(value)
			f.mu.Unlock()
		}
		if frame.IsAck() {
			f.settle.Do(func() { close(f.settled) })
		} else {
			p.write(func() error { return f.framer.WriteSettingsAck() })
		}
	case *http2.PingFrame:
		if !frame.IsAck() {
			p.write(func() error { return f.framer.WritePing(true, frame.Data) })
		}
	case *http2.WindowUpdateFrame:
		f.widen(frame.StreamID, int64(frame.Increment))
	case *http2.GoAwayFrame:
		if f.left != nil {
			f.left(frame.ErrCode)
		}
	}
}

// write writes frames; false where the client does not take them.
func (p *peer) write(frame func() error) bool {
	p.frames.writing.Lock()
	defer p.frames.writing.Unlock()
	return frame() == nil
}

func (f *frames) widen(stream uint32, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.window[stream] = f.of(stream) + bytes
	f.wider.Broadcast()
}

// of returns a stream's window.
func (f *frames) of(stream uint32) int64 {
	if left, known := f.window[stream]; known {
		return left
	}
	return f.first
}

// take waits until the client accepts more on a stream, and returns how much of it may be sent at once.
func (f *frames) take(stream uint32, most int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.over && min(f.of(0), f.of(stream)) <= 0 {
		f.wider.Wait()
	}
	n := min(most, f.of(0), f.of(stream))
	f.window[stream], f.window[0] = f.of(stream)-n, f.of(0)-n
	return n
}

func (f *frames) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	f.wider.Broadcast()
	f.settle.Do(func() { close(f.settled) })
}

// The moves of a stream.

// head sends header fields, given as names and values in turn; end means that no body follows.
func head(end bool, fields ...string) move {
	return func(p *peer) bool {
		f := p.frames
		return p.write(func() error {
			f.block.Reset()
			for i := 0; i < len(fields); i += 2 {
				_ = f.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
			}
			return f.writeBlock(p.stream, end)
		})
	}
}

// writeBlock writes the block of header fields in as many frames as it needs.
func (f *frames) writeBlock(stream uint32, end bool) error {
	part := f.block.Next(frameBytes)
	err := f.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, BlockFragment: part, EndStream: end, EndHeaders: f.block.Len() == 0,
	})
	for f.block.Len() > 0 && err == nil {
		part = f.block.Next(frameBytes)
		err = f.framer.WriteContinuation(stream, f.block.Len() == 0, part)
	}
	return err
}

// frameBytes is the largest frame that nobody refuses.
const frameBytes = 16384

// data sends a frame of a body.
func data(end bool, text string) move {
	return func(p *peer) bool {
		return p.write(func() error { return p.frames.framer.WriteData(p.stream, end, []byte(text)) })
	}
}

// zeros2 sends so many bytes of a body as the client makes room for them.
func zeros2(n int64, last bool) move {
	return func(p *peer) bool {
		for left := n; left > 0; {
			part := p.frames.take(p.stream, min(left, frameBytes))
			if part <= 0 {
				return false
			}
			left -= part
			if !p.write(func() error { return p.frames.framer.WriteData(p.stream, last && left == 0, nothing[:part]) }) {
				return false
			}
		}
		return true
	}
}

func settings(list ...http2.Setting) move {
	return func(p *peer) bool {
		return p.write(func() error { return p.frames.framer.WriteSettings(list...) })
	}
}

// rst ends the stream.
func rst(code http2.ErrCode) move {
	return func(p *peer) bool {
		return p.write(func() error { return p.frames.framer.WriteRSTStream(p.stream, code) })
	}
}

// goAway refuses the streams after one.
func goAway(last uint32, code http2.ErrCode) move {
	return func(p *peer) bool {
		return p.write(func() error { return p.frames.framer.WriteGoAway(last, code, nil) })
	}
}

// raw sends a frame as it is, on the stream or, where connection is true, on none.
func raw(kind http2.FrameType, flags http2.Flags, connection bool, payload []byte) move {
	return func(p *peer) bool {
		id := p.stream
		if connection {
			id = 0
		}
		return p.write(func() error { return p.frames.framer.WriteRawFrame(kind, flags, id, payload) })
	}
}

// repeat makes a move so many times, or until it fails; 0 is without an end.
func repeat(n int, do move) move {
	return func(p *peer) bool {
		for i := 0; n == 0 || i < n; i++ {
			if !do(p) {
				return false
			}
		}
		return true
	}
}

// deafen stops reading what the client says.
func deafen(p *peer) bool {
	p.frames.deaf.Store(true)
	return true
}

// The moves that HTTP/1.1 and HTTP/2 both have, each in its own words.

// answer begins an answer that is to have so many bytes.
func answer(status, bytes int) move {
	return func(p *peer) bool {
		length := strconv.Itoa(bytes)
		if p.frames != nil {
			return head(bytes == 0, ":status", strconv.Itoa(status), "content-length", length)(p)
		}
		return send(lines("HTTP/1.1 "+strconv.Itoa(status)+" OK", "Content-Length: "+length, "", ""))(p)
	}
}

// body sends a part of the body; last says whether it is the last.
func body(text string, last bool) move {
	return func(p *peer) bool {
		if p.frames != nil {
			return data(last, text)(p)
		}
		return send(text)(p)
	}
}

// long sends so many bytes of a body as fast as it goes.
func long(bytes int64, last bool) move {
	return func(p *peer) bool {
		if p.frames != nil {
			return zeros2(bytes, last)(p)
		}
		return zeros(bytes)(p)
	}
}

// drip sends a byte of the body every 20 ms.
func drip(p *peer) bool { return repeat(0, dripOne)(p) }

func dripOne(p *peer) bool { return body("x", false)(p) && mark(p) && pause(20*time.Millisecond)(p) }

// endless sends a body that does not end, as fast as it goes. It marks when the client has read some of it.
func endless(p *peer) bool {
	return long(3*buffered, false)(p) && mark(p) && long(terabyte, false)(p)
}

const terabyte = 1 << 40

// good answers with two bytes.
func good(p *peer) bool { return answer(200, 2)(p) && body("ok", true)(p) }
