package monitor

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
)

// servers has the information on the service's servers that the probes of one watch share: the
// servers on this machine, and the reports that servers send by themselves.
type servers struct {
	mu     sync.Mutex
	places []*place
	// host:port of the servers that clients named and that the service lists. Its value is true for
	// servers with a probe.
	known   map[string]bool
	reports map[identity]*report
}

// A place is an address on this machine where a server listens.
type place struct {
	addr  netip.AddrPort
	state atomic.Int32 // set by the probe of this machine
	found []*entry     // that probe's own
	next  int          // look at which it searches again
}

// States of the search for the processes at a place.
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

// isNew notes a server, and reports whether it is new, or with asked, whether it has no probe yet.
// full reports that there are too many.
func (s *servers) isNew(server string, asked bool) (isNew, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.known[server]
	if known && (was || !asked) {
		return false, false
	}
	if !known && len(s.known) == mostServers {
		return false, true
	}
	if s.known == nil {
		s.known = map[string]bool{}
	}
	s.known[server] = asked
	return true, false
}

// here returns the places known so far.
func (s *servers) here() []*place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[:len(s.places):len(s.places)]
}

// A report has the statistics that a server sent by itself.
type report struct {
	asked bool // a probe requests it, and uses such reports as well
	last  *statistics
	at    moment
}

// mostReports bounds the servers that may report.
const mostReports = 4096

func (s *servers) report(id identity) *report {
	r := s.reports[id]
	if r == nil && len(s.reports) < mostReports {
		if s.reports == nil {
			s.reports = map[identity]*report{}
		}
		r = &report{}
		s.reports[id] = r
	}
	return r
}

// reported stores a server's report of one moment and reports whether a probe uses it.
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

// ask returns the last report of the server with this identity, nil if there is no report. From
// then on its reports are the asking probe's.
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

// leave records that the probe does not poll the server any more.
func (s *servers) leave(id identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.reports[id]; r != nil {
		r.asked = false
	}
}

const (
	searchAgain = 2  // looks until a service that has ended is searched for again
	hiddenAgain = 30 // samples until the next search for processes that are hidden
)

// discover finds the processes that listen at the target and at its other servers, whenever all
// processes found before have ended, so that a restarted service is watched again.
func (l *local) discover() (said []string) {
	changed := false
	for _, p := range l.servers.here() {
		if l.table.look < p.next || slices.ContainsFunc(p.found, l.runs) {
			continue
		}
		found, err := l.search(p)
		if err != nil {
			said = append(said, fmt.Sprintf("the service's processes are not watched: %v", err))
		}
		if len(found) > 0 {
			said = append(said, l.proxies(p)...)
			changed = true
		}
	}
	if !changed {
		return said
	}
	l.service.found, l.service.programs = nil, nil
	for _, p := range l.servers.here() {
		l.service.found = append(l.service.found, p.found...)
	}
	if slices.ContainsFunc(l.service.found, func(e *entry) bool { return e.comm == "xrootd" }) {
		l.service.programs = []string{"cmsd"} // locates the files of a cluster; clients do not connect to it
	}
	if l.service.name == "" {
		l.service.name = l.service.found[0].comm
	}
	l.regroup(l.table.groups[0])
	return said
}

// runs reports whether a process that was found is still there.
func (l *local) runs(e *entry) bool { return !e.dead && l.table.known[e.pid] == e }

// search finds the processes that listen at p.
func (l *local) search(p *place) ([]*entry, error) {
	t, own := l.table, l.table.groups[0]
	p.next = t.look + searchAgain
	pids, err := l.fs.servers(p.addr.Addr(), int(p.addr.Port()))
	if errors.Is(err, errNoListener) {
		return nil, nil // not up yet, or down
	}
	if err != nil {
		p.next = t.look + hiddenAgain
		p.state.Store(placeHidden)
		return nil, err
	}
	var found []*entry
	for _, pid := range pids {
		e := t.known[pid]
		if e == nil {
			return nil, nil // it began after the look: the next search finds it
		}
		if (e.group == nil || e.group == own || e.group == l.service) && !own.matches(e) {
			found = append(found, e)
		}
	}
	p.found = found
	p.state.Store(placeSeen)
	if len(found) == 0 {
		p.next = t.look + hiddenAgain // watched by another rule already
	}
	return found, nil
}

// regroup finds the groups of all processes again. A service that this process started was taken for a part of it
// until now.
func (l *local) regroup(own *group) {
	for e := range own.family.live {
		if !own.matches(e) {
			l.table.release(e)
		}
	}
	for _, e := range l.table.known {
		l.table.classify(e)
	}
}

// proxies warns of programs that only pass connections on.
func (l *local) proxies(p *place) []string {
	for _, e := range p.found {
		switch e.comm {
		case "docker-proxy", "rootlessport", "rootlesskit", "conmon", "slirp4netns", "pasta":
			p.state.Store(placeHidden)
			return []string{fmt.Sprintf("port %d is held by %s: the service itself runs in a container and is not watched; "+
				"name its processes in hosts", p.addr.Port(), e.comm)}
		}
	}
	return nil
}
