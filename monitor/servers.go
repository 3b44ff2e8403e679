package monitor

import (
	"net/netip"
	"sync"
	"sync/atomic"
)

// servers is what the probes of one watch tell each other of the service's
// servers: which of them are on this machine, and what they report unasked.
type servers struct {
	mu     sync.Mutex
	places []*place
	known  map[identity]*report
}

// A place is an address on this machine where a server listens.
type place struct {
	addr  netip.AddrPort
	state atomic.Int32 // set by the probe of this machine
	found []*entry     // that probe's own
	next  int          // look at which it searches again
}

// What is known of the processes at a place.
const (
	placeNew    = iota // the probe has not looked yet
	placeSeen          // they are watched
	placeHidden        // they cannot be: a container's, another user's
)

// place returns the place at addr, which it makes if it is new.
func (s *servers) place(addr netip.AddrPort) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.places {
		if p.addr.Port() == addr.Port() && (p.addr.Addr() == addr.Addr() || p.addr.Addr().IsUnspecified()) {
			return p
		}
	}
	p := &place{addr: addr}
	if len(s.places) < 2*mostServers {
		s.places = append(s.places, p)
	}
	return p
}

// here returns the places known so far.
func (s *servers) here() []*place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[:len(s.places):len(s.places)]
}

// A report is what a server told of itself without being asked.
type report struct {
	asked bool // by a probe, which takes what is reported, too
	last  *statistics
	at    moment
}

// mostReports bounds the servers that may report.
const mostReports = 4096

func (s *servers) report(id identity) *report {
	r := s.known[id]
	if r == nil && len(s.known) < mostReports {
		if s.known == nil {
			s.known = map[identity]*report{}
		}
		r = &report{}
		s.known[id] = r
	}
	return r
}

// reported keeps what a server told at a moment and says whether a probe
// takes it.
func (s *servers) reported(now *statistics, at moment) (taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report(now.identity())
	if r == nil {
		return false
	}
	r.last, r.at = now, at
	return r.asked
}

// ask returns what the server with this identity reported last, nil if it
// never did. From then on its reports are the asking probe's.
func (s *servers) ask(id identity) (*statistics, moment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report(id)
	if r == nil {
		return nil, moment{}
	}
	r.asked = true
	return r.last, r.at
}

// leave says that the probe does not ask the server any more.
func (s *servers) leave(id identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.known[id]; r != nil {
		r.asked = false
	}
}
