package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestPercentilesOfLag(t *testing.T) {
	late := make([]int64, 2000) // 1 µs to 2,000 µs, the last first
	for i := range late {
		late[i] = int64(2000-i) * 1000
	}
	got := lagOf(late, 2*time.Second)
	want := lagResult{DurationS: 2, Wakes: 2000, LagMS: lagPercentiles{P50: 1, P99: 1.98, P999: 1.998, Max: 2}}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	few := lagResult{DurationS: 1, Wakes: 3, LagMS: lagPercentiles{P50: 2, P99: 3, P999: 3, Max: 3}}
	if got := lagOf([]int64{3e6, 1e6, 2e6}, time.Second); got != few {
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
		if got := lagOf(late, time.Second); got.InTime != each.inTime {
			t.Errorf("%s: %+v", each.why, got)
		}
	}
}

func TestLagIsMeasured(t *testing.T) {
	code, out, errOut := call("lag", "--duration", "1s", "--json")
	var got lagResult
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s %s", err, out, errOut)
	}
	if got.Wakes != 1000 || got.LagMS.P50 < 0 || got.LagMS.P50 > got.LagMS.P99 || got.LagMS.P999 > got.LagMS.Max {
		t.Errorf("got %+v", got)
	}
	if wanted := map[bool]int{true: 0, false: 1}[got.InTime]; code != wanted {
		t.Errorf("exit %d with %+v", code, got)
	}
	if says := strings.Contains(errOut, "may be marked generator_limited"); says == got.InTime {
		t.Errorf("it says %q with %+v", errOut, got)
	}
}

func TestLagOfNoDurationIsRefused(t *testing.T) {
	for _, duration := range []string{"0", "10ms", "-5s", "2h"} {
		if code, _, errOut := call("lag", "--duration="+duration); code != 2 || !strings.Contains(errOut, "out of range, give 1s to 1h") {
			t.Errorf("%s: exit %d: %s", duration, code, errOut)
		}
	}
}
