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

// TestClocksThatAreApart has two servers: a page is in the log of the one, its image in that of the other.
func TestClocksThatAreApart(t *testing.T) {
	atOnce := func(int) time.Duration { return 0 }
	visitor := func(_, page int) string { return fmt.Sprint("192.0.2.", page%100) }
	rows := []struct {
		why    string
		apart  time.Duration                 // of the second server
		image  func(page int) time.Duration  // how long after the page it comes
		client func(server, page int) string // who asks for the page
		images bool                          // all of them are the second server's, no page is
		aheadS float64
	}{
		{"seven minutes ahead", 7 * time.Minute, atOnce, visitor, false, 420},
		{"seven minutes behind", -7 * time.Minute, atOnce, visitor, false, -420},
		{"seven minutes, and every fifth visitor scrolls", 7 * time.Minute, func(page int) time.Duration { return time.Duration(page%5/4*page) * time.Second }, visitor, false, 420},
		{"a server of images, seven minutes behind", -7 * time.Minute, atOnce, visitor, true, -420},
		{"one clock", 0, atOnce, visitor, false, 0},
		{"half a minute", 30 * time.Second, atOnce, visitor, false, 0},
		{"one clock, and visitors who scroll", 0, func(page int) time.Duration { return time.Duration(page%17) * 20 * time.Second }, visitor, false, 0},
		{"one clock, and a crawler that comes back for the images after five minutes", 0, func(int) time.Duration { return 5 * time.Minute },
			func(int, int) string { return "192.0.2.1" }, true, 0},
		{"nobody in common", 7 * time.Minute, atOnce, func(server, page int) string { return fmt.Sprintf("192.0.%d.%d", server, page%100) }, false, 0},
	}
	for _, row := range rows {
		texts := make([]strings.Builder, 2)
		for i := range 200 {
			for part := range 2 {
				server := (i + part) % 2
				if row.images {
					server = part
				}
				at := noon.Add(time.Duration(10*i+part) * time.Second)
				target, referer := fmt.Sprint("/page", i), "-"
				if part == 1 {
					target, referer = fmt.Sprintf("/image%d.PNG?v=1", i), fmt.Sprint("https://site.example/page", i)
					at = at.Add(row.image(i))
				}
				if server == 1 {
					at = at.Add(row.apart)
				}
				address := row.client(server, i)
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

func TestClocksKeepNoMorePagesThanTheyMay(t *testing.T) {
	c := newClocks(2)
	for i := range 4 * mostPages {
		c.add(&accesslog.Request{File: i % 2, Target: fmt.Append(nil, "/page", i)}, uint32(i))
	}
	if n := len(c.pages); n > mostPages || n < mostPages/2 {
		t.Errorf("%d pages", n)
	}
	for i := range mostPages + 1 { // of one client, which is in every sample
		c.add(&accesslog.Request{Target: fmt.Append(nil, "/page", i)}, 0)
	}
	if !c.over {
		t.Errorf("they go on with %d pages, one client in %d", len(c.pages), c.every)
	}
}
