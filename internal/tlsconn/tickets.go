package tlsconn

import (
	"crypto/tls"
	"errors"
	"os"
	"sync"
)

// maxSessions is the number of servers for which a Tickets keeps sessions.
const maxSessions = 64

// Tickets keeps the last TLS session with each of several servers, so that later connections can resume it. It is safe for
// concurrent use; its zero value is empty.
type Tickets struct {
	mu       sync.Mutex
	sessions map[string]session
}

// A session is the stored state of a TLS session.
type session struct {
	state  *tls.ClientSessionState
	master []byte // TLS 1.2: the master secret, which crypto/tls reports only in the first handshake
}

// For returns the Config.ClientSessionCache of one connection to a server, which is named as the caller likes. It returns nil
// if t is nil: nothing is resumed then.
func (t *Tickets) For(server string) tls.ClientSessionCache {
	if t == nil {
		return nil
	}
	return &sessionCache{tickets: t, server: server, secrets: &secrets{}}
}

// A sessionCache implements tls.ClientSessionCache for one connection.
type sessionCache struct {
	tickets *Tickets
	server  string
	secrets *secrets // of the connection
}

// Get returns the session to be resumed.
func (c *sessionCache) Get(string) (*tls.ClientSessionState, bool) {
	c.tickets.mu.Lock()
	defer c.tickets.mu.Unlock()
	s, ok := c.tickets.sessions[c.server]
	c.secrets.master = s.master
	return s.state, ok
}

// Put keeps a session; nil removes the stored session.
func (c *sessionCache) Put(_ string, state *tls.ClientSessionState) {
	t := c.tickets
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.sessions[c.server]; state == nil || !known && len(t.sessions) >= maxSessions {
		delete(t.sessions, c.server)
		return
	}
	if t.sessions == nil {
		t.sessions = make(map[string]session, 1)
	}
	t.sessions[c.server] = session{state, c.secrets.master}
}

// A ticketReader has crypto/tls read the tickets of TLS 1.3, which servers send after the
// handshake: only crypto/tls has the necessary secret. It is shown all records up to the first with
// payload.
type ticketReader struct {
	tls   *tls.Conn
	under *oneByOne
}

// read shows crypto/tls a record. It returns false if crypto/tls needs no more records.
func (r *ticketReader) read(record []byte) bool {
	r.under.record = record
	_, err := r.tls.Read(make([]byte, 1))
	return errors.Is(err, errNoRecord)
}

// errNoRecord is returned to crypto/tls after it has read a record: crypto/tls takes it for a
// temporary error.
var errNoRecord = os.ErrDeadlineExceeded
