package record

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// childEnv tells the test binary to write a run directory until it is killed.
const childEnv = "PLIMSOLL_RECORD_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		writeUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// settled is how many records the child adds before it says so; it adds more all the time afterwards.
const settled = 30_000

func writeUntilKilled(dir string) {
	d, err := Create(dir, Run{Scenario: "replay"}, Options{GrinderLog: true, HDRLog: true})
	if err != nil {
		panic(err)
	}
	d.SetRoutes(func() []string { return []string{"page"} })
	if err := d.Start(time.Now()); err != nil {
		panic(err)
	}
	for i := range settled {
		d.Add(&Record{DueNS: int64(i), Line: uint64(i), TotalUS: 100})
	}
	os.Stdout.WriteString("settled\n")
	for i := settled; ; i++ {
		d.Add(&Record{DueNS: int64(i), Line: uint64(i), TotalUS: 100})
		if i%100 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

func TestKilledRunKeepsItsRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	// Nothing is closed, so what was added gets to the file by the flush of each second alone; meanwhile the
	// directory is readable at every instant.
	for seen := int64(0); seen < 2*settled; {
		seen = checkReadable(t, dir, seen)
		time.Sleep(5 * time.Millisecond)
	}
	if err := child.Process.Kill(); err != nil { // SIGKILL: nothing of it runs any more
		t.Fatal(err)
	}
	child.Wait()
	checkReadable(t, dir, 2*settled)
	loadWithNumpy(t, dir)
}

// checkReadable opens the run and returns its length, which must not have shrunk below atLeast.
func checkReadable(t *testing.T, dir string, atLeast int64) int64 {
	t.Helper()
	shape := shownShape(t, dir)
	r, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Len() < shape || r.Len() < atLeast {
		t.Fatalf("%d records in the file, %d in its header, %d were there before", r.Len(), shape, atLeast)
	}
	next := uint64(0)
	for record, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if record.Line != next || record.TotalUS != 100 {
			t.Fatalf("record %d is %+v", next, record)
		}
		next++
	}
	return r.Len()
}

// loadWithNumpy holds the file against the reader that others will use, where there is one.
func loadWithNumpy(t *testing.T, dir string) {
	t.Helper()
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	if exec.Command(python, "-c", "import numpy").Run() != nil {
		t.Logf("%s has no numpy: np.load is not tried", python)
		return
	}
	const script = `
import json, sys, numpy as np
for mode in (None, "r"):
    a = np.load(sys.argv[1], mmap_mode=mode)
    assert (a["line"] == np.arange(len(a))).all()
print(json.dumps({"n": len(a), "names": a.dtype.names, "size": a.dtype.itemsize}))`
	out, err := exec.Command(python, "-c", script, filepath.Join(dir, "requests.npy")).Output()
	if err != nil {
		t.Fatalf("np.load: %v", err)
	}
	var got struct {
		N     int64
		Names []string
		Size  int
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if got.N != shownShape(t, dir) || got.Size != Size || len(got.Names) != len(columns) {
		t.Errorf("numpy sees %+v, want %d records", got, shownShape(t, dir))
	}
	if !strings.HasPrefix(strings.Join(got.Names, " "), "due_ns lag_us dns_us") {
		t.Errorf("numpy's columns are %q", got.Names)
	}
}
