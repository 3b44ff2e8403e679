package monitor

import (
	"errors"
	"fmt"
	"slices"
)

const (
	searchAgain = 2  // looks until a service that is gone is searched for again
	hiddenAgain = 30 // looks until one that cannot be seen is
)

// discover finds the processes that listen where the target is and where its
// other servers are, whenever none of those found before runs, so that a
// service that was started again is watched again.
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
	l.service.found = nil
	for _, p := range l.servers.here() {
		l.service.found = append(l.service.found, p.found...)
	}
	if l.service.name == "" {
		l.service.name = l.service.found[0].comm
	}
	l.regroup(l.table.groups[0])
	return said
}

// runs tells whether a process that was found is still there.
func (l *local) runs(e *entry) bool { return !e.dead && l.table.known[e.pid] == e }

// search looks for those who listen at p.
func (l *local) search(p *place) ([]*entry, error) {
	t, own := l.table, l.table.groups[0]
	p.next = t.look + searchAgain
	pids, err := l.fs.servers(p.addr.Addr(), int(p.addr.Port()))
	if errors.Is(err, ErrNoListener) {
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
			return nil, nil // it came since the look; the next search sees it
		}
		if (e.group == nil || e.group == own || e.group == l.service) && !own.wants(e) {
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

// regroup finds the groups of all processes again. A service that this
// process started was taken for a part of it until now.
func (l *local) regroup(own *group) {
	for e := range own.family.live {
		if !own.wants(e) {
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
