package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// smallDisk is a file on a disk that has room for so many bytes; what does not fit is written in part, as a real
// one does.
type smallDisk struct {
	*os.File
	room int
}

func (s *smallDisk) Write(b []byte) (int, error) {
	if len(b) <= s.room {
		s.room -= len(b)
		return s.File.Write(b)
	}
	n, _ := s.File.Write(b[:s.room])
	s.room = 0
	return n, &os.PathError{Op: "write", Path: s.Name(), Err: syscall.ENOSPC}
}

// onSmallDisk makes the file called name small, and no other.
func onSmallDisk(name string, room int) Options {
	return Options{create: func(path string) (file, error) {
		f, err := os.Create(path)
		if err != nil || filepath.Base(path) != name {
			return f, err
		}
		return &smallDisk{f, room}, nil
	}}
}

func TestFullDiskStopsTheRecords(t *testing.T) {
	const fit = 2500
	dir := filepath.Join(t.TempDir(), "run")
	d, err := Create(dir, Run{}, onSmallDisk("requests.npy", headerSize+fit*Size+30))
	if err != nil {
		t.Fatal(err)
	}
	d.Start(time.Now())
	for i := range 5000 {
		d.Add(&Record{Line: uint64(i), TotalUS: 1})
	}
	d.wakeUp()
	<-d.Failed()
	for range 1000 { // the engine may not have noticed yet
		d.Add(&Record{TotalUS: 1})
	}
	s, err := d.Close(Complete, "")
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space there") {
		t.Errorf("error %v", err)
	}
	if s.Requests.Sent != 6000 {
		t.Errorf("%d requests counted, want all 6000", s.Requests.Sent)
	}
	r, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	records := collect(t, r)
	if len(records) != fit || records[fit-1].Line != fit-1 {
		t.Errorf("%d records are left, want %d", len(records), fit)
	}
	if sum := sumOfRecords(t, dir); s.Records != sum {
		t.Errorf("the sum of the records is %s, want %s of those that are left", s.Records, sum)
	}
	if shape := shownShape(t, dir); shape != fit {
		t.Errorf("the header shows %d records, want %d", shape, fit)
	}
	if r.Run.Status != Failed || r.Run.Reason == nil || !strings.Contains(*r.Run.Reason, "requests.npy") {
		t.Errorf("run.json says %v, %v", r.Run.Status, r.Run.Reason)
	}
}

func TestAnyFileThatFailsFailsTheRun(t *testing.T) {
	for _, name := range []string{"events.jsonl", "rejects.log", "grinder-0-data.log", "latency.hlog"} {
		opts := onSmallDisk(name, len(grinderHeader)+10)
		opts.GrinderLog, opts.HDRLog = true, true
		dir := filepath.Join(t.TempDir(), "run")
		d, err := Create(dir, Run{}, opts)
		if err != nil {
			t.Fatal(err)
		}
		d.Start(time.Now())
		d.Reject(Reject{File: "access.log", Line: 1, Why: "no host", Text: make([]byte, 500)})
		d.Event(Event{Name: strings.Repeat("long ", 100)})
		d.Add(&Record{TotalUS: 1})
		if _, err := d.Close(Complete, ""); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("%s full: %v", name, err)
		}
	}
}

func TestNoRoomForTheHeader(t *testing.T) {
	if _, err := Create(filepath.Join(t.TempDir(), "run"), Run{}, onSmallDisk("requests.npy", 100)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v", err)
	}
}

// sumOfRecords is the SHA-256 of all whole records, in hexadecimal.
func sumOfRecords(t *testing.T, dir string) string {
	t.Helper()
	records := readFile(t, filepath.Join(dir, "requests.npy"))[headerSize:]
	return Digest([]byte(records[:len(records)/Size*Size]))
}

// shownShape is the number of records that the header of requests.npy shows.
func shownShape(t *testing.T, dir string) int64 {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "requests.npy"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	header := make([]byte, headerSize)
	if _, err := f.ReadAt(header, 0); err != nil {
		t.Fatal(err)
	}
	if !sameColumns(header, headerText, shapeOffset) {
		t.Fatalf("header is %q", header)
	}
	var n int64
	if _, err := fmt.Sscan(string(header[shapeOffset:shapeOffset+shapeDigits]), &n); err != nil {
		t.Fatal(err)
	}
	return n
}
