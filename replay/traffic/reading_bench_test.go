package traffic

import (
	"testing"

	"plimsoll/replay/route"
)

// BenchmarkOthersLines says what a line of another instance's client costs: it is read and put in order, and not sent.
func BenchmarkOthersLines(b *testing.B) {
	const lines = 100_000
	logs := accessLog(b, lines)
	share, err := NewShare(rats("0", "1/1000000", "1"), 0)
	if err != nil {
		b.Fatal(err)
	}
	plan := Plan{Speed: 1, Seed: 1, Loops: 1, Share: share, Methods: map[string]bool{"GET": true, "POST": true}}
	for b.Loop() {
		for range New(plan, logs, counter{}, route.New(nil)).Paced() {
			b.Fatal("a line was of this instance, whose share is next to nothing")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lines, "ns/line")
}
