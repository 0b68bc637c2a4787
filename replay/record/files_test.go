package record

import (
	"strings"
	"testing"
	"time"
)

func TestDirName(t *testing.T) {
	rows := map[string]string{
		"/var/log/access.log":           "access",
		"access.log.1.gz":               "access.log.1",
		"-":                             "stdin",
		"a b;rm -rf $HOME'\x1b[2J.log":  "a-b-rm--rf--HOME---2J",
		"../..":                         "",
		strings.Repeat("x", 300):        strings.Repeat("x", 60),
		"<script>alert(1)</script>.log": "script",
	}
	for log, want := range rows {
		_, name, _ := strings.Cut(DirName(time.Time{}, "replay", log), "-replay-")
		if name != want {
			t.Errorf("%q: %q, want %q", log, name, want)
		}
	}
}
