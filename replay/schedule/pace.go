package schedule

import "math"

// stepAfter is how many entries in a row must lie behind the schedule before the log's clock counts as set back. Fewer
// are strays, which are due at once; a clock set back (the end of summer time in a log without offsets) is followed.
const stepAfter = 32

// Pacing says when entries are due.
type Pacing struct {
	Speed   float64 // times the recorded pace; > 0
	Rate    float64 // entries per second at even distances; 0: at the recorded pace
	PauseNS int64   // longest pause of the log that is kept, in the log's time; 0: any
	LimitNS int64   // nothing is due at or after this instant of the run; 0: no limit
	Loops   int     // how many times the log is replayed; at least 1, or 0 for as long as LimitNS allows
}

// Pace gives each entry its due instant: (logged start − first logged start) / speed, or the next multiple of 1/rate.
// Due instants never decrease. A longer pause than PauseNS is shortened to it. The source is asked for a new sequence for each loop; the pause between two loops is the
// log's mean distance between requests.
func Pace[T any](source func() Seq[T], pacing Pacing, notes *Notes) Seq[T] {
	return func(yield func(Entry[T]) bool) {
		p := pacer{pacing: pacing, notes: notes}
		for loop := 0; pacing.Loops == 0 || loop < pacing.Loops; loop++ {
			before := p.count
			for e := range source() {
				e.AtNS = p.due(e.AtNS)
				if pacing.LimitNS > 0 && e.AtNS >= pacing.LimitNS {
					return
				}
				if !yield(e) {
					return
				}
			}
			if p.count == before {
				return // an empty log would loop forever
			}
			p.nextLoop(p.count - before)
		}
	}
}

// pacer is the arithmetic of one schedule.
type pacer struct {
	pacing  Pacing
	notes   *Notes
	count   uint64
	started bool
	baseNS  int64 // the logged instant that is due at offset
	lastNS  int64 // the logged instant that is due at lastDue, pauses not cut
	offset  int64
	lastDue int64
	behind  int // entries in a row behind lastDue
}

// nextLoop lets the next loop begin one mean distance after the last entry.
func (p *pacer) nextLoop(entries uint64) {
	gap := int64(0)
	if entries > 1 {
		gap = (p.lastDue - p.offset) / int64(entries-1)
	}
	if gap <= 0 {
		gap = int64(1e9 / p.pacing.Speed)
	}
	p.started = false
	p.offset = after(p.lastDue, float64(gap))
}

func (p *pacer) due(atNS int64) int64 {
	p.count++
	if p.pacing.Rate > 0 {
		p.lastDue = after(0, float64(p.count-1)*1e9/p.pacing.Rate)
		return p.lastDue
	}
	if !p.started {
		p.started = true
		p.baseNS, p.lastNS = atNS, atNS
		if p.count == 1 {
			p.notes.FirstNS.Store(atNS)
		}
	}
	if cut := atNS - p.lastNS - p.pacing.PauseNS; p.pacing.PauseNS > 0 && cut > 0 {
		p.baseNS += cut
		p.notes.Pauses++
		p.notes.CutNS += cut
	}
	due := after(p.offset, float64(atNS-p.baseNS)/p.pacing.Speed)
	if due >= p.lastDue {
		p.behind = 0
		p.lastNS, p.lastDue = atNS, due
		return due
	}
	p.behind++
	p.notes.Late++
	if p.behind >= stepAfter {
		p.notes.Steps++
		p.behind = 0
		p.baseNS, p.lastNS, p.offset = atNS, atNS, p.lastDue
	}
	return p.lastDue
}

// farNS is an instant that no run comes to, 146 years after its start: what would be due later is due then.
const farNS = 1 << 62

// after returns the instant so many nanoseconds after another.
func after(atNS int64, ns float64) int64 {
	return atNS + int64(math.Round(max(-farNS, min(ns, farNS-float64(atNS)))))
}
