package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/engine/wire"
)

func TestFailures(t *testing.T) {
	for _, row := range failures {
		onEach(t, row.says, http1, row.answered)
	}
	for _, row := range endings {
		onEach(t, row.says, http1and2, row.answered)
	}
}

// withHead is an answer whose head is whole.
func withHead(fields, rest string) play {
	return play{send("HTTP/1.1 200 OK\r\n" + fields + "\r\n\r\n" + rest)}
}

func inChunks(body string) play { return withHead("Transfer-Encoding: chunked", body) }

// failures are answers that are none, in HTTP/1.x. A status counts once the head is whole.
var failures = []reply{
	{says: "no HTTP", play: play{send("220 mail.example ESMTP\r\n"), hangUp}, want: "0 0 bad_response"},
	{says: "no HTTP, and the connection stays", play: play{send("220 mail.example ESMTP\r\n")}, want: "0 0 bad_response"},
	{says: "two megabytes without a line's end", play: play{zeros(2 << 20)}, want: "0 0 bad_response"},
	{says: "noise", play: play{send(noise(1, 1<<20) + "\n")}, want: "0 0 bad_response"},
	{says: "another version of HTTP", play: play{send("HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok")}, want: "0 0 bad_response"},
	{says: "a status of two digits", play: play{send("HTTP/1.1 99 OK\r\nContent-Length: 2\r\n\r\nok")}, want: "0 0 bad_response"},
	{says: "a status of letters", play: play{send("HTTP/1.1 abc OK\r\nContent-Length: 2\r\n\r\nok")}, want: "0 0 bad_response"},
	{says: "a header line without a colon", play: withHead("Content-Length 2", "ok"), want: "0 0 bad_response"},
	{says: "two different lengths", play: withHead("Content-Length: 1\r\nContent-Length: 2", "ok"), want: "0 0 bad_response"},
	{says: "a length below 0", play: withHead("Content-Length: -1", "ok"), want: "0 0 bad_response"},
	{says: "a length past 64 bits", play: withHead("Content-Length: 99999999999999999999", "ok"), want: "0 0 bad_response"},
	{says: "a head of two megabytes in one line", play: withHead("X: "+strings.Repeat("x", 2<<20)+"\r\nContent-Length: 2", "ok"), want: "0 0 bad_response"},
	{says: "a head of two megabytes in many lines", play: withHead(strings.Repeat(padding, 30_000)+"Content-Length: 2", "ok"), want: "0 0 bad_response"},
	{says: "header lines without an end", play: play{send("HTTP/1.1 200 OK\r\n"), again(strings.Repeat(padding, 99), 0)}, want: "0 0 bad_response"},
	{says: "trailers without an end", play: append(inChunks("1\r\nx\r\n0\r\n"), again(strings.Repeat(padding, 99), 0)), want: "200 1 bad_response"},
	{says: "a chunk size that is not a number", play: inChunks("zz\r\n"), want: "200 0 bad_response"},
	{says: "an empty chunk size", play: inChunks("\r\n"), want: "200 0 bad_response"},
	{says: "a chunk size below 0", play: inChunks("-1\r\n"), want: "200 0 bad_response"},
	{says: "a chunk size past 64 bits", play: inChunks("fffffffffffffffff\r\n"), want: "200 0 bad_response"},
	{says: "a chunk size in C's manner", play: inChunks("0x2\r\nok\r\n0\r\n\r\n"), want: "200 0 bad_response"},
	{says: "a chunk longer than its size", play: inChunks("1\r\nabc\r\n0\r\n\r\n"), want: "200 1 bad_response"},
	{says: "a chunk size without an end", play: append(inChunks("1"), again(strings.Repeat("0", 16<<10), 0)), want: "200 0 bad_response"},
	{says: "closed in the middle of the head", play: play{send("HTTP/1.1 200 OK\r\nConte"), hangUp}, want: "0 0 closed_early"},
	{says: "closed after early hints", play: play{send(hints), hangUp}, want: "0 0 closed_early"},
	{says: "closed in the middle of a chunk", play: append(inChunks("9\r\nhalf"), hangUp), want: "200 4 closed_early"},
	{says: "closed between two chunks", play: append(inChunks("4\r\nhalf\r\n"), hangUp), want: "200 4 closed_early"},
	{says: "closed in the trailers", play: append(inChunks("4\r\nhalf\r\n0\r\nX-Su"), hangUp), want: "200 4 closed_early"},
	{says: "reset in the middle of the head", play: play{send("HTTP/1.1 200 OK\r\nConte"), reset}, want: "0 0 reset"},
	{says: "reset in the middle of a chunk", play: append(inChunks("9\r\nhalf"), reset), want: "200 4 reset"},
	{says: "reset in a body that would end with the connection", play: play{send(old + "abc"), reset}, want: "200 3 reset"},
}

