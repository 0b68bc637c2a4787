package traffic

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"plimsoll/replay/accesslog"
)

// Clocks of servers are apart where a page is in the log of one, its styles and images in that of another, and nearly all
// of them come at the same distance. Visitors read at any pace; browsers do not wait.
const (
	mostPages   = 1 << 16          // of clients, that are kept in mind
	mostPairs   = 1 << 10          // a pair of logs, that are looked at
	fewestPairs = 20               // a pair of logs
	longestGap  = 3 * time.Hour    // between a page and what belongs to it
	leastGap    = 60 * time.Second // that is said
	closeTo     = 10               // most differ from the median by less than one part in so many
)

// asset matches targets that a browser asks for on account of a page, at once.
var asset = regexp.MustCompile(`(?i)\.(?:css|js|png|jpe?g|gif|webp|svg|ico|avif|woff2?)(?:\?|$)`)

// clocks compares the clocks of several logs.
type clocks struct {
	pages map[uint64]*pageView
	gaps  map[[2]int][]int64 // how much later the second log has what belongs together, in nanoseconds
}

// pageView is a page as one client saw it first, and the first thing that it asked for on that account.
type pageView struct {
	pageNS, assetNS     int64
	pageFile, assetFile int
	hasPage, hasAsset   bool
}

func newClocks() *clocks { return &clocks{pages: map[uint64]*pageView{}, gaps: map[[2]int][]int64{}} }

// add takes a request of one of the logs.
func (c *clocks) add(r *accesslog.Request) {
	isAsset := asset.Match(r.Target)
	path := r.Target
	if isAsset {
		_, address, found := bytes.Cut(r.Referer, []byte("://"))
		slash := bytes.IndexByte(address, '/')
		if !found || slash < 0 {
			return
		}
		path = address[slash:]
	}
	path, _, _ = bytes.Cut(path, []byte("#"))
	key := uint64(clientOf(r.Host, r.UserAgent))<<32 | uint64(clientOf(path, nil))
	view := c.pages[key]
	if view == nil {
		if len(c.pages) >= mostPages {
			return
		}
		view = &pageView{}
		c.pages[key] = view
	}
	switch {
	case isAsset && !view.hasAsset:
		view.assetNS, view.assetFile, view.hasAsset = r.TimeNS, r.File, true
	case !isAsset && !view.hasPage:
		view.pageNS, view.pageFile, view.hasPage = r.TimeNS, r.File, true
	default:
		return
	}
	if gap := view.assetNS - view.pageNS; view.hasPage && view.hasAsset && view.pageFile != view.assetFile &&
		time.Duration(gap).Abs() < longestGap {
		pair := [2]int{view.pageFile, view.assetFile}
		if pair[0] > pair[1] {
			pair, gap = [2]int{pair[1], pair[0]}, -gap
		}
		if len(c.gaps[pair]) < mostPairs {
			c.gaps[pair] = append(c.gaps[pair], gap)
		}
	}
}

// apart returns by how much the clock of each log is ahead of that of an earlier one, in nanoseconds; 0 where it is not,
// or where nothing shows.
func (c *clocks) apart(files int) []int64 {
	ahead := make([]int64, files)
	for file := 1; file < files; file++ {
		for earlier := range file {
			gaps := c.gaps[[2]int{earlier, file}]
			if len(gaps) < fewestPairs {
				continue
			}
			slices.Sort(gaps)
			median := gaps[len(gaps)/2]
			near := 0
			for _, gap := range gaps {
				if time.Duration(gap-median).Abs() < time.Duration(median).Abs()/closeTo {
					near++
				}
			}
			if time.Duration(median).Abs() >= leastGap && near*closeTo >= len(gaps)*(closeTo-1) {
				ahead[file] = ahead[earlier] + median
			}
			break
		}
	}
	return ahead
}

// ApartText says which logs' clocks are apart from the first one's; "" where none is.
func (l *Logs) ApartText() string {
	var logs []string
	for i, ns := range l.AheadNS {
		if ns != 0 {
			word := "ahead"
			if ns < 0 {
				word = "behind"
			}
			logs = append(logs, fmt.Sprintf("%s is %v %s", l.named[i], time.Duration(ns).Abs().Round(time.Second), word))
		}
	}
	if len(logs) == 0 {
		return ""
	}
	return fmt.Sprintf("%s, by the images and styles of pages that clients got from several servers; "+
		"a replay keeps the time stamps, and sends apart what belongs together: correct them, or replay one log",
		strings.Join(logs, ", "))
}
