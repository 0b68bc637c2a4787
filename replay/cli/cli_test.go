package cli

import (
	"bytes"
	"os"
	"testing"
	"time"
)

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ why, text, want string }{
		{"text stays", "Läufe/日本 – 5 %\nand more", "Läufe/日本 – 5 %\nand more"},
		{"what clears the screen", "a\x1b[2Jb", `a\x1b[2Jb`},
		{"what goes back in the line", "a\rb\tc\x7f", `a\x0db\x09c\x7f`},
		{"a control character of 8 bits", "a\u009bb", `a\x9bb`},
		{"what turns the direction", "a\u202eb\u2066", `a\u202eb\u2066`},
		{"what ends a line for some", "a\u2028b", `a\u2028b`},
		{"a tag beyond 16 bits", "a\U000e0041b", `a\U000e0041b`},
		{"what is no UTF-8", "a\xff\x9bb", `a\xff\x9bb`},
	} {
		if got := Printable(c.text); got != c.want {
			t.Errorf("%s: %q became %q, want %q", c.why, c.text, got, c.want)
		}
	}
}

func TestByteSizes(t *testing.T) {
	for _, c := range []struct {
		text string
		want ByteSize // −1 for an error
	}{
		{"0", 0}, {"1048576", 1 << 20}, {"512MiB", 512 << 20}, {"10G", 10 << 30}, {"1.5 g", -1}, {"1.5g", 3 << 29}, {"4kb", 4096},
		{"7B", 7}, {"2T", 2 << 40}, {"", -1}, {"G", -1}, {"-1", -1}, {"1X", -1}, {"NaN", -1}, {"1e30", -1}, {"GG", -1}, {"1IB", 1},
	} {
		var got ByteSize
		err := got.UnmarshalText([]byte(c.text))
		if (err != nil) != (c.want < 0) || err == nil && got != c.want {
			t.Errorf("%q is %d, %v, want %d", c.text, got, err, c.want)
		}
	}
}

func TestWhenProgressIsShown(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	yes, no := true, false
	for _, row := range []struct {
		flags              ShowFlags
		inTerminal, inPipe bool
	}{
		{ShowFlags{}, true, false},
		{ShowFlags{Progress: &yes}, true, true},
		{ShowFlags{Progress: &no}, false, false},
		{ShowFlags{Quiet: true}, false, false},
		{ShowFlags{Progress: &yes, Quiet: true}, true, true},
	} {
		if got := row.flags.ShowsProgress(Streams{Err: terminal}); got != row.inTerminal {
			t.Errorf("%+v in a terminal: %v", row.flags, got)
		}
		if got := row.flags.ShowsProgress(Streams{Err: &bytes.Buffer{}}); got != row.inPipe {
			t.Errorf("%+v elsewhere: %v", row.flags, got)
		}
	}
}

func TestWithoutATerminalALineComesEveryTenSeconds(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(Streams{Err: &out, Name: "replay"}, true, 10, "Reading")
	line := func() string { return "a line" }
	p.Show(1, line)
	p.next = time.Now().Add(-11 * time.Second) // one was missed
	p.Show(2, line)
	p.Show(3, line)
	p.next = time.Now()
	p.Show(3, nil)
	p.End()
	if out.String() != "replay: a line\nreplay: Reading: 30 %\n" {
		t.Errorf("%q", out.String())
	}
	if none := NewProgress(Streams{Err: &out}, false, 10, ""); none != nil {
		t.Error("progress that nobody asked for")
	}
}
