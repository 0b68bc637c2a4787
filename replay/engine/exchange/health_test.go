package exchange

import (
	"testing"

	"plimsoll/replay/record"
)

func TestATargetThatRefusesForLongIsDead(t *testing.T) {
	now := int64(0)
	died := false
	h := &Health{OnDeath: func() { died = true }}
	for range deadRequests * 2 {
		now += int64(DeadAfter) / deadRequests
		h.note(now, record.ConnectRefused)
	}
	if !died {
		t.Error("nobody noticed")
	}
}

func TestHealthIsNotImpatient(t *testing.T) {
	rows := []struct {
		why  string
		note func(h *Health)
	}{
		{"many failures within a second are a restart", func(h *Health) {
			for i := range int64(10_000) {
				h.note(i*100_000, record.ConnectRefused)
			}
		}},
		{"one answer in between shows that it is alive", func(h *Health) {
			for i := range int64(1000) {
				h.note(i*1e9, map[bool]record.ErrorKind{true: record.ConnectRefused}[i%40 != 0])
			}
		}},
		{"time-outs are slowness", func(h *Health) {
			for i := range int64(1000) {
				h.note(i*1e9, record.Timeout)
			}
		}},
	}
	for _, row := range rows {
		h := &Health{OnDeath: func() { t.Error(row.why) }}
		row.note(h)
	}
}
