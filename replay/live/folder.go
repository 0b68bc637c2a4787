package live

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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
	runs     map[string]*growing // by directory; of one that is over the figures are complete
	disturbs map[string]*saturation
}

// kind is what runs share whose figures are added up.
type kind struct{ scenario, backend string }

// NewFolder returns the figures of what runs in a folder from now on.
func NewFolder(root string, now time.Time) *Folder {
	f := &Folder{
		root: root, since: now, registry: prometheus.NewRegistry(),
		info:   gauges(infoName, "The runs that are under way: their directories, targets, scenarios and backends.", "run", "target", "scenario", "backend"),
		send:   gauges("plimsoll_saturator_bytes_per_second", "What a saturator got through in the last second, by the attempt that it disturbs.", "attempt", "saturator"),
		series: map[kind]*series{}, runs: map[string]*growing{}, disturbs: map[string]*saturation{},
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
	if run := f.runs[path]; run != nil && run.over() {
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
				f.disturbs[path] = newSaturation(filepath.Join(path, name), f.send.MustCurryWith(prometheus.Labels{"attempt": label(filepath.Base(path))}))
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
	run, err := openGrowing(directory, f.since)
	if run == nil { // it has not begun yet
		return err
	}
	for _, known := range f.runs {
		if known.same(run) { // it was moved to the finished runs
			run.close()
		}
	}
	f.runs[directory] = run
	if run.over() {
		return err
	}
	of := kind{label(run.facts.Scenario), label(deref(run.facts.Backend))}
	if f.series[of] == nil {
		f.series[of] = newSeries(prometheus.WrapRegistererWith(prometheus.Labels{"scenario": of.scenario, "backend": of.backend}, f.registry))
	}
	run.figures = figuresOf(f.series[of], run.facts.Load.Timeout(), run.names)
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

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
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
