// What runs in a folder, followed as it is written.

package live

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"plimsoll/replay/record"
)

// deepest is how far below the folder a run may lie: results/EXPERIMENT/attempts/ATTEMPT/MEMBER/RUN.
const deepest = 5

// Folder shows what runs in a folder: a run directory, an experiment, or one that holds several of them. Runs that were
// begun before it are shown from the first look on. Not safe for concurrent use; scrapes may come at any time.
type Folder struct {
	root     string
	since    time.Time
	registry *prometheus.Registry
	info     *prometheus.GaugeVec
	send     *prometheus.GaugeVec
	series   map[kind]*series
	runs     map[string]*followedRun // by directory; of one that is over the figures are complete
	disturbs map[string]*saturatorProgress
}

// kind is what runs share whose figures are added up.
type kind struct{ scenario, backend string }

// NewFolder returns the figures of what runs in a folder from now on.
func NewFolder(root string, now time.Time) *Folder {
	f := &Folder{
		root: root, since: now, registry: prometheus.NewRegistry(),
		info:   gauges(infoName, "The runs that are under way: their directories, targets, scenarios and backends.", "run", "target", "scenario", "backend"),
		send:   gauges("plimsoll_saturator_bytes_per_second", "What a saturator got through in the last second, by the attempt that it disturbs.", "attempt", "saturator"),
		series: map[kind]*series{}, runs: map[string]*followedRun{}, disturbs: map[string]*saturatorProgress{},
	}
	f.registry.MustRegister(f.info, f.send)
	return f
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// Serve answers scrapes until it is stopped.
func (f *Folder) Serve(listener net.Listener) (stop func()) { return serve(f.registry, listener) }

// Look finds new runs, and reads what all have written since the last look. What cannot be read is left out, and is
// among the errors that are joined.
func (f *Folder) Look(now time.Time) error {
	found := f.find(f.root, 0)
	var problems []error
	for _, run := range f.runs {
		problems = append(problems, run.look(now))
	}
	for _, one := range f.disturbs {
		problems = append(problems, one.look(now))
	}
	return errors.Join(append(problems, found)...)
}

// find goes through a folder, but into no run directory and after no link.
func (f *Folder) find(path string, depth int) error {
	if run := f.runs[path]; run != nil && run.isOver() {
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && depth > 0 { // moved, as those of finished runs are
			return nil
		}
		return err
	}
	var below []string
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == "run.json" && entry.Type().IsRegular():
			return f.take(path)
		case name == eventsName && entry.Type().IsRegular():
			if f.disturbs[path] == nil {
				f.disturbs[path] = &saturatorProgress{
					path: filepath.Join(path, name), send: f.send.MustCurryWith(prometheus.Labels{"attempt": label(filepath.Base(path))}),
				}
			}
		case entry.IsDir() && name[0] != '.' && depth < deepest:
			below = append(below, filepath.Join(path, name))
		}
	}
	var problems []error
	for _, one := range below {
		problems = append(problems, f.find(one, depth+1))
	}
	return errors.Join(problems...)
}

// take begins to follow the run in a directory, if it is under way and not followed yet.
func (f *Folder) take(directory string) error {
	if f.runs[directory] != nil {
		return nil
	}
	run, err := followRun(directory, f.since)
	if run == nil { // it has not begun yet
		return err
	}
	for _, known := range f.runs {
		if known.isSame(run) { // it was moved to the finished runs
			run.close()
		}
	}
	f.runs[directory] = run
	if run.isOver() {
		return err
	}
	of := kind{label(run.facts.Scenario), ""}
	if run.facts.Backend != nil {
		of.backend = label(*run.facts.Backend)
	}
	if f.series[of] == nil {
		f.series[of] = newSeries(prometheus.WrapRegistererWith(prometheus.Labels{"scenario": of.scenario, "backend": of.backend}, f.registry))
	}
	run.figures = newFigures(f.series[of], run.facts.Load.Timeout(), run.names)
	labels := []string{label(directory), label(run.facts.Target.URL), of.scenario, of.backend}
	run.show = func(underWay bool) {
		if underWay {
			f.info.WithLabelValues(labels...).Set(1)
		} else {
			f.info.DeleteLabelValues(labels...)
		}
	}
	return err
}

// CheckFolder says what to do about a folder that cannot be looked into.
func CheckFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%w: run something first, or name the folder of its results", err)
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder: name the folder of a run, of an experiment or of results", path)
	}
	return nil
}

const (
	idle        = time.Minute // a run that writes nothing counts as under way for this long
	largestJSON = 4 << 20
)

// followedRun is a run directory that somebody writes. Its tail is nil once nothing more is to come.
type followedRun struct {
	directory string
	facts     record.Run
	file      os.FileInfo // of its requests.npy
	tail      *record.Tail
	figures   *figures
	show      func(underWay bool)
	known     []string // names of routes, as they were read last
}

