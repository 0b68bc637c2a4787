package accesslog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
)

// Count reads the whole log and adds it up, in no order and on all cores. OnReject gets the rejected lines at the end. On an error the totals are those of what was read before it.
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
		c.binNS, c.finished = lie.binNS, f.LogTime() == Finished
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
