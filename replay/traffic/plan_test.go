package traffic

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/record"
	"plimsoll/replay/route"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// logOf opens a log with a request at each of these times after noon; each file is a list of its own.
func logOf(t *testing.T, pause time.Duration, files ...[]time.Duration) *Logs {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for i, file := range files {
		var text strings.Builder
		for _, after := range file {
			fmt.Fprintf(&text, "192.0.2.7 - - [%s] \"GET / HTTP/1.1\" 200 5 \"-\" \"UA\"\n", noon.Add(after).Format("02/Jan/2006:15:04:05 -0700"))
		}
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("log.%d", i)))
		if err := os.WriteFile(paths[i], []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	logs, err := Open(context.Background(), paths, nil, Reading{Spec: accesslog.Spec{Log: "COMBINED"}, Pause: pause})
	if err != nil {
		t.Fatal(err)
	}
	return logs
}

// apart returns n times from the first on.
func apart(n int, first, step time.Duration) []time.Duration {
	var out []time.Duration
	for i := range n {
		out = append(out, first+time.Duration(i)*step)
	}
	return out
}

// timed is a log with odd time stamps, and what a replay makes of it.
type timed struct {
	why    string
	plan   Plan // one loop, spread over no second
	files  [][]time.Duration
	lasts  time.Duration // from the first request to the last
	warns  string        // a part of what is said; "": nothing is
	pauses uint64        // shortened
}

func (row timed) check(t *testing.T) {
	t.Helper()
	plan := row.plan
	plan.Loops, plan.Burst, plan.Methods = 1, true, map[string]bool{"GET": true}
	if plan.Speed == 0 {
		plan.Speed = 1
	}
	switch plan.Pause {
	case 0:
		plan.Pause = 12 * time.Hour
	case -1:
		plan.Pause = 0
	}
	logs := logOf(t, plan.Pause, row.files...)
	traffic := New(plan, logs, counter{}, route.New(nil))
	var first, last int64
	requests := 0
	for one := range traffic.Paced() {
		if requests++; requests == 1 {
			first = one.AtNS
		}
		last = one.AtNS
	}
	if took := time.Duration(last - first); first != 0 || took != row.lasts {
		t.Errorf("%s: %d requests from %v to %v, want %v", row.why, requests, time.Duration(first), took, row.lasts)
	}
	if whole, _ := traffic.Expected(); whole != row.lasts {
		t.Errorf("%s: progress counts to %v, want %v", row.why, whole, row.lasts)
	}
	warnings := strings.Join(traffic.Warnings(), "\n")
	if (warnings == "") != (row.warns == "") || !strings.Contains(warnings, row.warns) {
		t.Errorf("%s: says %q, want %q", row.why, warnings, row.warns)
	}
	if said := strings.Contains(warnings, "set back"); said != (logs.Facts()[0].SetBacks > 0) {
		t.Errorf("%s: run.json has %d steps back", row.why, logs.Facts()[0].SetBacks)
	}
	var run record.Run
	traffic.Describe(&run)
	if (run.LogPauses == nil) != (row.pauses == 0) || run.LogPauses != nil && run.LogPauses.Shortened != row.pauses {
		t.Errorf("%s: run.json has %+v, want %d pauses", row.why, run.LogPauses, row.pauses)
	}
}

