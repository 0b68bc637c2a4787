package accesslog

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// SetBack is a step of a file's clock back in time, as when summer time ends in a log without offsets, or when a clock
// is set right. What follows is logged at instants that were there already; Read corrects them.
type SetBack struct {
	File         int
	Line         uint64 // the first one after it
	FromNS, ToNS int64  // what the lines before and after it say
	ByNS         int64  // by how much this line and all after it are corrected
}

// A clock was set back where nearly all of the lines before are later than nearly all of those after. Steps of more are
// of logs put one after the other. Shorter ones may be of long requests that ended together, since those are logged by
// their beginning; where the end is known, they are less. More than a few in a file are of a server that writes
// its log from several buffers, whose lines are only to be sorted.
const (
	stepLines   = 32
	nearlyAll   = 28
	longestStep = 3 * time.Hour
	leastStep   = time.Minute
	leastOfEnds = 10 * time.Second
	mostSteps   = 2
)

// stamp is what a line says of when it was written.
type stamp struct {
	ns   int64
	line uint64
}

// stampOf returns the instant at which a request was logged, as far as its line tells, and whether that is its end.
func stampOf(r *Request, finished bool) (s stamp, end bool) {
	if !finished && r.DurationNS > 0 {
		return stamp{r.TimeNS + min(r.DurationNS, int64(longestStep)), r.Line}, true
	}
	return stamp{r.TimeNS, r.Line}, finished || r.DurationNS == 0
}

// steps are the steps back of all files, found chunk by chunk, in any order.
type steps struct {
	mu    sync.Mutex
	files []fileSteps
}

type fileSteps struct {
	found        []SetBack
	heads, tails map[uint64][]stamp // at the edges of chunks whose neighbours are still to come, by the line after the edge
}

func newSteps(files int) *steps {
	s := &steps{files: make([]fileSteps, files)}
	for i := range s.files {
		s.files[i] = fileSteps{heads: map[uint64][]stamp{}, tails: map[uint64][]stamp{}}
	}
	return s
}

// add looks at a chunk that was parsed.
func (s *steps) add(c *chunk) {
	least := leastStep
	if c.ends {
		least = leastOfEnds
	}
	inside := stepsIn(c.file, c.stamps, stepLines, len(c.stamps)-stepLines, least)
	const edge = 2*stepLines - 1
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.files[c.file]
	f.found = append(f.found, inside...)
	meet := func(tail, head []stamp) {
		f.found = append(f.found, stepsIn(c.file, slices.Concat(tail, head), len(tail)-stepLines+1, len(tail)+stepLines-1, least)...)
	}
	begin, end := c.firstLine, c.firstLine+c.counts.Lines
	head, tail := c.stamps[:min(edge, len(c.stamps))], c.stamps[max(0, len(c.stamps)-edge):]
	if before, known := f.tails[begin]; known {
		delete(f.tails, begin)
		meet(before, head)
	} else {
		f.heads[begin] = slices.Clone(head)
	}
	if after, known := f.heads[end]; known {
		delete(f.heads, end)
		meet(tail, after)
	} else {
		f.tails[end] = slices.Clone(tail)
	}
}

// stepsIn returns the steps before the lines from first to last.
func stepsIn(file int, lines []stamp, first, last int, least time.Duration) []SetBack {
	var out []SetBack
	for i := max(first, stepLines); i <= min(last, len(lines)-stepLines); i++ {
		from, to := lines[i-1].ns, lines[i].ns
		if from-to < int64(least) || from-to > int64(longestStep) {
			continue
		}
		before, after := sorted(lines[i-stepLines:i]), sorted(lines[i:i+stepLines])
		if after[nearlyAll-1] >= before[stepLines-nearlyAll] {
			continue
		}
		latest := before[stepLines-1]
		apart := (latest - before[stepLines-nearlyAll]) / (nearlyAll - 1)
		out = append(out, SetBack{File: file, Line: lines[i].line, FromNS: from, ToNS: to, ByNS: latest - to + apart})
		i += stepLines - 1
	}
	return out
}

func sorted(lines []stamp) (ns [stepLines]int64) {
	for i := range ns {
		ns[i] = lines[i].ns
	}
	slices.Sort(ns[:])
	return ns
}

// tell adds the steps back to what was counted. What a file that follows one says is by the same clock, unless other
// files are of the time of the step: they are another server's.
func (s *steps) tell(totals *Totals) {
	for i := range s.files {
		found := s.files[i].found
		if len(found) == 0 || len(found) > mostSteps {
			continue
		}
		slices.SortFunc(found, func(a, b SetBack) int { return cmp.Compare(a.Line, b.Line) })
		totals.SetBacks = append(totals.SetBacks, found...)
	}
	for _, step := range slices.Clone(totals.SetBacks) {
		others := func(c Counts) bool { return c.Valid > 0 && c.FirstNS < step.FromNS && c.LastNS > step.ToNS }
		own := totals.Files[step.File]
		if slices.ContainsFunc(totals.Files, func(c Counts) bool { return c != own && others(c) }) {
			continue
		}
		for i, c := range totals.Files {
			if i != step.File && c.Valid > 0 && c.FirstNS >= step.FromNS {
				totals.SetBacks = append(totals.SetBacks, SetBack{File: i, ByNS: step.ByNS})
			}
		}
	}
}
