package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/record"
)

// feed is what a plan has to give, and in words what it gave. The clock is that of the story.
type feed struct {
	attempts *supply[*exchange.Attempt]
	visits   *supply[Visit]
	given    []*exchange.Attempt // without those that are done
	heard    []string
}

// planStory is what happens to a plan, line by line: at which millisecond, what, and after the arrow what it says.
type planStory struct {
	says  string
	plan  func(f *feed) plan
	lines string
}

func opened() func(*feed) plan {
	return func(f *feed) plan { return &openLoop{attempts: f.attempts} }
}

// slotted is a plan for a number of slots.
func slotted(slots uint32, limitMS int64) func(*feed) plan {
	return func(f *feed) plan {
		p := &maxLoop{stock: &stock{attempts: f.attempts}, limitNS: limitMS * 1e6}
		for slot := range slots {
			p.free = append(p.free, slots-slot)
		}
		return p
	}
}

// peopled is a plan for users who arrive at these milliseconds, when some visits have been read.
func peopled(visits string, limitMS int64, atMS ...int64) func(*feed) plan {
	return func(f *feed) plan {
		f.read(strings.Fields(visits))
		u := &usersLoop{
			visits:  newVisits(context.Background(), f.visits, len(atMS), limitMS > 0),
			numbers: &atomic.Uint32{}, limitNS: limitMS * 1e6,
		}
		for _, at := range atMS {
			u.schedule(&user{number: u.numbers.Add(1), restNS: at * 1e6}, 0)
		}
		return u
	}
}

// read puts into the supplies what was read from a log: requests, the n-th of which is due after n × 10 ms, or visits,
// as "2:0,100" says: the second, with requests 20 and 21, 100 ms apart.
func (f *feed) read(words []string) {
	var attempts []*exchange.Attempt
	var visits []Visit
	for _, word := range words {
		number, times, isVisit := strings.Cut(word, ":")
		n, _ := strconv.ParseInt(number, 10, 64)
		if !isVisit {
			attempts = append(attempts, &exchange.Attempt{LoggedRequest: &exchange.LoggedRequest{Line: uint64(n)}, DueNS: n * 10e6})
			continue
		}
		var visit Visit
		for i, text := range strings.Split(times, ",") {
			ms, _ := strconv.ParseInt(text, 10, 64)
			visit = append(visit, Entry{AtNS: ms * 1e6, Value: &exchange.LoggedRequest{Line: uint64(n*10) + uint64(i)}})
		}
		visits = append(visits, visit)
	}
	if attempts != nil {
		f.attempts.batches <- attempts
		f.attempts.wakeStarved()
	}
	if visits != nil {
		f.visits.batches <- visits
		f.visits.wakeStarved()
	}
}

// ask takes from a plan all that is due.
func (f *feed) ask(p plan, nowMS int64) {
	for {
		s, again := p.Next(nowMS * 1e6)
		if s == nil && again <= nowMS*1e6 {
			continue // it asks for another turn at once
		}
		if s == nil {
			if again < exchange.Never {
				f.heard = append(f.heard, fmt.Sprintf("until %d", again/1e6))
			}
			break
		}
		text := fmt.Sprintf("%d by %d", s.Line, s.Key.Client)
		if s.DueNS != nowMS*1e6 {
			text += fmt.Sprintf(" at %d", s.DueNS/1e6)
		}
		f.given, f.heard = append(f.given, s), append(f.heard, text)
	}
	if p.Ended() {
		f.heard = append(f.heard, "ended")
	}
}

// give carries out one input.
func (f *feed) give(t *testing.T, p plan, nowMS int64, input string) {
	words := strings.Fields(input)
	switch words[0] {
	case "next":
		f.ask(p, nowMS)
	case "read":
		f.read(words[1:])
	case "end":
		close(f.attempts.batches)
		close(f.visits.batches)
		f.attempts.wakeStarved()
		f.visits.wakeStarved()
	case "left":
		f.heard = append(f.heard, fmt.Sprint(p.countLeft(context.Background())))
	case "done", "refused":
		kind := map[string]record.ErrorKind{"refused": record.ConnectRefused}[words[0]]
		i := slices.IndexFunc(f.given, func(s *exchange.Attempt) bool { return fmt.Sprint(s.Line) == words[1] })
		s := f.given[i]
		f.given = slices.Delete(f.given, i, i+1)
		if p.Done(s, kind, nowMS*1e6) {
			f.heard = append(f.heard, fmt.Sprintf("%d leaves", s.Key.Client))
		}
	default:
		t.Fatalf("no input is called %q", input)
	}
}

