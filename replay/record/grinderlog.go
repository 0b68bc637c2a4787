package record

import (
	"strconv"
	"time"
)

// grinderLog writes The Grinder 3.11's data log.
type grinderLog struct {
	out  appendFile
	text []byte
}

const grinderHeader = "Thread, Run, Test, Start time (ms since Epoch), Test time, Errors, HTTP response code, HTTP response length, " +
	"HTTP response errors, Time to resolve host, Time to establish connection, Time to first byte, New connections\n"

// The Grinder's threads are few; a client's number is folded into this many, so that per-thread tools cope.
const grinderThreads = 1000

// lines returns the data log's lines for records, without the warm-up, as in every other statistic.
func (g *grinderLog) lines(records []Record, started time.Time) []byte {
	g.text = g.text[:0]
	for i := range records {
		if r := &records[i]; r.Flags&Warmup == 0 {
			g.text = appendGrinderLine(g.text, r, started)
		}
	}
	return g.text
}

// appendGrinderLine appends one line. Times to resolve, to connect and to the first byte each count from the start of
// the test and include the ones before them. A status of 400 or more is a response error and no error of the test.
func appendGrinderLine(b []byte, r *Record, started time.Time) []byte {
	startMS := started.Add(time.Duration(r.DueNS) + time.Duration(r.LagUS)*time.Microsecond).UnixMilli()
	connectUS := uint64(0)
	if r.ConnectUS > 0 {
		connectUS = uint64(r.DNSUS) + uint64(r.ConnectUS) + uint64(r.TLSUS)
	}
	fields := [...]int64{
		int64(r.Client % grinderThreads), 0, int64(r.Route) + 1, startMS, int64(r.TotalUS / 1000), yes(r.Error != None),
		int64(r.Status), max(r.Bytes, 0), yes(r.Status >= 400),
		int64(r.DNSUS / 1000), int64(connectUS / 1000), int64(r.TTFBUS / 1000), yes(r.Flags&Reused == 0),
	}
	for i, f := range fields {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, f, 10)
	}
	return append(b, '\n')
}

func yes(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
