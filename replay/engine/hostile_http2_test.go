package engine_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

func TestHTTP2Answers(t *testing.T) {
	for _, row := range answers2 {
		onEach(t, row.says, http2only, row.answered)
	}
}

var ok2 = head(false, ":status", "200", "content-length", "2")

// answers2 are whole, whatever they look like.
var answers2 = []reply{
	{says: "an answer with a length", play: play{good}, want: "200 2", keep: true},
	{says: "an answer without a length", play: play{head(false, ":status", "200"), data(true, "ok")}, want: "200 2", keep: true},
	{says: "an answer in pieces", play: play{ok2, data(false, "o"), data(false, ""), data(false, "k"), data(true, "")}, want: "200 2", keep: true},
	{says: "an answer without a body", play: play{head(true, ":status", "404")}, want: "404 0", keep: true},
	{says: "early hints come first", play: play{head(false, ":status", "103", "link", "</a.css>"), good}, want: "200 2", keep: true},
	{says: "trailers", play: play{ok2, data(false, "ok"), head(true, "x-sum", "1")}, want: "200 2", keep: true},
	{says: "HEAD has a length and no body", play: play{head(true, ":status", "200", "content-length", "20")}, want: "200 0", keep: true, method: "HEAD"},
	{says: "a 304 with a length has no body", play: play{head(true, ":status", "304", "content-length", "20")}, want: "304 0", keep: true},
	{says: "padding is no body", play: play{ok2, raw(http2.FrameData, http2.FlagDataPadded|http2.FlagDataEndStream, false, []byte("\x03okPAD"))}, want: "200 2", keep: true},
	{says: "a frame of a kind that nobody knows", play: play{raw(0xee, 0xff, false, []byte("?")), raw(0xee, 0, true, nil), good}, want: "200 2", keep: true},
	{says: "settings and pings in between", play: play{repeat(500, play{settings(), ping}.on), good}, want: "200 2", keep: true},
	{says: "no table for compressed headers", play: play{settings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0}), good}, want: "200 2", keep: true},
	{says: "eight thousand header lines", play: play{head(false, append([]string{":status", "200"}, manyFields(8000)...)...), data(true, "ok")}, want: "200 2", keep: true},
	{says: "no error after a whole answer", play: play{good, rst(http2.ErrCodeNo)}, want: "200 2", keep: true},
	{says: "the server leaves, and answers before", play: play{leave, good}, want: "200 2"},
	{says: "the server says that it will leave, and answers before", play: play{goAway(1<<31-1, http2.ErrCodeNo), good}, want: "200 2"},
}

// leave refuses the streams after the one that was asked on.
func leave(p *peer) bool { return goAway(p.stream, http2.ErrCodeNo)(p) }

var ping = raw(http2.FramePing, 0, true, []byte("8 bytes!"))

func manyFields(n int) []string {
	return strings.Split(strings.Repeat("x-field\n0123456789\n", n), "\n")[:2*n]
}

func TestHTTP2Failures(t *testing.T) {
	for _, row := range failures2 {
		onEach(t, row.says, http2only, row.answered)
	}
}