func TestNoTimeStampFreezesARun(t *testing.T) {
	const h, s = time.Hour, time.Second
	in1970, in2100 := time.Unix(0, 0).Sub(noon), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).Sub(noon)
	body := apart(40, 0, s)
	all := func(parts ...[]time.Duration) []time.Duration { return slices.Concat(parts...) }
	rows := []timed{
		{"a log without pauses", Plan{}, [][]time.Duration{body}, 39 * s, "", 0},
		{"a night", Plan{}, [][]time.Duration{all(body, apart(40, 11*h, s))}, 11*h + 39*s, "", 0},
		{"a missing day", Plan{}, [][]time.Duration{body, apart(40, 48*h, s)}, 12*h + 78*s,
			"log.1:1: nothing was logged for 47h59m21s, from 2026-11-20 12:00:39 UTC to 2026-11-22 12:00:00 UTC: this pause is shortened to 12h0m0s (see --max-gap)", 1},
		{"two missing days", Plan{}, [][]time.Duration{body, apart(40, 48*h, s), apart(40, 100*h, s)}, 24*h + 117*s, "log.2:1: nothing was logged for 51h59m21s", 2},
		{"the same at ten times the pace", Plan{Speed: 10}, [][]time.Duration{body, apart(40, 48*h, s)}, (12*h + 78*s) / 10, "nothing was logged", 1},
		{"a pause of a day, where any is kept", Plan{Pause: -1}, [][]time.Duration{body, apart(40, 48*h, s)}, 48*h + 39*s, "", 0},
		{"a short pause, where only shorter ones are kept", Plan{Pause: 10 * s}, [][]time.Duration{all(body, apart(40, 60*s, s))}, 39*s + 10*s + 39*s, "shortened to 10s", 1},
		{"a pause that --from leaves out", Plan{From: noon.Add(48 * h)}, [][]time.Duration{body, apart(40, 48*h, s)}, 39 * s, "", 0},
		{"a --from in the middle of a pause", Plan{From: noon.Add(24 * h)}, [][]time.Duration{body, apart(40, 48*h, s)}, 39 * s, "", 0},
		{"a --to in the middle of a pause", Plan{To: noon.Add(24 * h)}, [][]time.Duration{body, apart(40, 48*h, s)}, 39 * s, "", 0},
		{"a stray in the past", Plan{}, [][]time.Duration{all(body, []time.Duration{in1970}, apart(40, 40*s, s))}, 79 * s,
			"log.0:41: the time stamp 1970-01-01 00:00:00 UTC strays from all others of this log, which are from 2026-11-20 12:00:00 UTC to 2026-11-20 12:01:19 UTC; a replay takes the request for logged with the line before it", 0},
		{"a stray in the future", Plan{}, [][]time.Duration{all(body, []time.Duration{in2100}, apart(40, 40*s, s))}, 79 * s, "log.0:41: the time stamp 2100", 0},
		{"the first line and the last", Plan{}, [][]time.Duration{all([]time.Duration{in1970}, body, []time.Duration{in2100})}, 39 * s, "a replay takes this and 1 more for logged with the lines before them", 0},
		{"several in a row", Plan{}, [][]time.Duration{all(body, apart(9, in2100, h), apart(40, 40*s, s))}, 79 * s, "log.0:41: the time stamp 2100", 0},
		{"strays at the head of a file of several", Plan{}, [][]time.Duration{body, all([]time.Duration{in2100}, apart(40, 40*s, s)), apart(40, 80*s, s)}, 119 * s, "log.1:1: the time stamp 2100", 0},
		{"a clock set back by ten minutes", Plan{}, [][]time.Duration{all(apart(1200, 0, s), apart(1200, 600*s, s))}, 2399 * s,
			"log.0:1201: the clock was set back, from 2026-11-20 12:19:59 UTC to 2026-11-20 12:10:00 UTC; a replay goes on in the order of the log", 0},
		{"the hour that is there twice, and the next file by the same clock", Plan{},
			[][]time.Duration{all(apart(360, 0, 10*s), apart(360, 0, 10*s)), apart(60, 3600*s, 10*s)}, 7790 * s, "log.0:361: the clock was set back", 0},
		{"two steps", Plan{}, [][]time.Duration{all(apart(200, 0, s), apart(200, 100*s, s), apart(200, 200*s, s))}, 599 * s, "(and 1 more)", 0},
		{"another server goes on by its own clock", Plan{}, [][]time.Duration{all(apart(400, 0, s), apart(200, 200*s, s)), apart(399, s, s), apart(99, 400*s, s)}, 599 * s, "log.0:401", 0},
		{"buffers that are written one after the other", Plan{}, [][]time.Duration{all(apart(100, 0, 4*s), apart(100, s, 4*s), apart(100, 2*s, 4*s), apart(100, 3*s, 4*s))}, 399 * s, "", 0},
		{"long requests that end together", Plan{}, [][]time.Duration{all(apart(100, 0, s), apart(50, 50*s, s), apart(100, 100*s, s))}, 199 * s, "", 0},
		{"a line now and then by a clock that is ahead", Plan{}, [][]time.Duration{all(apart(100, 0, s), apart(1, 400*s, s), apart(100, 100*s, s))}, 400 * s, "", 0},
	}
	for _, row := range rows {
		row.check(t)
	}
}

func TestPausesMatterOnlyWhereTheLogSetsThePace(t *testing.T) {
	logs := logOf(t, 0, apart(40, 0, time.Second), apart(40, 48*time.Hour, time.Second))
	rows := []struct {
		why  string
		plan Plan
		says bool
	}{
		{"at the log's pace", Plan{Speed: 1}, true},
		{"at a rate", Plan{Speed: 1, Rate: 10}, false},
		{"with users, whose visits end with a pause", Plan{Speed: 1, Users: true}, false},
		{"as fast as it goes", Plan{}, false},
	}
	for _, row := range rows {
		row.plan.Pause, row.plan.Loops = 12*time.Hour, 1
		if got := len(New(row.plan, logs, counter{}, route.New(nil)).Warnings()) > 0; got != row.says {
			t.Errorf("%s: says something is %v, want %v", row.why, got, row.says)
		}
	}
}

// A request that had taken hours when the log began must not keep all others waiting.
func TestALongRequestDoesNotDelayTheRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	text := ""
	for i, took := range []string{"36000", "0.1", "1e9", "2"} {
		text += fmt.Sprintf("192.0.2.7 [20/Nov/2026:12:00:%02d +0000] GET / 200 5 %s\n", i, took)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := accesslog.Spec{Log: "%h [%d:%t %^] %m %U %s %b %T", Date: "%d/%b/%Y", Time: "%H:%M:%S"}
	logs, err := Open(context.Background(), []string{path}, nil, Reading{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	logs.Finished = true
	traffic := New(Plan{Speed: 1, Loops: 1, Burst: true, Pause: 12 * time.Hour, Methods: map[string]bool{"GET": true}}, logs, counter{}, route.New(nil))
	last := int64(0)
	for one := range traffic.Paced() {
		last = one.AtNS
	}
	if time.Duration(last) > leadIn+3*time.Second {
		t.Errorf("the last of three seconds of requests is due after %v", time.Duration(last))
	}
}
