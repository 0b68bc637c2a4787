// The log of HdrHistogram: latency.hlog.

package record

import (
	"fmt"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// hdrLog writes an HdrHistogram interval log: format 1.3, V2 compressed, one line per second for each of the tags
// response and service. Values are microseconds with three digits, so HistogramLogProcessor wants
// -outputValueUnitRatio 1000 to print milliseconds. Intervals are the seconds in which requests were done.
type hdrLog struct {
	out    appendFile
	tags   [2]hdrTag
	second int64 // of the open interval
	headed bool
	text   []byte
}

type hdrTag struct {
	name string
	h    *hdr.Histogram
}

// Longer times than an hour are counted as one hour: the log is an export, the records stay exact.
const (
	hdrMaxUS  = 3_600_000_000
	hdrDigits = 3
)

func newHDRLog() *hdrLog {
	l := new(hdrLog)
	for i, name := range []string{"response", "service"} {
		l.tags[i] = hdrTag{name, hdr.New(1, hdrMaxUS, hdrDigits)}
	}
	return l
}

// lines folds records in and returns the lines of the intervals that they close. A request that is reported
// after its second was closed counts in the open one.
func (l *hdrLog) lines(records []Record, started time.Time) []byte {
	l.begin(started)
	for i := range records {
		r := &records[i]
		if r.Flags&Warmup != 0 {
			continue
		}
		if second := r.DoneNS() / 1e9; second > l.second {
			l.closeInterval()
			l.second = second
		}
		l.tags[0].h.RecordValue(int64(min(r.ResponseUS(), hdrMaxUS)))
		l.tags[1].h.RecordValue(min(int64(r.TotalUS), hdrMaxUS))
	}
	return l.text
}

// end returns what is left of the last interval.
func (l *hdrLog) end(started time.Time) []byte {
	l.begin(started)
	l.closeInterval()
	return l.text
}

// begin empties the text, except for the header if that was not written yet.
func (l *hdrLog) begin(started time.Time) {
	l.text = l.text[:0]
	if l.headed {
		return
	}
	l.headed = true
	seconds := float64(started.UnixMilli()) / 1000
	l.text = fmt.Appendf(l.text, "#[plimsoll: microseconds; tags response (from due) and service (from start)]\n"+
		"#[Histogram log format version 1.3]\n"+
		"#[StartTime: %.3f (seconds since epoch), %s]\n"+
		"#[BaseTime: %.3f (seconds since epoch)]\n"+
		"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
		seconds, started.UTC().Format(time.RFC3339), seconds)
}

// closeInterval appends the open interval unless it is empty. The largest value is in milliseconds, as the
// format's readers expect from values in microseconds with that ratio.
func (l *hdrLog) closeInterval() {
	for _, t := range l.tags {
		if t.h.TotalCount() == 0 {
			continue
		}
		payload, err := t.h.Encode(hdr.V2CompressedEncodingCookieBase)
		if err != nil { // it encodes into memory: it cannot fail
			panic(err)
		}
		l.text = fmt.Appendf(l.text, "Tag=%s,%d.000,1.000,%.3f,%s\n", t.name, l.second, float64(t.h.Max())/1000, payload)
		t.h.Reset()
	}
}