func runPlan(t *testing.T, row planStory) {
	f := &feed{
		attempts: &supply[*exchange.Attempt]{batches: make(chan []*exchange.Attempt, batchesAhead)},
		visits:   &supply[Visit]{batches: make(chan []Visit, batchesAhead)},
	}
	p := row.plan(f)
	p.wakeBy(func() { f.heard = append(f.heard, "wakes") })
	for _, line := range strings.Split(strings.TrimSpace(row.lines), "\n") {
		given, want, _ := strings.Cut(line, "→")
		at, input, _ := strings.Cut(strings.TrimSpace(given), " ")
		ms, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		f.heard = nil
		f.give(t, p, ms, input)
		if got := strings.Join(f.heard, "; "); got != strings.TrimSpace(want) {
			t.Errorf("at %d ms, %s: %q, want %q", ms, input, got, strings.TrimSpace(want))
		}
	}
}

var planStories = []planStory{
	{"open: a request is given when it is due, and the plan ends with the log", opened(), `
		0 read 1 2
		5 next    → until 10
		10 next   → 1 by 0; until 20
		20 next   → 2 by 0
		20 end    → wakes
		20 next   → ended`},
	{"open: what is read late is late, and not lost", opened(), `
		0 next
		15 read 1 → wakes
		15 next   → 1 by 0 at 10
		16 read 2 → wakes
		16 end
		16 next   → until 20
		20 next   → 2 by 0; ended`},
	{"open: the rest is left", opened(), `
		0 read 1 2 3
		0 read 4
		10 next   → 1 by 0; until 20
		10 end
		11 left   → 3`},
	{"max: a slot has one request at a time, due when the slot is free", slotted(2, 0), `
		0 read 1 2 3
		5 next    → 1 by 1; 2 by 2
		7 done 2
		7 next    → 3 by 2
		8 done 1
		8 next
		8 end     → wakes
		8 next    → ended
		9 done 3`},
	{"max: a slot rests after a connection that could not be opened, while the others go on", slotted(2, 0), `
		0 read 1 2 3 4 5
		0 next    → 1 by 1; 2 by 2
		5 refused 1
		6 refused 2
		6 next    → until 105
		105 next  → 3 by 1; until 106
		106 next  → 4 by 2
		107 done 4
		107 next  → 5 by 2`},
	{"max: it ends at its limit, with requests under way", slotted(1, 50), `
		0 read 1 2 3
		0 next    → 1 by 1
		50 done 1
		50 next   → ended
		50 end
		50 left   → 2`},
	{"max: it ends at its limit also while the log is slow", slotted(1, 50), `
		0 next    → until 50
		50 next   → ended`},
	{"users: a visit has its pauses, counted from due, and waits for its answers", peopled("1:0,100,150", 0, 0), `
		0 next    → 10 by 1
		0 end
		30 done 10
		30 next   → until 100
		100 next  → 11 by 1
		170 done 11
		170 next  → 12 by 1
		175 next
		180 done 12 → 1 leaves
		180 next  → ended`},
	{"users: after a visit somebody else comes with the next", peopled("1:0 2:0,5", 0, 0), `
		0 end
		0 next    → 10 by 1
		5 done 10 → 1 leaves
		5 next    → 20 by 2`},
	{"users: they arrive one after another", peopled("1:0 2:0", 0, 0, 40), `
		0 next    → 10 by 1; until 40
		40 next   → 20 by 2`},
	{"users: each has a visit, where there are too few the same", peopled("1:0 2:0", 0, 0, 0, 0), `
		0 next    → 10 by 1; 20 by 2
		1 end     → wakes
		1 next    → 10 by 3 at 0
		2 done 10 → 1 leaves
		2 done 20 → 2 leaves
		2 done 10 → 3 leaves
		2 next    → ended`},
	{"users: who finds no visit read yet waits for one", peopled("1:0", 0, 0, 0), `
		0 next    → 10 by 1
		7 read 2:0 → wakes
		7 next    → 20 by 2 at 0`},
	{"users: visits are repeated until the limit, and nothing is due past it", peopled("1:0,100", 250, 0), `
		0 end
		0 next    → 10 by 1
		0 done 10
		100 next  → 11 by 1
		100 done 11 → 1 leaves
		100 next  → 10 by 2
		100 done 10
		200 next  → 11 by 2
		200 done 11 → 2 leaves
		200 next  → 10 by 3
		201 done 10
		201 next  → ended`},
	{"users: it ends at its limit also while the log is slow", peopled("1:0", 50, 0, 0), `
		0 next    → 10 by 1; until 50
		1 done 10 → 1 leaves
		50 next   → ended`},
	{"users: what those at work had still before them is left", peopled("1:0,100,150 2:0,100", 0, 0, 0), `
		0 next    → 10 by 1; 20 by 2
		1 left    → 0
		2 done 10
		2 done 20
		3 left    → 3`},
}

func TestPlans(t *testing.T) {
	for _, row := range planStories {
		t.Run(row.says, func(t *testing.T) { runPlan(t, row) })
	}
}
