package run

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// ErrInterrupted ends a run that was told to stop by a signal, or by k6.
var ErrInterrupted = errors.New("interrupted")

const (
	grace  = 500 * time.Millisecond // what is in flight at an interrupt may take to finish
	moment = 200 * time.Millisecond // whoever reads or writes at the other end of a pipe may take after one
)

// OnInterrupts returns two contexts: the first ends at the first interrupt (finish what is in flight), the second at
// the second, or when what is in flight has had its time (leave at once). From the third on, a signal ends the process
// as it ends any other. A hang-up that was ignored when the process began stays so: that is what nohup asks for.
func OnInterrupts() (stop, abort context.Context, release func()) {
	stop, cancelStop := context.WithCancelCause(context.Background())
	abort, cancelAbort := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		var late <-chan time.Time
		for came := 0; came < 2; {
			select {
			case <-signals:
				came++
			case <-late:
				cancelAbort()
				continue
			case <-done:
				return
			}
			if came == 1 {
				cancelStop(ErrInterrupted)
				late = time.After(grace)
			}
		}
		cancelAbort()
		signal.Stop(signals)
	}()
	return stop, abort, func() {
		signal.Stop(signals)
		close(done)
		cancelStop(nil)
		cancelAbort()
	}
}

// InTime does what may wait for another program: for one that writes the log, or for one that reads the summary. Once
// stop has ended, it waits for no longer than a moment and reports false: what is done then is not done.
func InTime(stop context.Context, do func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
		return true
	case <-stop.Done():
	}
	select {
	case <-done:
		return true
	case <-time.After(moment):
		return false
	}
}
