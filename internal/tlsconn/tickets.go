package tlsconn

import (
	"crypto/tls"
	"errors"
	"os"
	"sync"
)

// maxSessions is of how many servers a Tickets keeps sessions.
const maxSessions = 64

// Tickets keeps the last TLS session with each of several servers, so that later connections can resume it. It is safe for
// concurrent use; its zero value is empty.
type Tickets struct {
	mu       sync.Mutex
	sessions map[string]session
}

// A session is what is known of a TLS session.
type session struct {
	state  *tls.ClientSessionState
	master []byte // TLS 1.2: the master secret, of which crypto/tls tells only in the first handshake
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

// Put keeps a session; nil removes the one that is there.
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

// A ticketReader has crypto/tls read the tickets of TLS 1.3, which servers send after the handshake: only crypto/tls knows
// the secret that they need. It is shown all records up to the first with payload.
type ticketReader struct {
	tls   *tls.Conn
	under *oneByOne
}

// read shows crypto/tls a record. It returns false if it wants no more.
func (r *ticketReader) read(record []byte) bool {
	r.under.record = record
	_, err := r.tls.Read(make([]byte, 1))
	return errors.Is(err, errNoRecord)
}

// errNoRecord is what crypto/tls gets when it has read a record: an error of those that it takes for temporary.
var errNoRecord = os.ErrDeadlineExceeded
