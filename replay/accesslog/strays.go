package accesslog

import "time"

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

// straysOf returns the strays among the stretches of a file, which are in the order of time; nil where it has none.
func straysOf(file int, stretches []stretch) *Strays {
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
