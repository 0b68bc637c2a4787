package accesslog

import (
	"bufio"
	"bytes"
	"errors"
	"hash"
	"io"
	"sync"
	"sync/atomic"
)

// MaxLineBytes is the longest line that is read; longer ones are rejected.
const MaxLineBytes = 1 << 20

const (
	chunkBytes    = 1 << 20  // of text that one worker parses at a time
	minChunkBytes = 64 << 10 // when many files are read side by side
	rejectText    = 512      // bytes of a rejected line that are kept
)

// textWithheld stands for a rejected line of a recording, which may hold a password where nobody can find it any more.
const textWithheld = "(not shown: a recording may hold passwords)"

// chunk is a stretch of one file that ends with a line, and what was parsed of it.
type chunk struct {
	text      []byte
	file      int
	firstLine uint64
	fields    []byte // the comment before it that names its fields; nil: there is none, or nobody asked
	overlong  bool   // the text is the beginning of one line that is too long

	requests []Request
	arena    []byte
	rejects  []Reject
	counts   Counts
	binNS    int64     // how long a stretch may be; 0: nobody asked for them
	bin      int64     // where the last stretch begins at the earliest
	spread   []stretch // where in time the requests lie, one stretch after the other as the lines have them

	finished bool    // times are those of completion
	stamps   []stamp // of its requests
	ends     bool    // they are those of completion

	err    error         // why reading ended here; io.EOF at the end of the file
	parsed chan struct{} // holds a token once a worker is done
	refs   atomic.Int32
}

var chunks = sync.Pool{New: func() any { return &chunk{parsed: make(chan struct{}, 1)} }}

func newChunk() *chunk {
	c := chunks.Get().(*chunk)
	c.text, c.requests, c.arena, c.rejects = c.text[:0], c.requests[:0], c.arena[:0], nil
	c.counts, c.err, c.overlong = Counts{}, nil, false
	c.binNS, c.spread, c.stamps, c.ends = 0, c.spread[:0], c.stamps[:0], true
	c.refs.Store(1)
	return c
}

// release gives the chunk back once nobody holds it. One that a long line has enlarged is left to the garbage
// collector.
func (c *chunk) release() {
	if c.refs.Add(-1) == 0 && cap(c.text) <= chunkBytes {
		chunks.Put(c)
	}
}

// cutter cuts a file into chunks at the ends of lines.
type cutter struct {
	file  *openFile
	index int
	size  int       // of a chunk, in bytes
	lines uint64    // so far
	carry []byte    // the beginning of a line whose end is yet to come
	sum   hash.Hash // of all text that was read; nil: nobody asked
	nuls  int64     // that were skipped since the last chunk
	named bool      // comments name the fields of the lines after them
	now   []byte    // the last such comment
}

// next reads the next chunk. Its err is io.EOF when it is the last.
func (k *cutter) next() *chunk {
	c := newChunk()
	c.file, c.firstLine = k.index, k.lines+1
	if cap(c.text) < k.size {
		c.text = make([]byte, 0, k.size)
	}
	limit := k.size
	c.text = append(c.text, k.carry...)
	k.carry = k.carry[:0]
	for c.err == nil {
		c.text, c.err = k.fill(c.text, limit)
		if c.err != nil {
			break
		}
		if last := bytes.LastIndexByte(c.text, '\n'); last >= 0 {
			k.carry = append(k.carry, c.text[last+1:]...)
			c.text = c.text[:last+1]
			break
		}
		if line := bytes.TrimLeft(c.text, "\x00"); len(line) < len(c.text) { // a hole may be larger than memory
			k.nuls += int64(len(c.text) - len(line))
			c.text, limit = append(c.text[:0], line...), k.size
			continue
		}
		if len(c.text) > MaxLineBytes {
			c.overlong = true
			c.text = c.text[:rejectText]
			c.err = k.skipLine()
			break
		}
		limit = min(2*limit, MaxLineBytes+1)
	}
	c.counts.NULs, k.nuls = k.nuls, 0
	if c.fields = k.now; k.named {
		if last := lastFields(c.text); last != nil {
			k.now = bytes.Clone(last)
		}
	}
	if c.overlong {
		k.lines++
	} else {
		k.lines += uint64(bytes.Count(c.text, []byte{'\n'}))
	}
	return c
}

