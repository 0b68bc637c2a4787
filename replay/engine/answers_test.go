package engine_test

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// reply is how a server answers, and what is to be recorded of it.
type reply struct {
	says   string
	play   play
	want   string // of each of two requests, one after the other
	keep   bool   // the second goes on the connection of the first
	method string // "": GET
	mute   bool   // not one byte comes
	atOnce bool   // it is another answer when it comes in pieces
}

// answered sends two requests that are answered alike.
func (a reply) answered(t *testing.T, r *ride) {
	r.run(t, server{script: always(a.play...)}.start(t, r.driver), asks(cmp.Or(a.method, "GET"), 2))
	second := a.want
	if a.keep {
		second += " reused"
	}
	r.expect(t, a.want+"; "+second)
}

func TestAnswers(t *testing.T) {
	for _, row := range answers {
		onEach(t, row.says, http1, row.answered)
	}
}

const (
	hints   = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
	chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	old     = "HTTP/1.0 200 OK\r\n\r\n"
	padding = "X-Padding: 0123456789012345678901234567890123456789012345678901234567890123456789\r\n"
)

// answers are whole, whatever they look like.
var answers = []reply{
	{says: "an answer with a length", play: play{send(whole)}, want: "200 2", keep: true},
	{says: "an answer in pieces", play: play{send("HT", "TP/1.1 20", "0 OK\r\nContent-Le", "ngth: 2\r", "\n\r", "\no", "k")}, want: "200 2", keep: true},
	{says: "an answer byte by byte", play: play{send(strings.Split(whole, "")...)}, want: "200 2", keep: true},
	{says: "continue and early hints come first", play: play{send(hints + whole)}, want: "200 2", keep: true},
	{says: "early hints come long before", play: play{send(hints), pause(50 * time.Millisecond), send(whole)}, want: "200 2", keep: true},
	{says: "a status of 999", play: play{send("HTTP/1.1 999 Blocked\r\nContent-Length: 2\r\n\r\nno")}, want: "999 2", keep: true},
	{says: "no reason phrase", play: play{send("HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n")}, want: "404 0", keep: true},
	{says: "line feeds alone", play: play{send("HTTP/1.1 200 OK\nContent-Length: 2\n\nok")}, want: "200 2", keep: true},
	{says: "the same length twice", play: play{send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok")}, want: "200 2", keep: true},
	{says: "HTTP 1.0 closes after the length", play: play{send("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")}, want: "200 2"},
	{says: "HTTP 1.0 keeps the connection where it says so", play: play{send("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok")}, want: "200 2", keep: true},
	{says: "HTTP 1.1 closes where it says so", play: play{send("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok")}, want: "200 2"},
	{says: "a body until the connection ends", play: play{send("HTTP/1.1 200 OK\r\n\r\nabc"), hangUp}, want: "200 3"},
	{says: "an empty body until the connection ends", play: play{send(old), hangUp}, want: "200 0"},
	{says: "a body in pieces until the connection ends", play: play{send(old, "a", "b", "c"), pause(20 * time.Millisecond), hangUp}, want: "200 3"},
	{says: "a body of another coding ends with the connection", play: play{send("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc"), hangUp}, want: "200 3"},
	{says: "chunks", play: play{send(chunked + "3\r\nabc\r\n0\r\n\r\n")}, want: "200 3", keep: true},
	{says: "no chunk but the last", play: play{send(chunked + "0\r\n\r\n")}, want: "200 0", keep: true},
	{says: "chunks in pieces", play: play{send(chunked+"A", ";x=y\r", "\n01234", "56789\r", "\n1\r\nx", "\r\n0", "\r\n\r", "\n")}, want: "200 11", keep: true},
	{says: "chunks with trailers", play: play{send(chunked + "1\r\na\r\n0\r\nX-Sum: 1\r\nX-Time: 2\r\n\r\n")}, want: "200 1", keep: true},
	{says: "chunks win over a length, and the connection is not trusted", play: play{send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")}, want: "200 3"},
	{says: "a 204 with a length has no body", play: play{send("HTTP/1.1 204 No Content\r\nContent-Length: 20\r\n\r\n")}, want: "204 0", keep: true},
	{says: "a 304 with a length has no body", play: play{send("HTTP/1.1 304 Not Modified\r\nContent-Length: 20\r\n\r\n")}, want: "304 0", keep: true},
	{says: "HEAD has a length and no body", play: play{send("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n")}, want: "200 0", keep: true, method: "HEAD"},
	{says: "HEAD has no chunks", play: play{send(chunked)}, want: "200 0", keep: true, method: "HEAD"},
	{says: "HEAD of a body that would end with the connection", play: play{send("HTTP/1.1 200 OK\r\n\r\n")}, want: "200 0", keep: true, method: "HEAD"},
	{says: "another protocol from here on", play: play{send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nx!")}, want: "101 0"},
	{says: "two answers at once: the second is nobody's", play: play{send(whole + "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")}, want: "200 2", atOnce: true},
	{says: "a body longer than its length: the rest is nobody's", play: play{send(whole + "more")}, want: "200 2", atOnce: true},
	{says: "a head of 900 KB in one line", play: play{send("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 900<<10) + "\r\nContent-Length: 2\r\n\r\nok")}, want: "200 2", keep: true},
	{says: "ten thousand header lines", play: play{send("HTTP/1.1 200 OK\r\n" + strings.Repeat(padding, 10_000) + "Content-Length: 2\r\n\r\nok")}, want: "200 2", keep: true},
	{says: "a hundred early hints", play: play{send(strings.Repeat(hints, 100) + whole)}, want: "200 2", keep: true},
}

// bodyBytes is the length of a long body. With PLIMSOLL_BIG=1, 31 bits cannot count it.
func bodyBytes() int64 {
	switch {
	case os.Getenv("PLIMSOLL_BIG") != "":
		return 2<<30 + 16<<20
	case testing.Short():
		return 16 << 20
	}
	return 24 << 20
}

func TestLongBodies(t *testing.T) {
	size := bodyBytes()
	const chunk = 8 << 20
	rows := []struct {
		says    string
		drivers []driver
		play    play
	}{
		{"a long body with a length", http1and2, play{answer(200, int(size)), long(size, true)}},
		{"a long body in chunks", http1, play{
			send(chunked), repeat(int(size/chunk), play{send(fmt.Sprintf("%x\r\n", chunk)), zeros(chunk), send("\r\n")}.on), send("0\r\n\r\n"),
		}},
		{"a long body until the connection ends", http1, play{send(old), zeros(size), hangUp}},
	}
	for _, row := range rows {
		onEach(t, row.says, row.drivers, func(t *testing.T, r *ride) {
			r.opts.Timeout, r.patience = time.Minute, time.Minute
			r.run(t, server{script: always(row.play...)}.start(t, r.driver), gets(1))
			r.expect(t, fmt.Sprintf("200 %d", size))
		})
	}
}
