package netconn

import (
	"crypto/tls"
	"strconv"

	"plimsoll/replay/engine/exchange"
)

// mostSessions bounds the memory; past it the session that was used longest ago is forgotten.
const mostSessions = 1 << 16

// sessions keeps the TLS sessions of all clients, so that each resumes its own as browsers do.
type sessions struct {
	all tls.ClientSessionCache // nil: nobody resumes
}

func newSessions(resume bool) *sessions {
	if !resume {
		return &sessions{}
	}
	return &sessions{tls.NewLRUClientSessionCache(mostSessions)}
}

// of returns the sessions of one client.
func (s *sessions) of(key exchange.Key) tls.ClientSessionCache {
	if s.all == nil {
		return nil
	}
	return clientSessions{s.all, strconv.FormatUint(uint64(key.Client), 36) + " "}
}

// clientSessions is one client's part of a cache.
type clientSessions struct {
	all    tls.ClientSessionCache
	prefix string
}

// Get returns a session for a host.
func (c clientSessions) Get(host string) (*tls.ClientSessionState, bool) {
	return c.all.Get(c.prefix + host)
}

// Put keeps a session for a host.
func (c clientSessions) Put(host string, state *tls.ClientSessionState) {
	c.all.Put(c.prefix+host, state)
}
