// The frames of one HTTP/2 connection, written and read.

package wire

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Flow-control windows as browsers open them: large enough that flow control never limits a download.
const (
	HTTP2StreamWindow = 6 << 20
	HTTP2ConnWindow   = 15 << 20

	http2FirstWindow = 65535 // what both begin with (RFC 9113, 6.9.2)
	http2FrameBytes  = 16384 // the largest frame that every peer accepts
	http2TableBytes  = 4096  // of header compression
	http2ReadBytes   = 8 << 10

	// What a frame may take, with the rest of its head: frames that continue a head may be empty, and so have no end.
	http2MostBytes = maxHeadBytes + http2FrameBytes
)

// HTTP2Frames writes and reads the frames of one HTTP/2 connection (RFC 9113). It sends no bodies. Frames and header
// compression are golang.org/x/net/http2's; the targets go out as they are in the log, which its client would not do.
// One goroutine at a time may write, and one may read.
type HTTP2Frames struct {
	out     io.Writer
	in      *io.LimitedReader
	framer  *http2.Framer
	fields  bytes.Buffer
	encoder *hpack.Encoder
}

// NewHTTP2Frames returns the frames of a fresh connection. What is written goes to out, whose errors the reader of in is
// to notice.
func NewHTTP2Frames(in io.Reader, out io.Writer) *HTTP2Frames {
	h := &HTTP2Frames{out: out, in: &io.LimitedReader{R: bufio.NewReaderSize(in, http2ReadBytes)}}
	h.framer = http2.NewFramer(out, h.in)
	h.framer.SetMaxReadFrameSize(http2FrameBytes)
	h.framer.ReadMetaHeaders = hpack.NewDecoder(http2TableBytes, nil)
	h.framer.MaxHeaderListSize = maxHeadBytes
	h.encoder = hpack.NewEncoder(&h.fields)
	return h
}

// Read returns the next frame; it is valid until the next call. A head that does not end is an error of the connection.
func (h *HTTP2Frames) Read() (http2.Frame, error) {
	h.in.N = http2MostBytes
	frame, err := h.framer.ReadFrame()
	if err != nil && h.in.N == 0 {
		return nil, http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	return frame, err
}

// Greet writes the preface, the settings and the connection's window.
func (h *HTTP2Frames) Greet() {
	_, _ = io.WriteString(h.out, http2.ClientPreface)
	_ = h.framer.WriteSettings(
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: HTTP2StreamWindow},
	)
	_ = h.framer.WriteWindowUpdate(0, HTTP2ConnWindow-http2FirstWindow)
}

// Request writes a whole request as the stream with this number. site is the target's host.
func (h *HTTP2Frames) Request(id uint32, r *Request, site string, own *Headers) {
	block := h.headerBlock(r, site, own)
	part := block[:min(len(block), http2FrameBytes)]
	block = block[len(part):]
	_ = h.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: part, EndStream: true, EndHeaders: len(block) == 0,
	})
	for len(block) > 0 {
		part = block[:min(len(block), http2FrameBytes)]
		block = block[len(part):]
		_ = h.framer.WriteContinuation(id, len(block) == 0, part)
	}
}

// headerBlock returns the compressed headers of a request; they are valid until the next call.
func (h *HTTP2Frames) headerBlock(r *Request, site string, own *Headers) []byte {
	h.fields.Reset()
	field := func(name, value string) {
		_ = h.encoder.WriteField(hpack.HeaderField{Name: name, Value: value})
	}
	field(":method", r.Method)
	field(":scheme", "https")
	field(":authority", r.Authority(site, own))
	field(":path", r.Target)
	r.fields(own, func(name, value string) { field(strings.ToLower(name), value) })
	if r.Method != "GET" && r.Method != "HEAD" {
		field("content-length", "0")
	}
	return h.fields.Bytes()
}

// Widen reopens a stream's window by a number of bytes; stream 0 is the connection.
func (h *HTTP2Frames) Widen(id uint32, bytes int64) {
	_ = h.framer.WriteWindowUpdate(id, uint32(bytes))
}

// Pong answers a ping.
func (h *HTTP2Frames) Pong(ping *http2.PingFrame) { _ = h.framer.WritePing(true, ping.Data) }

// Cancel ends a stream.
func (h *HTTP2Frames) Cancel(id uint32) { _ = h.framer.WriteRSTStream(id, http2.ErrCodeCancel) }

// Settle applies the server's settings and acknowledges them. It returns how many streams the server allows at once,
// where the settings say so.
func (h *HTTP2Frames) Settle(f *http2.SettingsFrame) (maxOpen int, given bool) {
	_ = f.ForeachSetting(func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingMaxConcurrentStreams:
			maxOpen, given = int(min(s.Val, math.MaxInt32)), true
		case http2.SettingHeaderTableSize:
			h.encoder.SetMaxDynamicTableSizeLimit(s.Val)
			h.encoder.SetMaxDynamicTableSize(min(s.Val, http2TableBytes))
		}
		return nil
	})
	_ = h.framer.WriteSettingsAck()
	return maxOpen, given
}

// HTTP2Length returns the length of the body that a response's headers promise; −1 where they do not. ok is false where
// it is not a length, or a different one than before.
func HTTP2Length(f *http2.MetaHeadersFrame) (length int64, ok bool) {
	length = -1
	for _, field := range f.RegularFields() {
		if field.Name == "content-length" {
			n, valid := decimal([]byte(field.Value))
			if !valid || length >= 0 && length != n {
				return -1, false
			}
			length = n
		}
	}
	return length, true
}

// Leave tells the server why the connection ends.
func (h *HTTP2Frames) Leave(code http2.ErrCode) { _ = h.framer.WriteGoAway(0, code, nil) }

// HTTP2Status returns the status in a response's headers: 0 in trailers, which have none. ok is false where it is
// not a status.
func HTTP2Status(f *http2.MetaHeadersFrame) (status int, ok bool) {
	text := f.PseudoValue("status")
	if text == "" {
		return 0, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 100 && n <= 999
}