// endings are connections that end too early, in HTTP/1.x and HTTP/2 alike.
var endings = []reply{
	{says: "closed without a word", play: play{hangUp}, want: "0 0 closed_early", mute: true},
	{says: "closed after the head", play: play{answer(200, 9), hangUp}, want: "200 0 closed_early"},
	{says: "closed in the middle of the body", play: play{answer(200, 9), body("half", false), hangUp}, want: "200 4 closed_early"},
	{says: "closed in the middle of a long body", play: play{answer(200, 9e6), body(strings.Repeat("x", 9999), false), hangUp}, want: "200 9999 closed_early"},
	{says: "reset without a word", play: play{reset}, want: "0 0 reset", mute: true},
	{says: "reset in the middle of the body", play: play{answer(200, 9), body("half", false), reset}, want: "200 4 reset"},
}

// noise is no HTTP, of so many bytes and without a line's end.
func noise(seed uint64, bytes int) string {
	random := rand.New(rand.NewPCG(seed, 0))
	text := make([]byte, bytes)
	for i := range text {
		text[i] = byte(random.Uint32() | 0x80)
	}
	return string(text)
}

// What had come counts, wherever a server closes.
func TestClosedAfterEveryByte(t *testing.T) {
	const body = "5\r\nhello\r\n1;x=y\r\n!\r\n0\r\nX-Sum: 1\r\n\r\n"
	head := lines("HTTP/1.1 201 Created", "Transfer-Encoding: chunked", "Connection: close", "", "")
	var want []string
	for cut := range len(head + body) {
		came := min(max(cut-len(head)-len("5\r\n"), 0), len("hello"))
		if cut >= len(head)+strings.Index(body, "!")+1 {
			came++
		}
		want = append(want, fmt.Sprintf("%d %d closed_early", map[bool]int{true: 201}[cut >= len(head)], came))
	}
	want = append(want, "201 6")
	at := func(a asked) play {
		cut, _ := strconv.Atoi(a.target[1:])
		return play{send((head + body)[:cut-1]), hangUp}
	}
	onEach(t, "closed after so many bytes", http1, func(t *testing.T, r *ride) {
		r.run(t, server{script: at}.start(t, r.driver), gets(len(want)))
		r.expect(t, strings.Join(want, "; "))
	})
}

// talk is a server that does not do the same each time.
type talk struct {
	says    string
	drivers []driver
	asks    []wire.Request
	server  server
	want    string
}

func TestConversations(t *testing.T) {
	for _, row := range talks {
		onEach(t, row.says, row.drivers, func(t *testing.T, r *ride) {
			r.run(t, row.server.start(t, r.driver), row.asks)
			r.expect(t, row.want)
		})
	}
}

// firstOn lets the first request of each connection have one play, and later ones another.
func firstOn(each play, later ...move) script {
	return func(a asked) play {
		if a.request == 0 {
			return each
		}
		return later
	}
}

// on lets the n-th connection have its own script; further ones have the last.
func on(each ...script) script {
	return func(a asked) play { return each[min(a.conn, len(each)-1)](a) }
}

// asking has plays for some targets; all others are answered.
func asking(plays map[string]play) script {
	return func(a asked) play {
		if one, known := plays[a.target]; known {
			return one
		}
		return play{good}
	}
}

var fine = always(good)