// failures2 are answers that are none. They cost their stream, and the connection goes on.
var failures2 = []reply{
	{says: "a body shorter than its length", play: play{answer(200, 9), data(true, "half")}, want: "200 4 bad_response", keep: true},
	{says: "no body, but a length", play: play{head(true, ":status", "200", "content-length", "9")}, want: "200 0 bad_response", keep: true},
	{says: "a body longer than its length", play: play{ok2, data(true, "ok and more")}, want: "200 * bad_response", keep: true},
	{says: "trailers before the body is whole", play: play{answer(200, 9), data(false, "half"), head(true, "x-sum", "1")}, want: "200 4 bad_response", keep: true},
	{says: "two different lengths", play: play{head(false, ":status", "200", "content-length", "1", "content-length", "2"), data(true, "ok")}, want: "0 0 bad_response", keep: true},
	{says: "a length that is not a number", play: play{head(false, ":status", "200", "content-length", "two"), data(true, "ok")}, want: "0 0 bad_response", keep: true},
	{says: "no status", play: play{head(true, "x-status", "200")}, want: "0 0 bad_response", keep: true},
	{says: "a status of letters", play: play{head(true, ":status", "abc")}, want: "0 0 bad_response", keep: true},
	{says: "a status of two digits", play: play{head(true, ":status", "99")}, want: "0 0 bad_response", keep: true},
	{says: "a body without a head", play: play{data(true, "ok")}, want: "0 2 bad_response", keep: true},
	{says: "early hints and nothing after them", play: play{head(true, ":status", "103")}, want: "0 0 bad_response", keep: true},
	{says: "a header name in capitals", play: play{head(true, ":status", "200", "X-Field", "1")}, want: "0 0 bad_response", keep: true},
	{says: "the stream is reset before the answer", play: play{rst(http2.ErrCodeInternal)}, want: "0 0 h2_refused", keep: true},
	{says: "the stream is reset in the middle", play: play{answer(200, 9), data(false, "half"), rst(http2.ErrCodeCancel)}, want: "200 4 h2_refused", keep: true},
	{says: "the stream is reset without an error in the middle", play: play{answer(200, 9), data(false, "half"), rst(http2.ErrCodeNo)}, want: "200 4 closed_early", keep: true},
}

// breach is a frame that HTTP/2 forbids. It costs the connection, which the client leaves saying why.
type breach struct {
	says string
	play play
	want string // of the first request
	code http2.ErrCode
}

var breaches = []breach{
	{"a body in a frame that is too long", play{answer(200, 99_999), raw(http2.FrameData, 0, false, make([]byte, frameBytes+1)), silence}, "200 0 bad_response", http2.ErrCodeFrameSize},
	{"a head in a frame that is too long", play{raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, false, make([]byte, frameBytes+1)), silence}, "0 0 bad_response", http2.ErrCodeFrameSize},
	{"settings in a frame that is too long", play{raw(http2.FrameSettings, 0, true, make([]byte, frameBytes+2)), silence}, "0 0 bad_response", http2.ErrCodeFrameSize},
	{"an unknown frame of 16 megabytes", play{raw(0xee, 0, false, make([]byte, 1<<24-1)), silence}, "0 0 bad_response", http2.ErrCodeFrameSize},
	{"a ping that is too short", play{raw(http2.FramePing, 0, true, []byte("short")), silence}, "0 0 bad_response", http2.ErrCodeFrameSize},
	{"a body on no stream", play{raw(http2.FrameData, 0, true, []byte("ok")), silence}, "0 0 bad_response", http2.ErrCodeProtocol},
	{"more padding than there is", play{ok2, raw(http2.FrameData, http2.FlagDataPadded, false, []byte("\xffok")), silence}, "200 0 bad_response", http2.ErrCodeProtocol},
	{"a push, though none is allowed", play{raw(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, false, []byte("\x00\x00\x00\x02\x88")), silence}, "0 0 bad_response", http2.ErrCodeProtocol},
	{"the rest of a head that never began", play{raw(http2.FrameContinuation, http2.FlagContinuationEndHeaders, false, []byte("\x88")), silence}, "0 0 bad_response", http2.ErrCodeProtocol},
	{"something else in the middle of a head", play{raw(http2.FrameHeaders, 0, false, []byte("\x88")), ping, silence}, "0 0 bad_response", http2.ErrCodeProtocol},
	{"a head that cannot be decompressed", play{raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, false, []byte("\xff\xff\xff\xff\xff\xff\xff\xff")), silence}, "0 0 bad_response", http2.ErrCodeCompression},
	{"a head without an end that does not grow", play{
		raw(http2.FrameHeaders, 0, false, []byte("\x88")), again(strings.Repeat("\x00\x00\x00\x09\x00\x00\x00\x00\x01", 1800), 0),
	}, "0 0 bad_response", http2.ErrCodeEnhanceYourCalm},
	{"HTTP 1.1 after all", play{send(whole), silence}, "0 0 bad_response", http2.ErrCodeFrameSize},
}

