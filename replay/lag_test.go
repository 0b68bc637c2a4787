package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestLagIsMeasured(t *testing.T) {
	code, out, errOut := call("lag", "--duration", "1s", "--json")
	var got struct {
		Wakes  int                `json:"wakes"`
		LagMS  map[string]float64 `json:"lag_ms"`
		InTime bool               `json:"in_time"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s %s", err, out, errOut)
	}
	if got.Wakes != 1000 || got.LagMS["p50"] < 0 || got.LagMS["p50"] > got.LagMS["p99"] || got.LagMS["p99.9"] > got.LagMS["max"] {
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