// followRun returns the run in a directory: nil where its records are not begun yet, without a tail where it was over
// since an instant. Of one that began before that instant nothing is read that is written so far.
func followRun(directory string, since time.Time) (*followedRun, error) {
	g := &followedRun{directory: directory}
	if err := readJSON(g.path("run.json"), &g.facts); err != nil {
		return nil, err
	}
	if g.facts.StartedAt.IsZero() && g.facts.Status == record.Running {
		return nil, nil
	}
	before := g.facts.StartedAt.Before(since)
	info, err := os.Lstat(g.path("requests.npy"))
	if before && (err != nil || g.facts.Status != record.Running || since.Sub(info.ModTime()) > idle) {
		return g, nil
	}
	tail, err := record.OpenTail(g.path("requests.npy"))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, nil
	case err != nil:
		return g, err // reported once: it is not tried again
	}
	g.tail = tail
	if before {
		err = tail.SkipWritten()
	}
	var statErr error
	g.file, statErr = tail.Stat()
	return g, errors.Join(err, statErr)
}

func (g *followedRun) path(name string) string { return filepath.Join(g.directory, name) }

// isOver reports whether nothing more is to come.
func (g *followedRun) isOver() bool { return g.tail == nil }

// isSame reports whether both are one run, which was moved. A file system gives a later run the number of a file that is
// gone, but not its start.
func (g *followedRun) isSame(other *followedRun) bool {
	return g.file != nil && other.file != nil && os.SameFile(g.file, other.file) && g.facts.StartedAt.Equal(other.facts.StartedAt.Time)
}

// look counts what was written since the last look. A run that says that it has ended, or that was moved, has written
// all before it did so.
func (g *followedRun) look(now time.Time) error {
	if g.isOver() {
		return nil
	}
	var facts record.Run
	err := readJSON(g.path("run.json"), &facts)
	over := err != nil || facts.Status != record.Running
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for {
		records, readErr := g.tail.Next()
		if len(records) == 0 {
			err = errors.Join(err, readErr)
			break
		}
		g.figures.Observe(records)
	}
	info, statErr := g.tail.Stat()
	g.show(!over && statErr == nil && now.Sub(info.ModTime()) <= idle)
	if over {
		g.close()
	}
	return err
}

func (g *followedRun) close() {
	if !g.isOver() {
		_ = g.tail.Close()
		g.tail = nil
	}
}

// names returns the names of the routes so far. They are written before the records that have them.
func (g *followedRun) names() []string {
	var names []string
	if readJSON(g.path("routes.json"), &names) == nil {
		g.known = names
	}
	return g.known
}

// readJSON reads a regular file that is not too large to be what it should be.
func readJSON(path string, into any) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > largestJSON {
		return fmt.Errorf("%s: is not a file of a run directory", path)
	}
	return record.ReadJSON(path, into)
}

const (
	eventsName  = "lab-events.jsonl" // of the lab, beside the run directories of an attempt
	bytesSuffix = " bytes"
	stale       = 4 * time.Second // older figures are not those of now
	mostEvents  = 8 << 20         // bytes that are read at a look
)

// saturatorProgress is what a saturator gets through, by the events that the lab notes beside a run.
type saturatorProgress struct {
	path  string
	at    int64
	send  *prometheus.GaugeVec
	shown string
}

// look shows the figure of the last second; none where the saturator does not work.
func (s *saturatorProgress) look(now time.Time) error {
	f, err := os.Open(s.path)
	if err != nil {
		s.hide()
		if errors.Is(err, fs.ErrNotExist) { // moved: the run is over
			return nil
		}
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || now.Sub(info.ModTime()) > stale {
		s.hide()
		return err
	}
	lines := bufio.NewReader(io.NewSectionReader(f, s.at, mostEvents))
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the last line may be half written: it comes at the next look
			break
		}
		s.at += int64(len(line))
		s.note(line)
	}
	return nil
}

func (s *saturatorProgress) note(line []byte) {
	var event struct {
		Event     string   `json:"event"`
		Phase     string   `json:"phase"`
		BytesPerS *float64 `json:"bytes_per_s"`
	}
	if json.Unmarshal(line, &event) != nil {
		return
	}
	switch name, ok := strings.CutSuffix(event.Event, bytesSuffix); {
	case event.Phase == "stop":
		s.hide()
	case ok && event.BytesPerS != nil:
		s.shown = label(name)
		s.send.WithLabelValues(s.shown).Set(*event.BytesPerS)
	}
}

func (s *saturatorProgress) hide() {
	if s.shown != "" {
		s.send.DeleteLabelValues(s.shown)
		s.shown = ""
	}
}
