// The kernel's word on its clock.

package record

import "golang.org/x/sys/unix"

// ThisClock asks the kernel how good its wall clock is (adjtimex(2)), and returns nil where it does not say.
func ThisClock() *ClockState {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return nil
	}
	return &ClockState{Synchronised: t.Status&unix.STA_UNSYNC == 0, MaxErrorMS: float64(t.Maxerror) / 1000}
}
