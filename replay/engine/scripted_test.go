package engine_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// A server does what its script says, request by request: over TCP, over TLS, or frame by frame over HTTP/2.
type server struct {
	greet  play // on each connection, before anything is read
	script script
	bare   bool   // TCP alone, whatever the client speaks
	pieces uint64 // what is sent comes in random pieces, from this seed; 0: it does not

	marked func()                   // called at each mark of a play; may be nil
	left   func(code http2.ErrCode) // called when a client says GOAWAY; may be nil
	acked  func()                   // called when a client answers a ping or settings; may be nil
}

// script says what a server does when it is asked.
type script func(a asked) play

// asked is one request: on which connection it came and the how manieth it is there, both from 0, and for what.
type asked struct {
	conn, request int
	target        string
}

// always does the same whatever is asked.
func always(moves ...move) script {
	return func(asked) play { return moves }
}

// A play is a list of moves, done in order. After the last, the connection goes on with the next request.
type play []move

// A move is one thing that a server does on a connection. It returns false when the connection is over.
type move func(p *peer) bool

func (moves play) on(p *peer) bool {
	for _, do := range moves {
		if !do(p) {
			return false
		}
	}
	return true
}

// peer is the server's end of a connection.
type peer struct {
	net.Conn                 // what is said, encrypted or not
	tcp      *net.TCPConn    // what carries it
	in       *bufio.Reader   // what the client says
	ending   <-chan struct{} // closed when the test ends
	marked   func()
	slower   time.Duration
	frames   *frames // of HTTP/2; nil: HTTP/1.x
	stream   uint32  // of HTTP/2: the one that was asked on
}

// start listens on loopback for a driver's client, until the test ends. It returns the base URL.
func (s server) start(t *testing.T, d driver) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ending := make(chan struct{})
	t.Cleanup(func() {
		close(ending)
		_ = listener.Close()
	})
	go func() {
		for number := 0; ; number++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p := newPeer(conn.(*net.TCPConn), d, s.bare)
			p.ending, p.marked = ending, s.marked
			if s.pieces > 0 {
				p.Conn = &shredder{p.Conn, mathrand.New(mathrand.NewPCG(s.pieces, uint64(number))), 40}
			}
			go s.serve(p, number, d)
		}
	}()
	return fmt.Sprintf("%s://%s", map[bool]string{false: "http", true: "https"}[d.tls], listener.Addr())
}

func newPeer(conn *net.TCPConn, d driver, bare bool) *peer {
	p := &peer{Conn: conn, tcp: conn, slower: max(1, d.slower)}
	if d.tls && !bare {
		p.Conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{d.alpn()}})
	}
	p.in = bufio.NewReader(p.Conn)
	return p
}

// certificate is one that only a client who accepts any accepts.
var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // to sign with it is cheap
	if err != nil {
		panic(err)
	}
	about := &x509.Certificate{}
	made, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}
})

func (s server) serve(p *peer, number int, d driver) {
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-p.ending:
		case <-over:
		}
		_ = p.tcp.Close()
	}()
	if secure, ok := p.Conn.(*tls.Conn); ok && secure.Handshake() != nil {
		return
	}
	if d.http2() && !s.bare {
		s.serveHTTP2(p, number)
		return
	}
	going := s.greet.on(p)
	for request := 0; going; request++ {
		target, ok := p.readHead()
		going = ok && s.script(asked{number, request, target}).on(p)
	}
}

// readHead reads a request, which has no body.
func (p *peer) readHead() (target string, ok bool) {
	for {
		line, err := p.in.ReadString('\n')
		switch {
		case err != nil:
			return "", false
		case line == "\r\n":
			return target, true
		case target == "":
			target = strings.Split(line, " ")[1]
		}
	}
}

// lines are lines as HTTP ends them; the last one is a body.
func lines(all ...string) string { return strings.Join(all, "\r\n") }

const whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// send sends texts, one after another, with a short pause between them.
func send(texts ...string) move {
	return func(p *peer) bool {
		for i, text := range texts {
			if i > 0 {
				time.Sleep(time.Millisecond)
			}
			if _, err := io.WriteString(p, text); err != nil {
				return false
			}
		}
		return true
	}
}

// again sends a text again and again, with a pause, until the client hangs up or the test ends. It marks when the client
// has read some of it.
func again(text string, every time.Duration) move {
	return func(p *peer) bool {
		for sent := 0; ; sent += len(text) {
			if _, err := io.WriteString(p, text); err != nil {
				return false
			}
			if every > 0 || sent > buffered {
				mark(p)
			}
			if every > 0 && !pause(every)(p) {
				return false
			}
		}
	}
}

// buffered is more than lies between a server that writes and a client that does not read.
const buffered = 8 << 20

// zeros sends so many bytes, as fast as it goes.
func zeros(n int64) move {
	return func(p *peer) bool {
		for left := n; left > 0; left -= int64(len(nothing)) {
			if _, err := p.Write(nothing[:min(left, int64(len(nothing)))]); err != nil {
				return false
			}
		}
		return true
	}
}

var nothing = make([]byte, 1<<20)

func pause(d time.Duration) move {
	return func(p *peer) bool {
		select {
		case <-p.ending:
			return false
		case <-time.After(d * p.slower):
			return true
		}
	}
}

// mark lets the test know that the play is here.
func mark(p *peer) bool {
	if p.marked != nil {
		p.marked()
	}
	return true
}

// readSome reads a part of a request.
func readSome(bytes int) move {
	return func(p *peer) bool {
		_, err := io.CopyN(io.Discard, p.in, int64(bytes))
		return err == nil
	}
}

// readAll reads until the client hangs up.
func readAll(p *peer) bool {
	_, _ = io.Copy(io.Discard, p.in)
	return false
}

// hangUp ends the connection in an orderly way.
func hangUp(p *peer) bool {
	_ = p.Close()
	return false
}

// cutOff ends TCP in an orderly way, but not what is spoken over it.
func cutOff(p *peer) bool {
	_ = p.tcp.Close()
	return false
}

// reset ends the connection with a reset, once what was sent has arrived.
func reset(p *peer) bool {
	pause(20 * time.Millisecond)(p)
	_ = p.tcp.SetLinger(0)
	return cutOff(p)
}

// silence marks, and then neither reads nor writes any more.
func silence(p *peer) bool {
	mark(p)
	<-p.ending
	return false
}

// shredder sends what is written first in pieces.
type shredder struct {
	net.Conn
	random *mathrand.Rand
	cuts   int // that are left
}

func (s *shredder) Write(b []byte) (int, error) {
	sent := 0
	for cuts := min(s.random.IntN(5), s.cuts); cuts > 0 && sent < len(b); cuts-- {
		s.cuts--
		n, err := s.Conn.Write(b[sent : sent+1+s.random.IntN(len(b)-sent)])
		if sent += n; err != nil {
			return sent, err
		}
		time.Sleep(time.Duration(s.random.IntN(int(2 * time.Millisecond))))
	}
	n, err := s.Conn.Write(b[sent:])
	return sent + n, err
}
