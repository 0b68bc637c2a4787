package live

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"plimsoll/replay/record"
)

const headerBytes = 512

// begun is when the folder of each test is looked at first.
var begun = time.Now()

// written makes a whole run directory of n requests, by the program that writes them.
func written(t *testing.T, run record.Run, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "written")
	run.Load = &record.Load{Settings: map[string]any{"timeout_s": 30.0}}
	dir, err := record.Create(path, run, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir.SetRoutes(func() []string { return []string{"page"} })
	if err := dir.Start(begun.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	for range n {
		dir.Add(&record.Record{TotalUS: 1000, Status: 200, Bytes: 10})
	}
	if _, err := dir.Close(record.Complete, ""); err != nil {
		t.Fatal(err)
	}
	return path
}

// grown is a run directory that a test lets grow, by what another one has.
type grown struct {
	t          *testing.T
	path       string
	records    []byte
	facts, old string // run.json while it runs, and at its end
}

func grow(t *testing.T, path string, run record.Run, n int) *grown {
	t.Helper()
	source := written(t, run, n)
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	g := &grown{t: t, path: path, records: []byte(read("requests.npy")), old: read("run.json")}
	g.facts = strings.Replace(g.old, `"complete"`, `"running"`, 1)
	g.put("run.json", g.facts)
	g.put("routes.json", read("routes.json"))
	g.put("requests.npy", string(g.records[:headerBytes]))
	g.records = g.records[headerBytes:]
	return g
}

func (g *grown) put(name, text string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.path, name), []byte(text), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// more appends so many bytes.
func (g *grown) more(n int) {
	g.t.Helper()
	f, err := os.OpenFile(filepath.Join(g.path, "requests.npy"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		g.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(g.records[:n]); err != nil {
		g.t.Fatal(err)
	}
	g.records = g.records[n:]
}

func (g *grown) ends() { g.put("run.json", g.old) }

func look(t *testing.T, f *Folder) {
	t.Helper()
	if err := f.Look(time.Now()); err != nil {
		t.Fatal(err)
	}
}

// shown returns the requests by scenario and backend, and the runs that are under way.
func shown(t *testing.T, f *Folder) string {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		for _, one := range family.GetMetric() {
			switch family.GetName() {
			case "plimsoll_requests_total":
				lines = append(lines, fmt.Sprintf("%s/%s %s %v", of(one, "scenario"), of(one, "backend"), of(one, "route"), one.GetCounter().GetValue()))
			case infoName:
				lines = append(lines, "runs "+filepath.Base(of(one, "run")))
			case "plimsoll_saturator_bytes_per_second":
				lines = append(lines, fmt.Sprintf("%s of %s %v", of(one, "saturator"), of(one, "attempt"), one.GetGauge().GetValue()))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

func of(one *dto.Metric, name string) string {
	for _, pair := range one.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

func expect(t *testing.T, f *Folder, why, want string) {
	t.Helper()
	if got := shown(t, f); got != want {
		t.Errorf("%s: %q, want %q", why, got, want)
	}
}

func TestARunIsShownAsItGrows(t *testing.T) {
	root := t.TempDir()
	f := NewFolder(root, begun)
	look(t, f)
	expect(t, f, "nothing runs", "")
	g := grow(t, filepath.Join(root, "one"), record.Run{Scenario: "download"}, 5)
	look(t, f)
	expect(t, f, "it has begun", "runs one")
	g.more(2*record.Size + 10)
	look(t, f)
	expect(t, f, "half a record waits", "download/ page 2; runs one")
	g.more(record.Size - 10)
	look(t, f)
	expect(t, f, "for its other half", "download/ page 3; runs one")
	g.more(2 * record.Size)
	g.ends()
	look(t, f)
	expect(t, f, "what came last counts, and it is over", "download/ page 5")
	look(t, f)
	expect(t, f, "once", "download/ page 5")
}

func TestRunsOfAnExperimentAreToldApartByScenarioAndBackend(t *testing.T) {
	root := t.TempDir()
	f := NewFolder(root, begun)
	for _, backend := range []string{"old", "new"} {
		for repeat := range 2 {
			path := filepath.Join(root, "attempts", fmt.Sprintf("%s-%d", backend, repeat), "replay", "run")
			g := grow(t, path, record.Run{Scenario: "replay", Backend: &backend}, 3)
			look(t, f)
			g.more(3 * record.Size)
			g.ends()
			look(t, f)
			moved := filepath.Join(root, "runs", fmt.Sprintf("%s-%d", backend, repeat))
			if err := os.MkdirAll(filepath.Dir(moved), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path, moved); err != nil {
				t.Fatal(err)
			}
			look(t, f)
		}
	}
	expect(t, f, "repeats add up, and none counts again where it was moved to", "replay/new page 6; replay/old page 6")
}

func TestALaterRunMayHaveTheFileNumberOfOneThatIsGone(t *testing.T) {
	root := t.TempDir()
	f := NewFolder(root, begun)
	first := grow(t, filepath.Join(root, "first"), record.Run{Scenario: "download"}, 3)
	first.more(3 * record.Size)
	first.ends()
	look(t, f)
	second := grow(t, filepath.Join(root, "second"), record.Run{Scenario: "download"}, 3)
	if err := os.Rename(filepath.Join(first.path, "requests.npy"), filepath.Join(second.path, "requests.npy")); err != nil {
		t.Fatal(err)
	}
	first.put("requests.npy", "")
	var facts map[string]any
	if err := json.Unmarshal([]byte(second.facts), &facts); err != nil {
		t.Fatal(err)
	}
	facts["started_at"] = begun.Add(time.Minute).UTC().Format(time.RFC3339Nano)
	text, err := json.Marshal(facts)
	if err != nil {
		t.Fatal(err)
	}
	second.put("run.json", string(text))
	look(t, f)
	expect(t, f, "it counts on its own", "download/ page 6; runs second")
}

func TestRunsThatTheFolderHolds(t *testing.T) {
	for _, row := range []struct {
		why   string
		since time.Duration // after the start of the run
		old   time.Duration // since when nothing was written
		ends  bool
		want  string
	}{
		{"it began later, and was over at once", -30 * time.Second, 0, true, "download/ page 2"},
		{"it was begun before: what was written is the past", 30 * time.Second, 0, false, "runs run"},
		{"it was over before", 30 * time.Second, 0, true, ""},
		{"it was killed before", 30 * time.Second, time.Hour, false, ""},
		{"it was killed later", -30 * time.Second, time.Hour, false, "download/ page 2"},
	} {
		t.Run(row.why, func(t *testing.T) {
			root := t.TempDir()
			g := grow(t, filepath.Join(root, "run"), record.Run{Scenario: "download"}, 3)
			g.more(2 * record.Size)
			if row.ends {
				g.ends()
			}
			at := time.Now().Add(-row.old)
			if err := os.Chtimes(filepath.Join(g.path, "requests.npy"), at, at); err != nil {
				t.Fatal(err)
			}
			f := NewFolder(root, begun.Add(time.Second+row.since))
			if err := f.Look(time.Now()); err != nil {
				t.Fatal(err)
			}
			expect(t, f, row.why, row.want)
		})
	}
}

func TestWhatIsNoRunIsLeftOutAndTold(t *testing.T) {
	for _, row := range []struct {
		why  string
		make func(run string) error
		says string
	}{
		{"run.json is broken", func(run string) error { return os.WriteFile(run+"/run.json", []byte("{"), 0o644) }, "run.json: unexpected end of JSON input"},
		{"the records have other columns", func(run string) error {
			return os.WriteFile(run+"/requests.npy", make([]byte, 600), 0o644)
		}, "requests.npy: " + record.ErrFormat.Error()},
		{"the records are a pipe, which would wait for its writer", func(run string) error {
			return syscall.Mkfifo(run+"/requests.npy", 0o644)
		}, "requests.npy: is not a regular file"},
		{"nothing is written yet", func(run string) error { return os.WriteFile(run+"/requests.npy", nil, 0o644) }, ""},
		{"there are no records yet", func(string) error { return nil }, ""},
	} {
		t.Run(row.why, func(t *testing.T) {
			root := t.TempDir()
			g := grow(t, filepath.Join(root, "run"), record.Run{Scenario: "download"}, 1)
			if err := os.Remove(filepath.Join(g.path, "requests.npy")); err != nil {
				t.Fatal(err)
			}
			if err := row.make(g.path); err != nil {
				t.Fatal(err)
			}
			f := NewFolder(root, begun)
			err := f.Look(time.Now())
			if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v, want %q", err, row.says)
			}
			expect(t, f, row.why, "")
		})
	}
}

func TestALinkIsNotFollowed(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	grow(t, filepath.Join(outside, "run"), record.Run{Scenario: "download"}, 1).more(record.Size)
	if err := os.Symlink(filepath.Join(outside, "run"), filepath.Join(root, "latest")); err != nil {
		t.Fatal(err)
	}
	f := NewFolder(root, begun)
	look(t, f)
	expect(t, f, "results/latest is a run that is there already", "")
}

func TestTheSaturatorIsShownWhileItWorks(t *testing.T) {
	attempt := filepath.Join(t.TempDir(), "r1")
	if err := os.Mkdir(attempt, 0o755); err != nil {
		t.Fatal(err)
	}
	events := filepath.Join(attempt, eventsName)
	add := func(text string) {
		t.Helper()
		file, err := os.OpenFile(events, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := io.WriteString(file, text); err != nil {
			t.Fatal(err)
		}
	}
	f := NewFolder(filepath.Dir(attempt), begun)
	for _, row := range []struct{ why, line, want string }{
		{"it starts", `{"event": "zfs-send", "phase": "start"}` + "\n", ""},
		{"it sends", `{"event": "zfs-send bytes", "bytes_per_s": 2e8}` + "\n" + `{"event": "zfs-send bytes", "bytes_`, "zfs-send of r1 2e+08"},
		{"the other half of a line", `per_s": 1e8}` + "\nno JSON\n", "zfs-send of r1 1e+08"},
		{"it stops", `{"event": "zfs-send", "phase": "stop", "bytes": 5}` + "\n", ""},
	} {
		add(row.line)
		look(t, f)
		expect(t, f, row.why, row.want)
	}
	add(`{"event": "zfs-send bytes", "bytes_per_s": 1e8}` + "\n")
	if err := f.Look(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	expect(t, f, "what was a minute ago is not now", "")
}
