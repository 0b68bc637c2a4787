package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestCreateRefusesWithARemedy(t *testing.T) {
	root := t.TempDir()
	full := filepath.Join(root, "full")
	plain := filepath.Join(root, "file")
	if err := errors.Join(os.Mkdir(full, 0o755), os.WriteFile(filepath.Join(full, "x"), nil, 0o644), os.WriteFile(plain, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why, path string
		is        error
		says      string
	}{
		{"a folder with something in it is not written into", full, ErrNotEmpty, "choose another one with --out"},
		{"a file is not a folder", filepath.Join(plain, "run"), syscall.ENOTDIR, "choose another folder with --out"},
		{"a place where nobody may write", "/proc/nowhere/run", fs.ErrNotExist, "/proc/nowhere"},
	} {
		d, err := Create(c.path, Run{}, Options{})
		if err == nil {
			d.Close(Failed, "")
			t.Errorf("%s: it was created", c.why)
			continue
		}
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %q, want one that is %v and says %q", c.why, err, c.is, c.says)
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is more than a sentence: %q", c.why, err)
		}
	}
}

func TestCreateTakesAnEmptyFolder(t *testing.T) {
	d, err := Create(t.TempDir(), Run{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Close(Complete, ""); err != nil {
		t.Error(err)
	}
}

func TestExplainedErrorsNameTheRemedy(t *testing.T) {
	for _, c := range []struct {
		why  string
		err  error
		says string
	}{
		{"a full disk", syscall.ENOSPC, "free some space"},
		{"a full quota", syscall.EDQUOT, "free some space"},
		{"no permission", syscall.EACCES, "that you may write to"},
		{"a disk mounted read-only", syscall.EROFS, "that you may write to"},
		{"a file longer than allowed", syscall.EFBIG, "ulimit -f"},
		{"what is not known is told as it is", syscall.EIO, "input/output error"},
	} {
		err := explain(&fs.PathError{Op: "write", Path: "requests.npy", Err: c.err}, "results/1/requests.npy")
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, want it to say %q", c.why, err, c.says)
		}
	}
}

func TestManyGoroutinesLoseNothing(t *testing.T) {
	const senders, each = 8, 20_000
	dir := filepath.Join(t.TempDir(), "run")
	d, err := Create(dir, Run{}, Options{GrinderLog: true})
	if err != nil {
		t.Fatal(err)
	}
	d.Start(time.Now())
	var group sync.WaitGroup
	for sender := range senders {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range each {
				d.Add(&Record{Line: uint64(i), Client: uint32(sender), TotalUS: uint32(i)})
				if i%1000 == 0 {
					d.Live()
					d.Skip("cap_reached")
					d.EventNow("tick", "")
					d.Reject(Reject{File: "log", Line: uint64(i), Why: "no host"})
				}
			}
		}()
	}
	group.Wait()
	s, err := d.Close(Complete, "")
	if err != nil {
		t.Fatal(err)
	}
	if s.Requests.Sent != senders*each || s.Requests.Skipped["cap_reached"] != senders*each/1000 || *s.Requests.Total != senders*each+senders*each/1000 {
		t.Errorf("summary counts %+v", s.Requests)
	}
	r, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var next [senders]uint64
	for record, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if record.Line != next[record.Client] {
			t.Fatalf("client %d: line %d comes where %d should", record.Client, record.Line, next[record.Client])
		}
		next[record.Client]++
	}
	for client, n := range next {
		if n != each {
			t.Errorf("client %d: %d records, want %d", client, n, each)
		}
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	d, err := Create(t.TempDir(), Run{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(Complete, "")
	r := Record{TotalUS: 100}
	// A block is made for each 1,024 records, at most.
	if got := testing.AllocsPerRun(500, func() { d.Add(&r) }); got != 0 {
		t.Errorf("%v allocations a record", got)
	}
}

func TestCloseTwiceIsCloseOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	d, err := Create(dir, Run{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.Add(&Record{TotalUS: 5})
	if _, err := d.Close(Interrupted, "stopped by a signal"); err != nil {
		t.Fatal(err)
	}
	s, err := d.Close(Complete, "")
	if err != nil || s.Requests.Sent != 1 {
		t.Errorf("second Close: %+v, %v", s.Requests, err)
	}
	r, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Run.Status != Interrupted || r.Run.Reason == nil || *r.Run.Reason != "stopped by a signal" {
		t.Errorf("run.json says %v, %v", r.Run.Status, r.Run.Reason)
	}
}

func TestRunningRunIsReadable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	d, err := Create(dir, Run{Scenario: "replay"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(Complete, "")
	r, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Run.Status != Running || r.Summary != nil || r.Len() != 0 || !r.Run.StartedAt.IsZero() {
		t.Errorf("before its start the run is %+v with %d records", r.Run, r.Len())
	}
}

func TestRoutesAppearWithTheirRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	d, err := Create(dir, Run{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"page"}
	d.SetRoutes(func() []string { return names })
	d.Add(&Record{Route: 0})
	d.Add(&Record{Route: 3})
	s, err := d.Close(Complete, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, filepath.Join(dir, "routes.json")); got != "[\n  \"page\"\n]\n" {
		t.Errorf("routes.json is %q", got)
	}
	if len(s.Routes) != 2 || s.Routes[0].Name != "page" || s.Routes[1].Name != "route 3" || s.Routes[1].Number != 4 {
		t.Errorf("rows of the table are %+v", s.Routes)
	}
}

func TestLiveFigures(t *testing.T) {
	d, err := Create(t.TempDir(), Run{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(Complete, "")
	for range 999 {
		d.Add(&Record{TotalUS: 2000, LagUS: 10})
	}
	if l := d.Live(); l.Sent != 999 || l.Errors != 0 || l.ResponseP999MS != nil {
		t.Errorf("after 999 requests: %+v", l)
	}
	d.Add(&Record{TotalUS: 9000, LagUS: 10, Error: Timeout})
	d.Close(Complete, "")
	if l := d.Live(); l.Sent != 1000 || l.Errors != 1 || *l.ResponseP999MS != 2.01 || *l.LagP999MS != 0.01 {
		t.Errorf("after 1,000 requests: %+v", l)
	}
}

// A run that is killed soon has its first records on the disk.
func TestFirstRecordsAreWrittenSoon(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	synctest.Test(t, func(t *testing.T) {
		d, err := Create(dir, Run{Scenario: "replay"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		_ = d.Start(time.Now())
		d.Add(&Record{TotalUS: 100})
		time.Sleep(firstFlush)
		synctest.Wait()
		r, err := OpenRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		if r.Len() != 1 {
			t.Errorf("%d records", r.Len())
		}
		_ = r.Close()
		_, _ = d.Close(Complete, "")
	})
}

func TestRejectsAreHarmlessLines(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		why  string
		r    Reject
		want string
	}{
		{"a plain line stays as it is", Reject{"access.log", 3, "%h", 1, "not a host", []byte(`a "b" c`)},
			`access.log:3:1: %h: not a host: a "b" c` + "\n"},
		{"line feeds and escape sequences are spelled out", Reject{"a\nb", 1, "%t", 5, "bad", []byte("x\r\n\x1b]0;t\x07\x00\xff")},
			`a\nb:1:5: %t: bad: x\r\n\x1b]0;t\a\x00\xff` + "\n"},
		{"a line without a specifier", Reject{File: "-", Line: 9, Why: "too long"}, "-:9:0: too long: \n"},
		{"writing from right to left is spelled out", Reject{File: "-", Line: 9, Why: "no", Text: []byte("a\u202eb")},
			`-:9:0: no: a\u202eb` + "\n"},
		{"a long line is cut", Reject{File: "-", Line: 9, Why: "no", Text: []byte(long)},
			"-:9:0: no: " + long[:maxRejectBytes] + "… (1048576 bytes)\n"},
	} {
		if got := c.r.line(); got != c.want {
			t.Errorf("%s: got %.200q, want %.200q", c.why, got, c.want)
		}
	}
}

func TestOnlyTheFirstRejectsAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	d, err := Create(dir, Run{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1500 {
		d.Reject(Reject{File: "log", Line: uint64(i), Why: "no host"})
	}
	if _, err := d.Close(Complete, ""); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(readFile(t, filepath.Join(dir, "rejects.log")), "\n"); got != maxRejects {
		t.Errorf("%d lines, want %d", got, maxRejects)
	}
}

func TestEventLines(t *testing.T) {
	for _, c := range []struct {
		why  string
		e    Event
		want string
	}{
		{"an event with a phase", Event{TNS: 5, Name: "zfs-send", Phase: "start"}, `{"t_ns":5,"event":"zfs-send","phase":"start"}`},
		{"one without", Event{Name: "interrupt"}, `{"t_ns":0,"event":"interrupt"}`},
		{"its own keys come last, by name", Event{Name: "e", More: map[string]any{"b": 2, "a": "x\ny"}}, `{"t_ns":0,"event":"e","a":"x\ny","b":2}`},
	} {
		if got, err := c.e.MarshalJSON(); err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.why, got, err, c.want)
		}
	}
	if _, err := (Event{More: map[string]any{"f": func() {}}}).MarshalJSON(); err == nil {
		t.Error("a function was written as JSON")
	}
}
