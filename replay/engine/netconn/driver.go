// Package netconn drives a life over Go's connections, with a goroutine for each: for TLS and HTTP/2, and for systems
// without event loops.
package netconn

import (
	"context"
	"runtime"
	"sync"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/punctual"
)

// Driver drives one life. All that happens to it happens under one lock; what it asks for is done after that, by
// whoever held the lock.
type Driver struct {
	*exchange.Session
	resume  *sessions
	sleep   punctual.Sleeper
	mu      sync.Mutex
	life    *exchange.Life
	links   map[*link]struct{}
	todo    []action
	untilNS int64 // until when the schedule sleeps
}

// action is something that a life asked for.
type action struct {
	kind actionKind
	link *link
	shot *exchange.Shot
}

type actionKind uint8

const (
	open actionKind = iota
	send
	cancel
)

// New returns a driver for the requests of a plan.
func New(session *exchange.Session, bounds exchange.Bounds, plan exchange.Plan) *Driver {
	d := &Driver{
		Session: session, resume: newSessions(session.Target.Resume), sleep: punctual.NewSleeper(session.Clock.Now), links: map[*link]struct{}{},
	}
	d.life = exchange.NewLife(session, bounds, plan, d)
	return d
}

// Wake makes the driver look at its plan again. Any goroutine may call it, also after the run.
func (d *Driver) Wake() { d.sleep.Wake() }

// Unsent returns how many requests were submitted and not sent, since the driver was stopped.
func (d *Driver) Unsent() uint64 { return d.life.Unsent() }

// Run sends what the plan has until that has ended and all answers are there. When stop ends nothing more is sent; when
// the session's Abort does, nothing more is waited for.
func (d *Driver) Run(stop context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if !d.Unhurried {
		nice, restore := punctual.Thread(d.Target.Local)
		defer restore()
		d.Nice.Store(int64(nice))
	}
	defer d.sleep.Close()
	defer context.AfterFunc(stop, d.Wake)()
	defer context.AfterFunc(d.Abort, d.Wake)()
	for {
		d.mu.Lock()
		if stop.Err() != nil {
			d.life.Stop()
		}
		if d.Abort.Err() != nil {
			d.life.GiveUp(d.Clock.Now())
		}
		again := d.turn()
		d.untilNS = again
		over := d.life.IsOver()
		todo := d.taken()
		d.mu.Unlock()
		d.do(todo)
		if over {
			break
		}
		d.sleep.Until(again)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.links {
		l.close()
	}
}

// tell lets something happen to the life, and does what it then asks for.
func (d *Driver) tell(what func(life *exchange.Life, now int64)) {
	d.mu.Lock()
	what(d.life, d.Clock.Now())
	again := d.turn()
	wake := again < d.untilNS || d.life.IsOver()
	todo := d.taken()
	d.mu.Unlock()
	d.do(todo)
	if wake {
		d.sleep.Wake()
	}
}

// turn lets the life send what is due. It returns when there is something to do again.
func (d *Driver) turn() int64 {
	for {
		now := d.Clock.Now()
		if again := d.life.Turn(now); again > now {
			return again
		}
	}
}

func (d *Driver) taken() []action {
	todo := d.todo
	d.todo = nil
	return todo
}

func (d *Driver) do(todo []action) {
	for _, a := range todo {
		switch a.kind {
		case open:
			go a.link.run(a.shot)
		case send:
			a.link.side.send(a.shot)
		case cancel:
			a.link.side.cancel(a.shot)
		}
	}
}

// Open has a connection opened.
func (d *Driver) Open(c *exchange.Conn, s *exchange.Shot) {
	l := newLink(d, c)
	d.links[l] = struct{}{}
	c.Link = l
	d.todo = append(d.todo, action{open, l, s})
}

// Send has a request written.
func (d *Driver) Send(c *exchange.Conn, s *exchange.Shot) {
	d.todo = append(d.todo, action{send, c.Link.(*link), s})
}

// Cancel has a stream of HTTP/2 ended.
func (d *Driver) Cancel(c *exchange.Conn, s *exchange.Shot) {
	d.todo = append(d.todo, action{cancel, c.Link.(*link), s})
}

// Close closes a connection, or ends the attempt to open it.
func (d *Driver) Close(c *exchange.Conn) {
	l := c.Link.(*link)
	delete(d.links, l)
	l.close()
}

// Came returns what has come of an answer.
func (d *Driver) Came(c *exchange.Conn, s *exchange.Shot) exchange.Partial {
	return c.Link.(*link).side.came(s)
}
