package accesslog

// Logs are counted once: totals, pauses, times that cannot be, clocks that were set back.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"sync"
	"time"

	"plimsoll/replay/accesslog/formats"
)

// Count reads the whole log and adds it up, in no order and on all cores. OnReject gets the rejected lines at the
// end. On an error the totals are those of what was read before it.
func (s *Source) Count(ctx context.Context, f *Format, opts ReadOptions) (Totals, error) {
	p := s.pipeline(ctx, opts)
	defer p.cancel()
	type tally struct {
		files   []Counts
		rejects []Reject
	}
	tallies := make([]tally, p.opts.Workers)
	for i := range tallies {
		tallies[i].files = make([]Counts, len(s.files))
	}
	lie, back := newTimelines(len(s.files), p.opts.Pause), newSteps(len(s.files))
	p.work(f, func(worker int, f *Format, c *chunk) {
		t := &tallies[worker]
		c.binNS, c.finished = lie.binNS, f.LogTime() == formats.Finished
		c.parse(f, false, p.opts.MaxRejects-len(t.rejects))
		t.files[c.file].merge(c.counts)
		t.rejects = append(t.rejects, c.rejects...)
		lie.add(c)
		back.add(c)
		c.release()
	})
	var err error
	var sums []string
	for i := range s.files {
		var sum hash.Hash
		if opts.Sums {
			sum = sha256.New()
		}
		if err = p.cut(i, chunkBytes, nil, sum); err != nil {
			break
		}
		if sum != nil {
			sums = append(sums, hex.EncodeToString(sum.Sum(nil)))
		}
	}
	close(p.jobs)
	p.wg.Wait()
	if err == nil {
		err = ctx.Err()
	}

	totals := Totals{Files: make([]Counts, len(s.files)), SHA256: sums}
	var rejects []Reject
	for _, t := range tallies {
		for i, counts := range t.files {
			totals.Files[i].merge(counts)
			totals.merge(counts)
		}
		rejects = append(rejects, t.rejects...)
	}
	lie.tell(&totals, p.opts.Pause)
	back.tell(&totals)
	// Each worker meets lines in their order, so the first rejects of all are among the first of each.
	slices.SortFunc(rejects, func(a, b Reject) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	for _, r := range rejects[:min(len(rejects), p.opts.MaxRejects)] {
		p.opts.OnReject(r)
	}
	return totals, err
}

// Counts are what was found in a file, or in a whole log.
type Counts struct {
	Lines   uint64 // all of them
	Valid   uint64 // requests
	Failed  uint64 // lines that should have been requests
	Ignored uint64 // comments and empty lines
	Bytes   int64  // the sum of the logged response sizes
	Timed   uint64 // requests of which the log says how long they took
	FirstNS int64  // the earliest and the latest logged instant, nanoseconds since the Unix epoch; of no meaning
	LastNS  int64  // where Valid is 0
	NULs    int64  // bytes of zeros before lines, which were skipped
}

func (c *Counts) add(r *Request) {
	if c.Valid == 0 || r.TimeNS < c.FirstNS {
		c.FirstNS = r.TimeNS
	}
	if c.Valid == 0 || r.TimeNS > c.LastNS {
		c.LastNS = r.TimeNS
	}
	c.Valid++
	c.Bytes += max(0, r.Bytes)
	if r.DurationNS >= 0 {
		c.Timed++
	}
}

func (c *Counts) merge(o Counts) {
	if o.Valid > 0 {
		if c.Valid == 0 || o.FirstNS < c.FirstNS {
			c.FirstNS = o.FirstNS
		}
		if c.Valid == 0 || o.LastNS > c.LastNS {
			c.LastNS = o.LastNS
		}
	}
	c.Lines += o.Lines
	c.Valid += o.Valid
	c.Failed += o.Failed
	c.Ignored += o.Ignored
	c.NULs += o.NULs
	c.Bytes += o.Bytes
	c.Timed += o.Timed
}

// DurationS returns the time between the earliest and the latest request in seconds.
func (c Counts) DurationS() float64 {
	if c.Valid == 0 {
		return 0
	}
	return float64(c.LastNS-c.FirstNS) / 1e9
}

// RejectedShare returns the part of the lines that should have been requests and are not, from 0 to 1.
func (c Counts) RejectedShare() float64 {
	if c.Failed == 0 {
		return 0
	}
	return float64(c.Failed) / float64(c.Failed+c.Valid)
}

// Totals are the counts of a whole log, and of each of its files in the order of Source.Paths.
type Totals struct {
	Counts
	Files  []Counts
	SHA256 []string // of each file's text, unpacked, in hexadecimal; none where nobody asked for it
	Strays []Strays // of the files that have some

	SetBacks []SetBack // steps of clocks back, by file; those after a file that has some have Line 0

	Pauses []Pause // longer than was asked for, in the order of time; strays end none
}

// Span returns the earliest and the latest instant of a file, in nanoseconds since the Unix epoch, except for strays;
// of no meaning where it has no request.
func (t *Totals) Span(file int) (firstNS, lastNS int64) {
	for _, s := range t.Strays {
		if s.File == file {
			return s.FirstNS, s.LastNS
		}
	}
	return t.Files[file].FirstNS, t.Files[file].LastNS
}

// WholeSpan returns the earliest and the latest instant of all files, as Span does, those after a step back corrected.
func (t *Totals) WholeSpan() (firstNS, lastNS int64) {
	var whole Counts
	for i, c := range t.Files {
		if c.Valid > 0 {
			first, last := t.Span(i)
			for _, step := range t.SetBacks {
				switch {
				case step.File != i:
				case step.Line == 0:
					first, last = first+step.ByNS, last+step.ByNS
				default:
					last += step.ByNS
				}
			}
			whole.merge(Counts{Valid: 1, FirstNS: first, LastNS: last})
		}
	}
	return whole.FirstNS, whole.LastNS
}

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
		if strays := findStrays(i, file.stretches(LongPause)); strays != nil {
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

// Strays are requests of a file whose time stamps have nothing to do with those of all others, as of a clock that was
// not set (1970), or of a program that wrote nonsense.
type Strays struct {
	File            int
	Requests        uint64
	Line            uint64 // one of them
	AtNS            int64  // what it says
	FirstNS, LastNS int64  // the earliest and the latest instant of the file's other requests
}

// Strays are few, by number or by part of the file, and each group of them is less than half of what it strays from.
// They are LongPause away from all that are not few, and either out of order, since time went there and came back, or
// so far away that no log has such a pause.
const (
	fewRequests = 32
	fewPart     = 100 // one in so many
	farAway     = 30 * 24 * time.Hour
)

// findStrays returns the strays among the stretches of a file, which are in the order of time; nil where it has none.
func findStrays(file int, stretches []stretch) *Strays {
	var all, most uint64
	for _, s := range stretches {
		all += s.requests
		most = max(most, s.requests)
	}
	few := func(s stretch) bool {
		return s.requests <= max(fewRequests, all/fewPart) && 2*s.requests <= most
	}
	begin, end := 0, len(stretches)
	for begin < end && few(stretches[begin]) {
		begin++
	}
	for end > begin && few(stretches[end-1]) {
		end--
	}
	if begin == end {
		return nil
	}
	body := stretches[begin]
	for i := begin + 1; i < end; i++ {
		body.merge(&stretches[i])
	}
	stray := func(s stretch) bool {
		if s.firstNS < body.firstNS {
			return s.high > body.low || body.firstNS-s.lastNS > int64(farAway)
		}
		return s.low < body.high || s.firstNS-body.lastNS > int64(farAway)
	}
	out, others := &Strays{File: file}, body
	for i, s := range stretches {
		switch {
		case i >= begin && i < end:
		case !stray(s):
			others.merge(&s)
		default:
			out.Requests += s.requests
			if out.Line == 0 || s.line < out.Line {
				out.Line, out.AtNS = s.line, s.firstNS
			}
		}
	}
	if out.Requests == 0 {
		return nil
	}
	out.FirstNS, out.LastNS = others.firstNS, others.lastNS
	return out
}

// clock follows the time stamps of one file, line by line, and corrects those of strays.
type clock struct {
	strays  *Strays
	lastNS  int64 // the corrected instant of the last line
	strayNS int64 // what the last line said, if that was a stray
	strayed bool  // it was
}

// stepTogether is how far apart strays in a row may be and still be taken for those of one clock.
const stepTogether = time.Minute

// correct returns the instant of a line: what it says, or, of a stray, the instant of the line before it, and as much
// later as strays in a row are from each other.
func (k *clock) correct(ns int64) int64 {
	if ns >= k.strays.FirstNS && ns <= k.strays.LastNS {
		k.lastNS, k.strayed = ns, false
		return ns
	}
	if step := ns - k.strayNS; k.strayed && step >= 0 && step <= int64(stepTogether) {
		k.lastNS = min(k.lastNS+step, k.strays.LastNS)
	}
	k.strayNS, k.strayed = ns, true
	return k.lastNS
}

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
	inside := findSteps(c.file, c.stamps, stepLines, len(c.stamps)-stepLines, least)
	const edge = 2*stepLines - 1
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.files[c.file]
	f.found = append(f.found, inside...)
	meet := func(tail, head []stamp) {
		f.found = append(f.found, findSteps(c.file, slices.Concat(tail, head), len(tail)-stepLines+1, len(tail)+stepLines-1, least)...)
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

// findSteps returns the steps before the lines from first to last.
func findSteps(file int, lines []stamp, first, last int, least time.Duration) []SetBack {
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
