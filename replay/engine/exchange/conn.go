package exchange

// Conn is one connection, as a life sees it.
type Conn struct {
	Link any // the transport's own side of it

	client *client
	shots  []*Shot // under way; over HTTP/1.x at most one
	room   int     // requests that it may have under way; 0 until it is open, and once it accepts none
	served int     // requests that were sent on it

	http2, leaving, idle, closed bool

	idleSinceNS int64
	links[Conn] // idle
}

func (c *Conn) chain() *links[Conn] { return &c.links }

func (c *Conn) sinceNS() int64 { return c.idleSinceNS }

// Client returns whose connection it is.
func (c *Conn) Client() Key { return c.client.key }

func (c *Conn) isOpening() bool { return c.served == 0 }

// client is the state of one client's connections to one host.
type client struct {
	key     Key
	conns   []*Conn // open or being opened
	idle    []*Conn
	queue   []*Shot // waiting for a connection, in order
	starved bool    // waits for the cap, with fewer connections than it may have
}

// free returns a connection that can take a request; nil when there is none.
func (cl *client) free() *Conn {
	if n := len(cl.idle); n > 0 && cl.idle[n-1].room > 0 {
		return cl.idle[n-1]
	}
	for _, c := range cl.conns {
		if len(c.shots) < c.room {
			return c
		}
	}
	return nil
}

// IsIdle reports whether nothing is under way on it.
func (c *Conn) IsIdle() bool { return len(c.shots) == 0 }