// fill reads until the text is limit bytes long.
func (k *cutter) fill(text []byte, limit int) ([]byte, error) {
	if cap(text) < limit {
		text = append(make([]byte, 0, limit), text...)
	}
	for len(text) < limit {
		n, err := k.file.buffer.Read(text[len(text):limit])
		k.add(text[len(text) : len(text)+n])
		text = text[:len(text)+n]
		if err != nil {
			return text, k.ended(err)
		}
	}
	return text, nil
}

// skipLine reads past the end of a line.
func (k *cutter) skipLine() error {
	for {
		skipped, err := k.file.buffer.ReadSlice('\n')
		k.add(skipped)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return k.ended(err)
		}
	}
}

// add adds text to the sum.
func (k *cutter) add(text []byte) {
	if k.sum != nil {
		k.sum.Write(text)
	}
}

func (k *cutter) ended(err error) error {
	if err == io.EOF {
		return err
	}
	return k.file.broken(err)
}

// parse parses all lines of a chunk. The requests are kept if keep is set; no more than maxRejects rejects are.
func (c *chunk) parse(f *Format, keep bool, maxRejects int) {
	f.arena = c.arena[:0]
	f.from(c.fields)
	var one Request
	number := c.firstLine
	for text := c.text; len(text) > 0; number++ {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		c.counts.Lines++
		if Ignored(line) {
			rest := bytes.TrimLeft(line, "\x00")
			c.counts.NULs += int64(len(line) - len(rest))
			if len(rest) == 0 && len(line) > 0 && text == nil { // what a file ends with is not a line
				c.counts.Lines--
				break
			}
			if Ignored(rest) {
				c.counts.Ignored++
				f.comment(rest)
				continue
			}
			line = rest
		}
		r := &one
		if keep {
			r = c.grow()
		} else {
			f.arena = f.arena[:0]
		}
		r.Line, r.File = number, c.file
		reject := c.parseLine(f, line, r)
		if reject == nil {
			c.counts.add(r)
			if c.binNS > 0 {
				c.place(r)
				s, end := stampOf(r, c.finished)
				c.stamps, c.ends = append(c.stamps, s), c.ends && end
			}
			continue
		}
		c.counts.Failed++
		if keep {
			c.requests = c.requests[:len(c.requests)-1]
		}
		if len(c.rejects) < maxRejects {
			text := bytes.Clone(clip(line, rejectText))
			if f.hasBodies {
				text = []byte(textWithheld)
			}
			c.rejects = append(c.rejects, Reject{File: c.file, Line: number, Text: text, Mismatch: reject.Clone(line)})
		}
	}
	c.arena = f.arena
}

// place adds a request to the last stretch, or begins another where that one cannot take it.
func (c *chunk) place(r *Request) {
	if len(c.spread) == 0 || uint64(r.TimeNS-c.bin) >= uint64(c.binNS) {
		c.bin = (r.TimeNS+beforeNS)/c.binNS*c.binNS - beforeNS
		c.spread = append(c.spread, stretch{firstNS: r.TimeNS, lastNS: r.TimeNS, file: r.File, line: r.Line, low: r.Line})
	}
	s := &c.spread[len(c.spread)-1]
	s.requests++
	s.high = r.Line
	if r.TimeNS < s.firstNS {
		s.firstNS, s.line = r.TimeNS, r.Line
	}
	s.lastNS = max(s.lastNS, r.TimeNS)
}

func (c *chunk) parseLine(f *Format, line []byte, r *Request) *Mismatch {
	if c.overlong || len(line) > MaxLineBytes {
		f.reject = Mismatch{Specifier: "line", Column: MaxLineBytes + 1, Why: "is longer than 1 MiB"}
		return &f.reject
	}
	return f.parse(line, r)
}

// grow makes room for one more request.
func (c *chunk) grow() *Request {
	if n := len(c.requests); n < cap(c.requests) {
		c.requests = c.requests[:n+1]
	} else {
		c.requests = append(c.requests, Request{})
	}
	return &c.requests[len(c.requests)-1]
}