var talks = []talk{
	{
		"a kept connection is closed just as it is used: sent again on a fresh one", http1and2, gets(2),
		server{script: on(firstOn(play{good}, hangUp), fine)}, "200 2; 200 2; retried 1",
	},
	{
		"a kept connection is reset just as it is used: sent again on a fresh one", http1and2, gets(2),
		server{script: on(firstOn(play{good}, reset), fine)}, "200 2; 200 2; retried 1",
	},
	{
		"HEAD is sent again like GET", http1, asks("HEAD", 2),
		server{script: on(firstOn(play{answer(200, 0)}, hangUp), always(answer(200, 0)))}, "200 0; 200 0; retried 1",
	},
	{
		"a POST is not sent twice", http1and2, asks("POST", 3),
		server{script: on(firstOn(play{good}, hangUp), fine)}, "200 2; 0 0 closed_early reused; 200 2",
	},
	{
		"sent again once, not twice", http1and2, gets(3),
		server{script: asking(map[string]play{"/2": {hangUp}})}, "200 2; 0 0 closed_early; 200 2; retried 1",
	},
	{
		"what is sent again goes before what waits behind it", http1, gets(3),
		server{script: on(firstOn(play{good}, hangUp), always(hangUp), fine)}, "200 2; 0 0 closed_early; 200 2; retried 1",
	},
	{
		"a fresh connection that closes is not tried again", http1and2, gets(2),
		server{script: on(always(hangUp), fine)}, "0 0 closed_early; 200 2",
	},
	{
		"once an answer has begun it is not asked for again", http1and2, gets(3),
		server{script: on(firstOn(play{good}, answer(200, 9), body("half", false), hangUp), fine)},
		"200 2; 200 4 closed_early reused; 200 2",
	},
	{
		"nonsense on a kept connection is not asked for again", http1, gets(3),
		server{script: on(firstOn(play{good}, send("nonsense\r\n"), hangUp), fine)}, "200 2; 0 0 bad_response reused; 200 2",
	},
	{
		"a part of the head on a kept connection is a part of an answer", http1, gets(3),
		server{script: on(firstOn(play{good}, send("H"), hangUp), fine)}, "200 2; 0 0 closed_early reused; 200 2",
	},
	{
		"HTTP 1.0 has a connection a request, whatever the server offers", http1, http10(2),
		server{script: fine}, "200 2; 200 2",
	},
	{
		"the answer comes before the request is whole, and the rest is read", http1, big(2),
		server{greet: play{readSome(4096), send(tooLong), readAll}}, "414 0; 414 0",
	},
	{
		"the answer comes before the request is whole, and the rest is not read", http1, big(2),
		server{greet: play{readSome(4096), send(tooLong), silence}}, "414 0; 414 0",
	},
	{
		"a request of eight megabytes is sent whole", http1, big(2),
		server{script: fine}, "200 2; 200 2 reused",
	},
}

const tooLong = "HTTP/1.1 414 URI Too Long\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

// http10 are requests that a browser of old sent.
func http10(n int) []wire.Request {
	all := gets(n)
	for i := range all {
		all[i].Proto = wire.HTTP10
	}
	return all
}

// big are requests that no socket's buffer holds.
func big(n int) []wire.Request {
	all := gets(n)
	for i := range all {
		all[i].Target = "/" + strings.Repeat("a", 8<<20)
	}
	return all
}

// A server may close a connection, or talk on it, while nobody asks: the next request goes on a fresh one.
func TestIdleConnectionsEnd(t *testing.T) {
	rows := []struct {
		says    string
		drivers []driver
		then    play
	}{
		{"closed", http1and2, play{hangUp}},
		{"reset", http1and2, play{reset}},
		{"closed with a parting word", http1, play{send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), hangUp}},
		{"an answer that nobody asked for", http1, play{send(whole)}},
	}
	for _, row := range rows {
		onEachOf(t, row.says, row.drivers, paced, func(t *testing.T, r *ride) {
			r.gap = 300 * time.Millisecond
			moves := append(play{good, pause(30 * time.Millisecond)}, row.then...)
			r.run(t, server{script: always(moves...)}.start(t, r.driver), gets(2))
			r.expect(t, "200 2; 200 2")
		})
	}
}

func TestNobodyListens(t *testing.T) {
	onEach(t, "refused", http1and2, func(t *testing.T, r *ride) {
		scheme := map[bool]string{false: "http", true: "https"}[r.driver.tls]
		r.run(t, scheme+"://127.0.0.1:1", gets(2))
		r.expect(t, "0 0 connect_refused; 0 0 connect_refused")
	})
}
