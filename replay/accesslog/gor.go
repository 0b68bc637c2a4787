package accesslog

// GoReplay's files become lines of the preset RECORDING.

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// A GoReplay file (https://github.com/buger/goreplay/wiki) is payloads with a line of meta data before each and a
// separator after it. The meta data are the kind, an id that a request shares with its response, an instant in
// nanoseconds, and in responses how long they took.
const (
	gorSeparator  = "🐵🙈🙉\n"
	gorRequest    = "1"
	gorResponse   = "2"
	gorMaxPayload = 2 * MaxLineBytes
	gorWaiting    = 1024 // requests that wait for their responses

	gorWaitingBytes = 64 << 20
)

// gorLines reads the requests of a file, each with its response where that is in the file, too.
func gorLines(text *bufio.Reader) func() ([]byte, error) {
	g := &gorFile{text: text, byID: map[string]*gorWait{}}
	return g.next
}

type gorFile struct {
	text    *bufio.Reader
	waiting []*gorWait
	byID    map[string]*gorWait
	bytes   int // of their bodies
	over    error
}

// gorWait is a request whose response may come.
type gorWait struct {
	id       string
	start    time.Time
	line     recordedRequest
	broken   bool
	answered bool
}

func (g *gorFile) next() ([]byte, error) {
	for g.over == nil && len(g.waiting) < gorWaiting && g.bytes < gorWaitingBytes && (len(g.waiting) == 0 || !g.waiting[0].answered) {
		g.over = g.read()
	}
	if len(g.waiting) == 0 {
		return nil, g.over
	}
	first := g.waiting[0]
	g.waiting = g.waiting[1:]
	g.bytes -= len(first.line.Body)
	if g.byID[first.id] == first {
		delete(g.byID, first.id)
	}
	if first.broken {
		return unreadable, nil
	}
	return first.line.line(), nil
}

// read takes in one payload.
func (g *gorFile) read() error {
	meta, err := g.text.ReadString('\n')
	if err != nil && strings.TrimSpace(meta) == "" {
		return io.EOF
	}
	payload, err := g.payload()
	switch {
	case errors.Is(err, io.EOF): // whoever recorded was stopped in the middle of it
		g.wait(&gorWait{broken: true})
		return io.EOF
	case err != nil:
		return err
	}
	fields := strings.Fields(meta)
	if len(fields) < 3 {
		g.wait(&gorWait{broken: true})
		return nil
	}
	switch fields[0] {
	case gorRequest:
		g.wait(newGorWait(fields, payload))
	case gorResponse:
		if waiting := g.byID[fields[1]]; waiting != nil {
			waiting.answer(fields, payload)
		}
	}
	return nil
}

func (g *gorFile) wait(w *gorWait) {
	g.waiting = append(g.waiting, w)
	g.bytes += len(w.line.Body)
	if w.id != "" {
		g.byID[w.id] = w
	}
}

// payload reads up to the separator. Of one that is too long, the beginning is kept: its body is then not whole. A file
// that was cut off ends in the middle of a payload.
func (g *gorFile) payload() ([]byte, error) {
	var payload []byte
	lineStart := true
	for {
		part, err := g.text.ReadSlice('\n')
		if lineStart && string(part) == gorSeparator {
			return bytes.TrimSuffix(payload, []byte("\n")), nil
		}
		if len(payload) < gorMaxPayload {
			payload = append(payload, part...)
		}
		lineStart = err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// newGorWait reads a request.
func newGorWait(meta []string, payload []byte) *gorWait {
	w := &gorWait{id: meta[1]}
	ns, err := strconv.ParseInt(meta[2], 10, 64)
	head, err2 := http.ReadRequest(bufio.NewReader(bytes.NewReader(payload)))
	if err != nil || err2 != nil {
		w.broken = true
		return w
	}
	w.start = time.Unix(0, ns)
	w.line = recordedRequest{
		Client: gorClient(head.Header), Method: head.Method, Host: head.Host, Target: head.RequestURI, Protocol: protocolOf(head.Proto),
		Referer: head.Header.Get("Referer"), Agent: head.Header.Get("User-Agent"), Type: head.Header.Get("Content-Type"),
	}
	w.line.setTimes(w.start, -1)
	w.line.noteMember(head.Header.Get("Cookie"))
	body, err := io.ReadAll(head.Body)
	w.line.Body = string(body)
	length := head.ContentLength
	if length < 0 {
		length = int64(len(body))
		if err != nil { // a chunk is missing
			length++
		}
	}
	if length > 0 {
		w.line.Length = &length
	}
	return w
}

// gorClient returns the client's address as a proxy wrote it, or as GoReplay did by --input-raw-realip-header.
func gorClient(header http.Header) string {
	for _, name := range []string{"X-Real-Ip", "X-Forwarded-For"} {
		first, _, _ := strings.Cut(header.Get(name), ",")
		if address, err := netip.ParseAddr(strings.TrimSpace(first)); err == nil {
			return address.String()
		}
	}
	return nobody
}

// answer adds what a response says.
func (w *gorWait) answer(meta []string, payload []byte) {
	response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(payload)), nil)
	if err != nil {
		return
	}
	w.answered = true
	w.line.Status = response.StatusCode
	if response.ContentLength >= 0 {
		w.line.Bytes = &response.ContentLength
	}
	ns, err := strconv.ParseInt(meta[2], 10, 64)
	if took := time.Unix(0, ns).Sub(w.start); err == nil && took >= 0 && took < time.Hour {
		w.line.setTimes(w.start, took)
	}
}
