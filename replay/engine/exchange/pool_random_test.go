package exchange

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/record"
)

// mob tells a pool whatever a driver may tell it, in any order.
type mob struct {
	*scene
	dice *rand.Rand
	all  []string // that was heard
}

// one says yes once in so many times.
func (m *mob) one(in int) bool { return m.dice.IntN(in) == 0 }

func pick[T any](m *mob, from []T) T { return from[m.dice.IntN(len(from))] }

// step is one input.
func (m *mob) step() {
	switch {
	case m.one(3):
		spec := fmt.Sprintf("%c%d%s%s%s", 'a'+m.dice.IntN(4), len(m.attempts)+1,
			pick(m, []string{"", "", ":h2", ":h2", ":1.0"}), pick(m, []string{"", "", "", ":HEAD", ":POST"}),
			pick(m, []string{"", "", "", ":late", ":leaves", ":absolute", ":304"}))
		m.add(spec)
	case m.one(2):
		m.until(m.now + m.dice.Int64N(m.pool.Timeout.Nanoseconds()/4))
	case len(m.conns) > 0:
		m.happen(m.conns[max(0, len(m.conns)-1-m.dice.IntN(12))])
	}
	m.check()
	m.until(m.now)
	m.all, m.heard = append(m.all, m.heard...), nil
}

// happen lets something happen to a connection.
func (m *mob) happen(c *Conn) {
	switch {
	case c.closed:
		m.late(c, pick(m, m.attempts))
	case c.isOpening() && m.one(5):
		m.pool.OpenFailed(c, 1, 1, errorOf["refused"], m.now)
	case c.isOpening():
		m.opened(c, c.client.key.HTTP2 && !m.one(30))
	case m.one(10):
		m.pool.Closed(c, pick(m, []error{errorOf["closed"], errorOf["reset"], errorOf["garbage"], errors.New("new")}), m.now)
	case c.http2 && m.one(4):
		m.pool.Allow(c, m.dice.IntN(4), m.now)
	case c.http2 && m.one(6):
		m.pool.Leaving(c, m.now)
	case len(c.attempts) > 0:
		m.progress(c, pick(m, c.attempts))
	}
}

// progress lets something come of a request.
func (m *mob) progress(c *Conn, one *Attempt) {
	switch {
	case m.one(4):
		m.part(c, one, 200, m.dice.Int64N(100))
	case c.http2 && m.one(4):
		m.pool.Refused(c, one, m.now)
	case c.http2 && m.one(6):
		m.pool.Failed(c, one, record.BadResponse, m.now)
	default:
		m.answered(c, one, pick(m, []string{"200", "304", "500", "v1", "close"}))
	}
}

// late tells what was on its way when a connection was closed, which changes nothing.
func (m *mob) late(c *Conn, one *Attempt) {
	m.heard = nil
	m.pool.Opened(c, m.one(2), 1, 1, m.now)
	m.pool.OpenFailed(c, 1, 1, errorOf["refused"], m.now)
	m.pool.Answered(c, one, &c.Link.(*pipe).answer, m.now)
	m.pool.Failed(c, one, record.BadResponse, m.now)
	m.pool.Refused(c, one, m.now)
	m.pool.Closed(c, errorOf["closed"], m.now)
	m.pool.Allow(c, 3, m.now)
	m.pool.Leaving(c, m.now)
	if m.heard != nil {
		m.t.Errorf("what came late for a closed connection led to %q", m.heard)
	}
}

// end ends a pool in one of the three ways.
func (m *mob) end(how int) {
	m.ended = true
	switch how {
	case 1:
		m.pool.Stop()
	case 2:
		m.abort()
		m.pool.GiveUp(m.now)
		if !m.pool.IsOver() {
			m.t.Error("given up, and not over")
		}
	}
	m.check()
	for steps := 0; !m.pool.IsOver(); steps++ {
		if steps > 1000 {
			m.t.Fatal("it does not come to its end")
		}
		m.until(m.now + m.dice.Int64N(m.pool.Timeout.Nanoseconds()))
		m.happen(pick(m, m.conns))
	}
	m.finish()
	m.all = append(m.all, m.heard...)
}

// Every request is recorded, skipped or unsent, once; and a pool that is over keeps nothing.
func TestAPoolLosesNothing(t *testing.T) {
	heard := ""
	for seed := range 300 {
		dice := rand.New(rand.NewPCG(uint64(seed), 1))
		bounds := Bounds{
			IdleTimeout:    time.Duration(1+dice.IntN(3000)) * time.Millisecond,
			MaxConnections: 1 + dice.IntN(6), MaxQueued: dice.IntN(12), PerClient: 1 + dice.IntN(3),
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			m := &mob{scene: newScene(t, bounds, seed%2 == 0), dice: dice}
			for range 300 {
				m.step()
			}
			m.end(seed % 3)
			heard += strings.Join(m.all, "\n") + "\n"
		})
	}
	for _, word := range []string{
		"again", "cancel", "if not v1", "queued", SkipCap, "unsendable_h2",
		"ok", "timeout", "connect_refused", "reset", "closed_early", "bad_response", "h2_refused", "aborted", "other",
	} {
		if !slices.Contains(strings.Fields(strings.ReplaceAll(heard, "if not v1", "v1 if not v1")), strings.Fields(word)[0]) {
			t.Errorf("nothing led to %q", word)
		}
	}
}
