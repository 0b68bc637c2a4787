package main

import (
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		name  string
		since time.Duration
		want  time.Duration
	}{
		{"the first request is answered at once", 0, 0},
		{"just before the first stall", 4999 * ms, 0},
		{"at its start a request waits all of it", 5000 * ms, 500 * ms},
		{"in its middle half of it", 5250 * ms, 250 * ms},
		{"at its end not at all", 5500 * ms, 0},
		{"between two stalls", 14999 * ms, 0},
		{"the second stall is like the first", 15100 * ms, 400 * ms},
	} {
		if got := wait(row.since, 5000*ms, 10000*ms, 500*ms); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}
