package accesslog

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// LongPause is how long a log may be silent as a site is at night. What lies further apart is a pause to be spoken of,
// or the time stamp of a clock that was not set.
const LongPause = 12 * time.Hour

// stretch is a stretch of time, and the requests that were logged in it.
type stretch struct {
	requests        uint64
	firstNS, lastNS int64  // the earliest and the latest instant
	file            int    // of the earliest
	line            uint64 // of the earliest
	low, high       uint64 // the first and the last line; of one file
}

func (s *stretch) merge(o *stretch) {
	if cmp.Or(cmp.Compare(o.firstNS, s.firstNS), cmp.Compare(o.file, s.file), cmp.Compare(o.line, s.line)) < 0 {
		s.firstNS, s.file, s.line = o.firstNS, o.file, o.line
	}
	s.requests += o.requests
	s.lastNS = max(s.lastNS, o.lastNS)
	s.low, s.high = min(s.low, o.low), max(s.high, o.high)
}

// Bins of a timeline: LongPause and its halves, so that one of any width lies within one of any greater width.
const (
	mostHalves = 15                   // down to 1.3 s
	mostBins   = 1 << 16              // of a log
	fileBins   = 1 << 12              // of each of its files
	beforeNS   = 4 * int64(LongPause) // no instant that a log can have lies further before 1970
)

// binFor returns the width of bins that show every pause longer than this.
func binFor(pause time.Duration) (widthNS int64) {
	widthNS = int64(LongPause)
	for halves := 0; halves < mostHalves && widthNS > int64(pause); halves++ {
		widthNS /= 2
	}
	return widthNS
}

// timeline shows where in time requests lie, in constant memory: it has bins of equal width, each of which knows its
// earliest and its latest request. So a pause longer than a bin is found to the nanosecond.
type timeline struct {
	mu      sync.Mutex
	widthNS int64
	most    int // bins; past that, two become one
	bins    map[int64]*stretch
}

func newTimeline(widthNS int64, most int) *timeline {
	return &timeline{widthNS: widthNS, most: most, bins: map[int64]*stretch{}}
}

// add adds stretches that are no longer than a bin.
func (t *timeline) add(found []stretch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range found {
		s := &found[i]
		number := (s.firstNS + beforeNS) / t.widthNS
		if bin := t.bins[number]; bin != nil {
			bin.merge(s)
			continue
		}
		one := *s
		t.bins[number] = &one
		for len(t.bins) > t.most {
			t.widen()
		}
	}
}

// widen makes one bin of two.
func (t *timeline) widen() {
	t.widthNS *= 2
	wide := make(map[int64]*stretch, len(t.bins)/2)
	for number, bin := range t.bins {
		if other := wide[number/2]; other != nil {
			other.merge(bin)
		} else {
			wide[number/2] = bin
		}
	}
	t.bins = wide
}

// stretches returns, in the order of time, the stretches between pauses longer than this.
func (t *timeline) stretches(pause time.Duration) []stretch {
	var bins []*stretch
	for _, bin := range t.bins {
		bins = append(bins, bin)
	}
	slices.SortFunc(bins, func(a, b *stretch) int { return cmp.Compare(a.firstNS, b.firstNS) })
	var out []stretch
	for _, bin := range bins {
		if n := len(out); n > 0 && bin.firstNS-out[n-1].lastNS <= int64(pause) {
			out[n-1].merge(bin)
		} else {
			out = append(out, *bin)
		}
	}
	return out
}

// timelines are those of a log: of each file, for its strays, and of all files together, for the log's pauses.
type timelines struct {
	files []*timeline
	all   *timeline
	binNS int64
}

func newTimelines(files int, pause time.Duration) *timelines {
	t := &timelines{all: newTimeline(binFor(pause), mostBins), binNS: binFor(pause)}
	for range files {
		t.files = append(t.files, newTimeline(int64(LongPause), fileBins))
	}
	return t
}

// add adds what lies where of a chunk that was parsed.
func (t *timelines) add(c *chunk) {
	t.files[c.file].add(c.spread)
	t.all.add(c.spread)
}

// tell adds strays and pauses to what was counted.
func (t *timelines) tell(totals *Totals, longer time.Duration) {
	for i, file := range t.files {
		if strays := straysOf(i, file.stretches(LongPause)); strays != nil {
			totals.Strays = append(totals.Strays, *strays)
		}
	}
	firstNS, lastNS := totals.WholeSpan()
	totals.Pauses = t.all.pauses(longer, firstNS, lastNS)
}

// Pause is a time in which nothing was logged.
type Pause struct {
	FromNS, ToNS int64  // the instants of the requests around it
	File         int    // of the request after it
	Line         uint64 // of the request after it
}

// pauses returns the pauses longer than this between two instants, in the order of time.
func (t *timeline) pauses(longer time.Duration, firstNS, lastNS int64) []Pause {
	var out []Pause
	before := int64(0)
	for i, s := range t.stretches(longer) {
		if i > 0 && before >= firstNS && s.firstNS <= lastNS {
			out = append(out, Pause{before, s.firstNS, s.file, s.line})
		}
		before = s.lastNS
	}
	return out
}
