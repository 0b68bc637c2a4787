package traffic

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/accesslog"
)

// TestClocksThatAreApart has two servers that take turns: of a page the one, of its images the other.
func TestClocksThatAreApart(t *testing.T) {
	rows := []struct {
		why    string
		apart  time.Duration // of the second server
		slow   bool          // the images come when the visitor scrolls
		others bool          // the second server has other visitors
		aheadS float64
	}{
		{"seven minutes ahead", 7 * time.Minute, false, false, 420},
		{"seven minutes behind", -7 * time.Minute, false, false, -420},
		{"one clock", 0, false, false, 0},
		{"one clock, and visitors who scroll", 0, true, false, 0},
		{"nobody in common", 7 * time.Minute, false, true, 0},
	}
	for _, row := range rows {
		texts := make([]strings.Builder, 2)
		for i := range 200 {
			for part := range 2 {
				server := (i + part) % 2
				at := noon.Add(time.Duration(10*i+part) * time.Second)
				target, referer, address := fmt.Sprint("/page", i), "-", fmt.Sprint("192.0.2.", i%100)
				if part == 1 {
					target, referer = fmt.Sprintf("/image%d.png", i), fmt.Sprint("https://site.example/page", i)
					if row.slow {
						at = at.Add(time.Duration(i%17) * 20 * time.Second)
					}
				}
				if server == 1 {
					at = at.Add(row.apart)
					if row.others {
						address = fmt.Sprint("198.51.100.", i%100)
					}
				}
				fmt.Fprintf(&texts[server], "%s - - [%s] \"GET %s HTTP/1.1\" 200 5 %q \"UA\"\n", address, at.Format("02/Jan/2006:15:04:05 -0700"), target, referer)
			}
		}
		var paths []string
		for i := range texts {
			paths = append(paths, filepath.Join(t.TempDir(), fmt.Sprintf("%d.log", i)))
			if err := os.WriteFile(paths[i], []byte(texts[i].String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		logs, err := Open(context.Background(), paths, nil, Reading{Spec: accesslog.Spec{Log: "COMBINED"}})
		if err != nil {
			t.Fatal(err)
		}
		defer logs.Close()
		_, _, err = logs.Census(context.Background(), Plan{Speed: 1, Methods: map[string]bool{"GET": true}}, Capacity{6, 10_000, time.Second})
		got := logs.Facts()[1].AheadS
		if err != nil || math.Abs(got-row.aheadS) > 2 || (logs.ApartText() != "") != (row.aheadS != 0) {
			t.Errorf("%s: %.0f s ahead, want %.0f; %q, %v", row.why, got, row.aheadS, logs.ApartText(), err)
		}
	}
}
