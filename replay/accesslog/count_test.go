package accesslog

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Seconds after the first of the lines that lineAt writes.
const (
	minute  = 60
	hour    = 60 * minute
	day     = 24 * hour
	in1970  = -1_760_054_400
	in2100  = 2_344_000_000
	in2100b = in2100 + 5*365*day
)

// each returns n seconds from the first on, so many apart.
func each(n, first, apart int) []int {
	var out []int
	for i := range n {
		out = append(out, first+i*apart)
	}
	return out
}

func joined(parts ...[]int) []int { return slices.Concat(parts...) }

// ofFiles opens a log of these files, each a list of seconds.
func ofFiles(t *testing.T, files [][]int) *Source {
	t.Helper()
	var paths []string
	for i, seconds := range files {
		var text strings.Builder
		for _, second := range seconds {
			text.WriteString(lineAt(second, "/"))
		}
		paths = append(paths, writeFile(t, filepath.Join(t.TempDir(), fmt.Sprintf("%d.log", i)), []byte(text.String())))
	}
	s, err := Open(paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func seconds(ns int64) int {
	return int(time.Duration(ns - time.Date(2025, 10, 10, 0, 0, 0, 0, time.UTC).UnixNano()).Seconds())
}

func TestCountFindsStraysAndPauses(t *testing.T) {
	body := each(100, 0, 1)
	rows := []struct {
		why    string
		files  [][]int
		pause  time.Duration
		strays string // FILE:LINE ×REQUESTS
		pauses string // FILE:LINE SECONDS, of the line after it
	}{
		{"a log of one stretch has neither", [][]int{body}, 0, "", ""},
		{"a night without visitors is none", [][]int{joined(body, each(100, 11*hour, 1))}, 0, "", ""},
		{"a day without visitors is a pause", [][]int{joined(body, each(100, day, 1))}, 0, "", "0:101 86301"},
		{"a pause may begin and end anywhere in the day", [][]int{joined(body, each(100, 12*hour+100, 1))}, 0, "", "0:101 43201"},
		{"a shorter pause is found when asked for", [][]int{joined(body, each(100, 200, 1))}, 10 * time.Second, "", "0:101 101"},
		{"a missing day of a rotated log is a pause", [][]int{body, each(100, 2*day, 1)}, 0, "", "1:1 172701"},
		{"what another file fills is none", [][]int{joined(body, each(100, day, 1)), each(100, 11*hour, hour/4)}, 0, "", ""},
		{"a stray in the past", [][]int{joined(body, []int{in1970}, each(100, 100, 1))}, 0, "0:101 ×1", ""},
		{"a stray in the future", [][]int{joined(body, []int{in2100}, each(100, 100, 1))}, 0, "0:101 ×1", ""},
		{"a stray of next week, since time came back", [][]int{joined(body, []int{7 * day}, each(100, 100, 1))}, 0, "0:101 ×1", ""},
		{"several in a row, of many times", [][]int{joined(body, []int{in1970, in2100, 9 * day, in2100b}, each(100, 100, 1))}, 0, "0:101 ×4", ""},
		{"the first line", [][]int{joined([]int{in1970}, body)}, 0, "0:1 ×1", ""},
		{"the first line of a log of three", [][]int{{in1970, 0, 1}}, 0, "0:1 ×1", ""},
		{"the first line in the future", [][]int{joined([]int{in2100}, body)}, 0, "0:1 ×1", ""},
		{"the last line", [][]int{joined(body, []int{in2100})}, 0, "0:101 ×1", ""},
		{"the last line in the past", [][]int{joined(body, []int{in1970})}, 0, "0:101 ×1", ""},
		{"first and last lines", [][]int{joined(each(5, in1970, 1), body, each(5, in2100, day))}, 0, "0:1 ×10", ""},
		{"one line in two hundred, all over the log", [][]int{joined(each(9900, 0, 1), each(50, in1970, 1), each(9900, 9900, 1), each(50, in1970, 1), each(100, 19800, 1))}, 0, "0:9901 ×100", ""},
		{"a few lines before a week-end are none", [][]int{joined(each(5, 0, hour), each(100, 3*day, 1))}, 0, "", "0:6 244800"},
		{"a few lines after a week-end are none", [][]int{joined(body, each(5, 3*day, hour))}, 0, "", "0:101 259101"},
		{"many lines are none, however far away", [][]int{joined(each(50, in1970, 1), body)}, 0, "", "0:51 1760054351"},
		{"of two lines nobody knows which strays", [][]int{{in1970, 0}}, 0, "", "0:2 1760054400"},
		{"a stray beside a real pause hides nothing of it", [][]int{joined(body, []int{in1970}, each(100, 2*day, 1))}, 0, "0:101 ×1", "0:102 172701"},
		{"each file has its own", [][]int{joined(body, []int{in2100}, each(100, 100, 1)), joined([]int{in1970}, each(100, 200, 1))}, 0, "0:101 ×1, 1:1 ×1", ""},
	}
	for _, row := range rows {
		for _, chunk := range []int{0, 200} {
			opts := ReadOptions{Pause: row.pause, chunkBytes: chunk}
			totals, err := ofFiles(t, row.files).Count(context.Background(), mustCompile(t, Spec{Log: "COMMON"}), opts)
			if err != nil {
				t.Fatal(err)
			}
			var strays, pauses []string
			for _, s := range totals.Strays {
				strays = append(strays, fmt.Sprintf("%d:%d ×%d", s.File, s.Line, s.Requests))
			}
			for _, p := range totals.Pauses {
				pauses = append(pauses, fmt.Sprintf("%d:%d %d", p.File, p.Line, (p.ToNS-p.FromNS)/1e9))
			}
			if got := strings.Join(strays, ", "); got != row.strays {
				t.Errorf("%s: strays %q, want %q", row.why, got, row.strays)
			}
			if got := strings.Join(pauses, ", "); got != row.pauses {
				t.Errorf("%s: pauses %q, want %q", row.why, got, row.pauses)
			}
		}
	}
}

func TestReadCorrectsStrays(t *testing.T) {
	body := each(10, 0, 10)
	rows := []struct {
		why   string
		files [][]int
		want  []int
	}{
		{"a log without strays is as it was", [][]int{body}, body},
		{"a stray comes with the line before it", [][]int{joined(body, []int{in1970}, each(10, 100, 10))}, joined(body, []int{90}, each(10, 100, 10))},
		{"the first line comes with the first that does not stray", [][]int{joined([]int{in2100}, body)}, joined([]int{0}, body)},
		{"strays of one clock keep their distances", [][]int{joined(each(3, in1970, 7), each(9, 5, 10))}, joined([]int{5, 12, 19}, each(9, 5, 10))},
		{"but never move past the end", [][]int{joined(body, each(4, in2100, 50))}, joined(body, []int{90, 90, 90, 90})},
		{"strays of no clock come together", [][]int{joined(body, []int{in2100, in1970, in2100b})}, joined(body, []int{90, 90, 90})},
		{"a stray does not hold its file back behind the next", [][]int{joined([]int{0, in2100}, each(8, 10, 10)), each(10, 100, 10)}, joined([]int{0, 0}, each(8, 10, 10), each(10, 100, 10))},
		{"nor a file that begins with one", [][]int{joined([]int{in2100}, body), each(10, 100, 10)}, joined([]int{0}, body, each(10, 100, 10))},
	}
	for _, row := range rows {
		for _, chunk := range []int{0, 200} {
			s, f := ofFiles(t, row.files), mustCompile(t, Spec{Log: "COMMON"})
			totals, err := s.Count(context.Background(), f, ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for batch, err := range s.Read(context.Background(), f, ReadOptions{Strays: totals.Strays, chunkBytes: chunk}) {
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range batch.Requests {
					got = append(got, seconds(r.TimeNS))
				}
				batch.Release()
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("%s: %v, want %v", row.why, got, row.want)
			}
		}
	}
}

func TestAStepBackIsFoundWhereverChunksEnd(t *testing.T) {
	s, f := ofFiles(t, [][]int{joined(each(200, 0, 1), each(200, 100, 1))}), mustCompile(t, Spec{Log: "COMMON"})
	line := len(lineAt(0, "/"))
	for chunk := 64 * line; chunk < 128*line; chunk += line - 1 {
		totals, err := s.Count(context.Background(), f, ReadOptions{chunkBytes: chunk})
		if err != nil {
			t.Fatal(err)
		}
		if found := totals.SetBacks; len(found) != 1 || found[0].Line != 201 || found[0].ByNS != 100e9 {
			t.Errorf("chunks of %d bytes: %+v", chunk, found)
		}
		var got []int
		for batch, err := range s.Read(context.Background(), f, ReadOptions{SetBacks: totals.SetBacks, chunkBytes: chunk}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range batch.Requests {
				got = append(got, seconds(r.TimeNS))
			}
			batch.Release()
		}
		if !slices.Equal(got, each(400, 0, 1)) {
			t.Errorf("chunks of %d bytes: read at %v", chunk, got)
		}
	}
}

func TestATimelineTakesBoundedMemory(t *testing.T) {
	line := newTimeline(binFor(time.Second), 100)
	for i := range 10_000 {
		at := int64(i*7919%10_007) * int64(time.Hour)
		line.add([]stretch{{requests: 1, firstNS: at, lastNS: at}})
		if len(line.bins) > 100 {
			t.Fatalf("%d bins after %d requests", len(line.bins), i)
		}
	}
	var requests uint64
	for _, s := range line.stretches(time.Hour) {
		requests += s.requests
	}
	if requests != 10_000 {
		t.Errorf("%d requests, want 10,000", requests)
	}
}
