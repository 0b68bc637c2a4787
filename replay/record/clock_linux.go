package record

import "golang.org/x/sys/unix"

// ThisClock asks the kernel how good its wall clock is (adjtimex(2)); nil where it does not say.
func ThisClock() *Clock {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return nil
	}
	return &Clock{Synchronised: t.Status&unix.STA_UNSYNC == 0, MaxErrorMS: float64(t.Maxerror) / 1000}
}
