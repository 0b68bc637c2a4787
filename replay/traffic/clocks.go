package traffic

// Clocks of servers that are apart, seen in logs of several of them.

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"plimsoll/replay/accesslog"
)

// Clocks of servers are apart where a page is in the log of one, its styles and images in that of another, and most of
// them come at the same distance, whoever asks. Visitors read at any pace; browsers do not wait.
const (
	mostPages    = 1 << 15          // of clients, that are kept in mind; past that, those of every second client
	mostPairs    = 1 << 10          // a pair of logs, that are looked at
	mostOfClient = 4                // of these: one crawler may fetch what it found minutes later
	fewestPairs  = 20               // a pair of logs
	longestGap   = 3 * time.Hour    // between a page and what belongs to it
	leastGap     = 60 * time.Second // that is reported
	closeTo      = 10               // most differ from the median by less than one part in so many
)

// clocks compares the clocks of several logs.
type clocks struct {
	files int
	every uint32 // one client in so many is looked at, a power of two
	pages map[uint64]pageView
	gaps  map[[2]int][]int64 // how much later the second log has what belongs together, in nanoseconds
	given map[uint64]int     // how many of them each client gave of each two logs
	over  bool               // nothing more is looked at
}

// pageView is a page as one client saw it first, and the first thing that it asked for on that account.
type pageView struct {
	pageNS, assetNS     int64
	pageFile, assetFile int32 // from 1; 0: not seen
}

func newClocks(files int) *clocks {
	return &clocks{files: files, every: 1, pages: map[uint64]pageView{}, gaps: map[[2]int][]int64{}, given: map[uint64]int{}, over: files < 2}
}

// add takes a request of one of the logs, and the number of its client.
func (c *clocks) add(r *accesslog.Request, client uint32) {
	if c.over || client%c.every != 0 {
		return
	}
	of, asset := r.Target, isAsset(r.Target)
	if asset {
		_, address, found := bytes.Cut(r.Referer, []byte("://"))
		slash := bytes.IndexByte(address, '/')
		if !found || slash < 0 {
			return
		}
		of = address[slash:]
	}
	of, _, _ = bytes.Cut(of, []byte("#"))
	key := uint64(client)<<32 | uint64(numberClient(of, nil))
	view := c.pages[key]
	switch {
	case asset && view.assetFile == 0:
		view.assetNS, view.assetFile = r.TimeNS, int32(r.File+1)
	case !asset && view.pageFile == 0:
		view.pageNS, view.pageFile = r.TimeNS, int32(r.File+1)
	default:
		return
	}
	c.pages[key] = view
	for len(c.pages) > mostPages {
		if c.every *= 2; c.every == 0 { // they are all of client 0
			c.over = true
			return
		}
		maps.DeleteFunc(c.pages, func(key uint64, _ pageView) bool { return uint32(key>>32)%c.every != 0 })
	}
	if view.pageFile > 0 && view.assetFile > 0 && view.pageFile != view.assetFile {
		c.measure(int(view.pageFile-1), int(view.assetFile-1), view.assetNS-view.pageNS, client)
	}
}

// isAsset reports whether a browser asks for a target on account of a page, at once.
func isAsset(target []byte) bool {
	path, _, _ := bytes.Cut(target, []byte("?"))
	extension := path[bytes.LastIndexByte(path, '.')+1:]
	var lower [5]byte
	if len(extension) > len(lower) {
		return false
	}
	for i, letter := range extension {
		lower[i] = letter | 0x20
	}
	switch string(lower[:len(extension)]) {
	case "css", "js", "png", "jpg", "jpeg", "gif", "webp", "svg", "ico", "avif", "woff", "woff2":
		return true
	}
	return false
}

// measure takes what a client got of two logs: how much later the second has it.
func (c *clocks) measure(file, other int, gapNS int64, client uint32) {
	if file > other {
		file, other, gapNS = other, file, -gapNS
	}
	pair := [2]int{file, other}
	one := uint64(client)<<32 | uint64(uint32(file*c.files+other))
	if time.Duration(gapNS).Abs() >= longestGap || len(c.gaps[pair]) >= mostPairs || c.given[one] >= mostOfClient {
		return
	}
	c.given[one]++
	c.gaps[pair] = append(c.gaps[pair], gapNS)
	c.over = c.files == 2 && len(c.gaps[pair]) == mostPairs
}

// measureOffsets returns by how much the clock of each log is ahead of the first one's that shows it, in nanoseconds;
// 0 where it is not, or where nothing shows.
func (c *clocks) measureOffsets() []int64 {
	ahead := make([]int64, c.files)
	for file := 1; file < c.files; file++ {
		for earlier := range file {
			if gapNS, same := together(c.gaps[[2]int{earlier, file}]); same {
				ahead[file] = ahead[earlier] + gapNS
				break
			}
		}
	}
	for file, ns := range ahead {
		if time.Duration(ns).Abs() < leastGap {
			ahead[file] = 0
		}
	}
	return ahead
}

// together returns the median of what lies between two logs, and whether they show one.
func together(gaps []int64) (medianNS int64, same bool) {
	if len(gaps) < fewestPairs {
		return 0, false
	}
	slices.Sort(gaps)
	medianNS = gaps[len(gaps)/2]
	within := max(time.Duration(medianNS).Abs(), leastGap) / closeTo
	near := 0
	for _, gap := range gaps {
		if time.Duration(gap-medianNS).Abs() < within {
			near++
		}
	}
	return medianNS, 4*near >= 3*len(gaps)
}

// ApartText says which logs' clocks are apart from the first one's; "" where none is.
func (l *Logs) ApartText() string {
	var logs []string
	for i, ns := range l.AheadNS {
		if ns != 0 {
			word := "ahead of"
			if ns < 0 {
				word = "behind"
			}
			logs = append(logs, fmt.Sprintf("%s is %v %s the first log", l.named[i], time.Duration(ns).Abs().Round(time.Second), word))
		}
	}
	if len(logs) == 0 {
		return ""
	}
	return fmt.Sprintf("clocks are apart: %s, as the images and styles of pages show that clients got from several servers; "+
		"a replay keeps the time stamps, and sends apart what belongs together: correct them, or replay one log",
		strings.Join(logs, ", "))
}
