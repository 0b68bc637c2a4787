package record

import (
	"crypto/sha256"
	"math/rand/v2"
	"testing"
	"time"
)

// One sender adds as fast as it can while the records are folded and written behind its back.
func BenchmarkAdd(b *testing.B) { benchmarkAdd(b, Options{}) }

func BenchmarkAddWithAllLogs(b *testing.B) { benchmarkAdd(b, Options{GrinderLog: true, HDRLog: true}) }

func benchmarkAdd(b *testing.B, opts Options) {
	d, err := Create(b.TempDir(), Run{}, opts)
	if err != nil {
		b.Fatal(err)
	}
	if err := d.Start(time.Now()); err != nil {
		b.Fatal(err)
	}
	r := Record{TotalUS: 1200, LagUS: 30, TTFBUS: 900, Bytes: 1000, LoggedBytes: 1000, Status: 200, LoggedStatus: 200}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.DueNS += 10_000
		r.TotalUS = uint32(1000 + i%3000)
		d.Add(&r)
		if i%100_000 == 0 { // a real run is not faster than its writer for long
			b.StopTimer()
			d.wakeUp()
			for d.waiting() > wakeBlocks {
				time.Sleep(time.Millisecond)
			}
			b.StartTimer()
		}
	}
	b.StopTimer()
	if _, err := d.Close(Complete, ""); err != nil {
		b.Fatal(err)
	}
}

func (d *Dir) waiting() int {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	return len(d.queue.full)
}

// The work behind the senders, for one record: counting it and packing it.
func BenchmarkFold(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	records := make([]Record, blockRecords)
	for i := range records {
		records[i] = Record{TotalUS: uint32(r.ExpFloat64() * 3000), LagUS: uint32(r.Uint64N(100)), TTFBUS: 500, Route: uint16(r.Uint64N(20))}
	}
	var t tally
	var f flusher
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		t.add(&records[i%blockRecords])
		if i%blockRecords == 0 {
			f.pack(records)
		}
	}
}

// The sum over all records, for one record: part of the work behind the senders.
func BenchmarkSum(b *testing.B) {
	var f flusher
	packed := f.pack(make([]Record, blockRecords))
	sum := sha256.New()
	for b.Loop() {
		sum.Write(packed)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/blockRecords, "ns/record")
}
