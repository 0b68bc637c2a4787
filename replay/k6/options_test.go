package k6

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/grafana/sobek"
)

// given makes options of a JavaScript object.
func given(t *testing.T, js string) (*options, error) {
	t.Helper()
	value, err := sobek.New().RunString("(" + js + ")")
	if err != nil {
		t.Fatal(err)
	}
	return readOptions(value)
}

func TestOptionsAreTheFlagsInCamelCase(t *testing.T) {
	o, err := given(t, `{ logs: ['a.log', '/b.log'], target: 'http://127.0.0.1', connectTo: '127.0.0.1:81', speed: 0.5, burst: true,
		unconditional: false, include: ['^/a', '^/b'], header: { 'X-Test': 'yes' }, limit: 100, warmup: '2s', startAt: 'minute' }`)
	if err != nil {
		t.Fatal(err)
	}
	c, setup, err := o.command(func(path string) string { return filepath.Join("/script", path) })
	if err != nil {
		t.Fatal(err)
	}
	if c.ConnectTo != "127.0.0.1:81" || c.Speed != "0.5" || !c.Burst || c.Unconditional || c.Limit != 100 || c.Warmup != 2*time.Second ||
		len(c.Include) != 2 || c.Header[0] != "X-Test: yes" || !c.Quiet {
		t.Errorf("%+v", c)
	}
	if c.Logs[0] != "/script/a.log" {
		t.Errorf("logs %v are not looked for beside the script", c.Logs)
	}
	if !setup.StartAt.IsZero() {
		t.Errorf("a minute is known only when the run begins: %v", setup.StartAt)
	}
}

func TestWhatIsWrongIsSaidAsScriptsCallIt(t *testing.T) {
	for _, c := range []struct{ says, js, want string }{
		{"no log", `{ target: 'http://127.0.0.1' }`, "logs: missing"},
		{"no target: there is no embedded origin here", `{ logs: 'a' }`, "target: missing"},
		{"both at once", `{}`, "target: missing"},
		{"a text is no object", `'a.log'`, "needs an object"},
		{"an unknown option", `{ logs: 'a', target: 'http://127.0.0.1', sped: 1 }`, "unknown flag sped"},
		{"two that contradict each other", `{ logs: 'a', target: 'http://127.0.0.1', speed: 2, rate: 5 }`, "rate and speed cannot be combined"},
		{"a name of two words", `{ logs: 'a', target: 'http://127.0.0.1', maxConnections: 0 }`, "maxConnections: 0 is out of range"},
		{"standard input", `{ logs: '-', target: 'http://127.0.0.1' }`, "standard input"},
		{"a header that is a text", `{ logs: 'a', target: 'http://127.0.0.1', header: 'X: y' }`, "give an object"},
		{"an object where a text belongs", `{ logs: 'a', target: { url: 'x' } }`, "give a string"},
		{"quiet is not ours", `{ logs: 'a', target: 'http://127.0.0.1', quiet: true }`, "only for bin/replay"},
	} {
		o, err := given(t, c.js)
		if err == nil {
			_, _, err = o.command(func(path string) string { return path })
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.says, err, c.want)
		} else if strings.Contains(err.Error(), "--") {
			t.Errorf("%s: speaks of flags: %v", c.says, err)
		}
	}
}

func TestInstancesThatAreResumedTogetherAgreeOnTheMinute(t *testing.T) {
	minute := time.Date(2026, 11, 22, 10, 5, 0, 0, time.UTC)
	for _, c := range []struct {
		says string
		now  string
		want time.Time
	}{
		{"early in the minute", "10:04:01", minute},
		{"nine seconds later still", "10:04:49", minute},
		{"ten seconds before the minute it is too late", "10:04:50", minute.Add(time.Minute)},
		{"and just before it", "10:04:59", minute.Add(time.Minute)},
	} {
		now, _ := time.Parse("2006-01-02 15:04:05", "2026-11-22 "+c.now)
		if got := nextMinute(now); !got.Equal(c.want) {
			t.Errorf("%s: at %s it is %v, want %v", c.says, c.now, got, c.want)
		}
	}
}

func TestAStartThatCannotBe(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for text, ok := range map[string]bool{
		"": true, "minute": true, "2026-11-22T10:00:05Z": true, "2026-11-22T11:00:05.25+01:00": true,
		"2026-11-22": false, "soon": false, "2026-11-21T10:00:00Z": false, "2027-11-22T10:00:00Z": false,
	} {
		if _, err := startInstant(text, now); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
