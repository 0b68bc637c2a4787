package netconn

import (
	"errors"
	"io"
	"testing"
)

// wall is a connection whose server does not read until it is told to.
type wall struct{ reads chan struct{} }

func (w *wall) Write(b []byte) (int, error) {
	<-w.reads
	return len(b), nil
}

func TestAnOutboxKnowsAServerThatDoesNotRead(t *testing.T) {
	rows := []struct {
		why    string
		writes []int
		full   int
		err    error
	}{
		{"a megabyte waits", []int{mostUnwritten / 2, mostUnwritten / 2}, 0, nil},
		{"more does not, and that is told once", []int{mostUnwritten, 1, 1}, 1, errUnwritten},
	}
	for _, row := range rows {
		full := 0
		o := newOutbox(func() { full++ })
		var err error
		for _, n := range row.writes {
			_, err = o.Write(make([]byte, n))
		}
		if full != row.full || !errors.Is(err, row.err) {
			t.Errorf("%s: told %d times, %v", row.why, full, err)
		}
	}
}

func TestUselessFramesAreCountedBySecond(t *testing.T) {
	var u useless
	for _, each := range []struct {
		why     string
		atMS    int64
		frames  int
		tooMany bool
	}{
		{"10,000 in a second", 1000, mostUseless, false},
		{"10,000 in the next", 2000, mostUseless, false},
		{"one more in that", 2999, 1, true},
		{"the next second begins anew", 3000, 1, false},
	} {
		tooMany := false
		for range each.frames {
			tooMany = u.tooMany(each.atMS * 1e6)
		}
		if tooMany != each.tooMany {
			t.Errorf("%s: %v", each.why, tooMany)
		}
	}
}

func TestAnOutboxTakesMoreWhileItIsWriting(t *testing.T) {
	to, ended := &wall{make(chan struct{})}, make(chan struct{})
	o := newOutbox(func() { t.Error("full") })
	go func() {
		o.carry(to)
		close(ended)
	}()
	for range 3 {
		if _, err := io.WriteString(o, "frame"); err != nil {
			t.Fatal(err)
		}
		o.Flush()
		to.reads <- struct{}{}
	}
	o.finish(0)
	<-ended
}
