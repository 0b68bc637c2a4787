package pool

// idleList holds the idle connections in the order in which they became idle. It is linked through the connections
// themselves: taking one out costs no search.
type idleList struct{ first, last *http1Conn }

func (l *idleList) oldest() *http1Conn { return l.first }

func (l *idleList) add(c *http1Conn) {
	c.older, c.newer = l.last, nil
	if l.last != nil {
		l.last.newer = c
	} else {
		l.first = c
	}
	l.last = c
}

func (l *idleList) remove(c *http1Conn) {
	if c.older == nil && c.newer == nil && l.first != c {
		return // not in the list
	}
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		l.first = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		l.last = c.older
	}
	c.older, c.newer = nil, nil
}
