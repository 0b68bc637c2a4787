package same

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"regexp"
	"slices"

	"plimsoll/replay/traffic"
)

// Choice says which of a log's requests are compared.
type Choice struct {
	Include, Exclude []*regexp.Regexp
	VHosts           map[string]bool // virtual hosts, as the log names them; none: all
	Limit            uint64          // pages at most; 0: all
	Sample           float64         // this share of the pages, drawn by their targets and the seed; 1: all
	Seed             int64
	Most             int // distinct targets that are remembered
}

// Chosen counts what became of the requests of a log. What is left out is counted by reason.
type Chosen struct {
	Requests uint64            `json:"requests"`
	Pages    uint64            `json:"pages"`
	LeftOut  map[string]uint64 `json:"left_out"`
	VHosts   []string          `json:"vhosts"` // that the log names, of the requests that were chosen: the first of them (hostile)
}

// The reasons to leave a request, or a page, out.
const (
	LeftMethod  = "method"      // requests other than GET
	LeftFilter  = "filter"      // --include, --exclude, --vhost
	LeftTarget  = "target"      // requests for no path of the server itself
	LeftSample  = "sample"      // pages that --sample did not draw
	LeftLimit   = "limit"       // pages beyond --limit
	LeftTargets = "max_targets" // requests beyond --max-targets, which may be for pages that were seen
)

// distinct calls use for each page of the logs that was chosen, once, in the order in which they were asked for first,
// until it returns false. A target takes 16 bytes of memory, and what a hash table adds.
func distinct(ctx context.Context, logs *traffic.Logs, choice Choice, use func(path string) bool) (Chosen, error) {
	found := Chosen{LeftOut: map[string]uint64{}, VHosts: []string{}}
	seen := map[[16]byte]struct{}{}
	err := logs.EachGet(ctx, func(path, vhost []byte, isGet bool) bool {
		found.Requests++
		reason := choice.leftOut(path, vhost, isGet)
		if reason != "" {
			found.LeftOut[reason]++
			return true
		}
		found.noteVHost(vhost)
		sum := sha256.Sum256(path)
		key := [16]byte(sum[:16])
		if _, known := seen[key]; known {
			return true
		}
		if len(seen) >= choice.Most {
			found.LeftOut[LeftTargets]++
			return true
		}
		seen[key] = struct{}{}
		switch {
		case !choice.draws(path):
			found.LeftOut[LeftSample]++
		case choice.Limit > 0 && found.Pages >= choice.Limit:
			found.LeftOut[LeftLimit]++
		default:
			found.Pages++
			return use(string(path))
		}
		return true
	})
	return found, err
}

// mostVHosts is how many virtual hosts are named.
const mostVHosts = 5

func (c *Chosen) noteVHost(name []byte) {
	if len(name) == 0 || len(c.VHosts) == mostVHosts {
		return
	}
	if !slices.ContainsFunc(c.VHosts, func(known string) bool { return known == string(name) }) {
		c.VHosts = append(c.VHosts, string(name))
	}
}

// leftOut returns why a request is not a page to compare, or "".
func (c *Choice) leftOut(path, vhost []byte, isGet bool) string {
	switch {
	case !isGet:
		return LeftMethod
	case len(c.VHosts) > 0 && !c.VHosts[string(vhost)], !matches(c.Include, path, true), matches(c.Exclude, path, false):
		return LeftFilter
	case !canBeAsked(string(path)):
		return LeftTarget
	}
	return ""
}

func matches(patterns []*regexp.Regexp, path []byte, without bool) bool {
	for _, re := range patterns {
		if re.Match(path) {
			return true
		}
	}
	return len(patterns) == 0 && without
}

// draws reports whether a page is in the sample: the same pages for the same seed, in any log.
func (c *Choice) draws(path []byte) bool {
	if c.Sample >= 1 {
		return true
	}
	h := sha256.New()
	_ = binary.Write(h, binary.LittleEndian, c.Seed)
	h.Write(path)
	return float64(binary.LittleEndian.Uint64(h.Sum(nil))) < c.Sample*math.MaxUint64
}
