package accesslog

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
