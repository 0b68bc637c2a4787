package run

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// ErrInterrupted ends a run that was told to stop by a signal, or by k6.
var ErrInterrupted = errors.New("interrupted")

// OnInterrupts returns two contexts: the first ends at the first interrupt (finish what is in flight), the second at
// the second (leave at once). A hang-up that was ignored when the process began stays so: that is what nohup asks for.
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
		for _, act := range []func(){func() { cancelStop(ErrInterrupted) }, cancelAbort} {
			select {
			case <-signals:
				act()
			case <-done:
				return
			}
		}
	}()
	return stop, abort, func() {
		signal.Stop(signals)
		close(done)
		cancelStop(nil)
		cancelAbort()
	}
}
