package origin

import (
	"fmt"
	"testing"
)

// plenty is more than any test's log asks for.
var plenty = Limits{Targets: 2_000_000, Bytes: 10 << 30}

type logged struct {
	method string
	status int
	bytes  int64
}

func TestAnswersOfATarget(t *testing.T) {
	for _, c := range []struct {
		why  string
		log  []logged
		want answer
	}{
		{"a file that was read", []logged{{"GET", 200, 500}}, answer{500, 200, whole, true}},
		{"the first size wins", []logged{{"GET", 200, 500}, {"GET", 200, 900}}, answer{500, 200, whole, true}},
		{"a 304 before says nothing of the file", []logged{{"GET", 304, 0}, {"GET", 200, 500}}, answer{500, 200, whole, true}},
		{"nor does a 404 after it", []logged{{"GET", 200, 500}, {"GET", 404, 9}}, answer{500, 200, whole, true}},
		{"a part is less than the whole", []logged{{"GET", 206, 10}, {"GET", 200, 500}}, answer{500, 200, whole, true}},
		{"of parts the longest counts", []logged{{"GET", 206, 10}, {"GET", 206, 30}, {"GET", 206, 20}}, answer{30, 206, partial, true}},
		{"HEAD does not know the size", []logged{{"HEAD", 200, 0}, {"GET", 200, 500}}, answer{500, 200, whole, true}},
		{"a 201 is a status with a body", []logged{{"POST", 201, 70}}, answer{70, 201, success, false}},
		{"the first failure wins", []logged{{"GET", 404, 9}, {"GET", 500, 99}}, answer{9, 404, failure, false}},
		{"an empty file takes no room on the disk", []logged{{"GET", 200, 0}}, answer{0, 200, whole, false}},
		{"a log without sizes", []logged{{"GET", 200, -1}}, answer{0, 200, whole, false}},
		{"a file beyond the limit is in memory", []logged{{"GET", 200, 2000}}, answer{2000, 200, whole, false}},
	} {
		p := NewCatalog(Limits{Targets: 10, Bytes: 1000})
		for _, l := range c.log {
			p.Add([]byte("/x"), l.method, l.status, l.bytes)
		}
		if got := p.answers[hash("/x")]; got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.why, got, c.want)
		}
	}
}

func TestPlanCountsWhatItHolds(t *testing.T) {
	p := NewCatalog(Limits{Targets: 4, Bytes: 1000})
	p.Add([]byte("/part"), "GET", 206, 300)
	p.Add([]byte("/part"), "GET", 200, 400) // in place of its part
	p.Add([]byte("/big"), "GET", 200, 700)
	p.Add([]byte("/small"), "GET", 200, 600)
	p.Add([]byte("/gone"), "GET", 410, 6)
	p.Add([]byte("/one-too-many"), "GET", 200, 1)
	p.Add([]byte("/one-too-many"), "GET", 200, 1)
	p.Add([]byte("/gone"), "GET", 410, 6)
	want := Stats{Targets: 4, Files: 2, FileBytes: 1000, InMemory: 1, Forgotten: 2}
	// /big does not fit after /part, /small does.
	if got := p.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestFingerprintsTellPlansApart(t *testing.T) {
	plan := func(order ...int) *Catalog {
		p := NewCatalog(plenty)
		for _, i := range order {
			p.Add(fmt.Appendf(nil, "/%d", i), "GET", 200, int64(i)*100)
		}
		return p
	}
	if plan(1, 2, 3).fingerprint() != plan(3, 1, 2).fingerprint() {
		t.Error("the order of the log changes the fingerprint")
	}
	seen := map[string]string{}
	for _, order := range [][]int{{}, {1}, {2}, {1, 2}, {1, 2, 3}, {2, 3}} {
		print := plan(order...).fingerprint()
		if other, ok := seen[print]; ok {
			t.Errorf("%v and %s have the same fingerprint", order, other)
		}
		seen[print] = fmt.Sprint(order)
	}
}
