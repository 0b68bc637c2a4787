package netconn

import (
	"errors"
	"io"
	"sync"
	"time"
)

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