func TestHTTP2Breaches(t *testing.T) {
	for _, row := range breaches {
		onEach(t, row.says, http2only, row.leaves)
	}
}

func (row breach) leaves(t *testing.T, r *ride) {
	codes, started := make(chan http2.ErrCode, 1), time.Now()
	var acks atomic.Int64
	s := server{
		script: asking(map[string]play{"/1": row.play}), acked: func() { acks.Add(1) },
		left: func(code http2.ErrCode) {
			select {
			case codes <- code:
			default:
			}
		},
	}
	r.opts.Timeout = 2 * time.Second
	r.run(t, s.start(t, r.driver), gets(2))
	if r.expect(t, row.want+"; 200 2"); r.again {
		return
	}
	select {
	case got := <-codes:
		if got != row.code {
			t.Errorf("left with GOAWAY %v, want %v", got, row.code)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("left without GOAWAY, want %v", row.code)
	}
	if most := 10_000 * (2 + int64(time.Since(started).Seconds())); acks.Load() > most {
		t.Errorf("acknowledged %d frames, want %d at most", acks.Load(), most)
	}
}

// A server that says much and never answers is left, whatever it says.
func TestHTTP2Floods(t *testing.T) {
	for says, frame := range map[string]string{
		"pings":              "\x00\x00\x08\x06\x00\x00\x00\x00\x008 bytes!",
		"settings":           "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64",
		"wider windows":      "\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x01",
		"windows of nothing": "\x00\x00\x04\x08\x00\x00\x00\x00\x09\x00\x00\x00\x00",
		"priorities":         "\x00\x00\x05\x02\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00",
		"empty bodies":       "\x00\x00\x00\x00\x00\x00\x00\x00\x01",
		"other bodies":       "\x00\x00\x01\x00\x00\x00\x00\x00\x09x",
		"resets of others":   "\x00\x00\x04\x03\x00\x00\x00\x00\x09\x00\x00\x00\x08",
		"early hints":        "\x00\x00\x05\x01\x04\x00\x00\x00\x01\x08\x03103",
		"heads of others":    "\x00\x00\x01\x01\x04\x00\x00\x00\x09\x88",
		"unknown frames":     "\x00\x00\x01\xee\x00\x00\x00\x00\x00?",
	} {
		row := breach{says, play{again(strings.Repeat(frame, 900), 0)}, "0 0 bad_response", http2.ErrCodeEnhanceYourCalm}
		onEachOf(t, says, http2only, loops[1:2], row.leaves)
	}
}

// A head has to end, whatever it is made of: past a megabyte it is refused, as with HTTP/1.1.
func TestHTTP2HugeHeads(t *testing.T) {
	const begin = "\x00\x07x-field\x7f\x81\x7c" // a field of 16,000 bytes
	field := []byte(begin + strings.Repeat("x", 16_000))
	rows := []struct {
		says string
		play play
		want string
	}{
		{"many header lines", play{head(true, append([]string{":status", "200"}, manyFields(60_000)...)...)}, "0 0 bad_response"},
		{"one header line", play{head(true, ":status", "200", "x-field", strings.Repeat("x", 2<<20))}, "0 0 bad_response"},
		{"a head without an end", play{
			raw(http2.FrameHeaders, 0, false, []byte("\x88")),
			repeat(4096, raw(http2.FrameContinuation, 0, false, field)), silence,
		}, "0 0 bad_response"},
	}
	for _, row := range rows {
		onEach(t, row.says, http2only, func(t *testing.T, r *ride) {
			r.run(t, server{script: always(row.play...)}.start(t, r.driver), gets(1))
			r.expect(t, row.want)
		})
	}
}
