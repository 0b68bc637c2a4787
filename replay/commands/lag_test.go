package commands

import (
	"testing"
	"time"
)

func TestPercentilesOfLag(t *testing.T) {
	late := make([]int64, 2000) // 1 µs to 2,000 µs, the last first
	for i := range late {
		late[i] = int64(2000-i) * 1000
	}
	got := summarizeLag(late, 2*time.Second)
	want := lagResult{DurationS: 2, Wakes: 2000, LagMS: lagPercentiles{P50: 1, P99: 1.98, P999: 1.998, Max: 2}}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	few := lagResult{DurationS: 1, Wakes: 3, LagMS: lagPercentiles{P50: 2, P99: 3, P999: 3, Max: 3}}
	if got := summarizeLag([]int64{3e6, 1e6, 2e6}, time.Second); got != few {
		t.Errorf("a rank between two is the upper one: got %+v, want %+v", got, few)
	}
	for _, each := range []struct {
		why    string
		slowNS int64
		inTime bool
	}{
		{"one in a thousand, however late, is not seen by p99.9", 1e9, true},
		{"two in a thousand are", 1_000_001, false},
		{"a millisecond sharp is in time", 1e6, true},
	} {
		late := make([]int64, 1000)
		late[0] = each.slowNS
		if each.slowNS != 1e9 {
			late[1] = each.slowNS
		}
		if got := summarizeLag(late, time.Second); got.InTime != each.inTime {
			t.Errorf("%s: %+v", each.why, got)
		}
	}
}
