package commands

import (
	"testing"
	"time"

	"plimsoll/replay/record"
)

func TestProgressHasThroughputTheTailAndTheTimeLeft(t *testing.T) {
	tail, lag := 13.38, 0.04
	for _, row := range []struct {
		why            string
		elapsed, whole time.Duration
		total          uint64
		live           record.Live
		want           string
	}{
		{"a replay whose length is known", 20 * time.Second, 65 * time.Second, 0,
			record.Live{Sent: 6000, RatePerS: 299.7, ResponseP999MS: &tail, LagP999MS: &lag}, "300/s, p99.9 13.4 ms, 45s left, 0 errors, lag p99.9 0.0 ms"},
		{"one whose number of requests is known", 20 * time.Second, 0, 8000,
			record.Live{Sent: 2000, Errors: 3, RatePerS: 100}, "100/s, p99.9 –, 1m0s left, 3 errors, lag p99.9 –"},
		{"p99.9 is a time-out", time.Second, 0, 0, record.Live{Sent: 1000, ResponseP999MS: &tail, AtLeast: "≥ 30 s"},
			"0/s, p99.9 ≥ 30 s, 0 errors, lag p99.9 –"},
		{"it takes longer than expected", 3 * time.Second, 2 * time.Second, 0, record.Live{}, "0/s, p99.9 –, 0s left, 0 errors, lag p99.9 –"},
		{"nothing was sent yet", time.Second, 0, 10, record.Live{}, "0/s, p99.9 –, 0 errors, lag p99.9 –"},
	} {
		if got := progressText(row.elapsed, row.whole, row.total, row.live); got != row.want {
			t.Errorf("%s: %s", row.why, got)
		}
	}
}
