package monitor

import (
	"errors"
	"fmt"
)

const (
	searchAgain = 2  // looks until a service that is gone is searched for again
	hiddenAgain = 30 // looks until one that cannot be seen is
)

// discover finds the processes that listen where the target is, whenever none
// of those found before runs, so that a service that was started again is
// watched again.
func (l *local) discover() []string {
	t := l.table
	if l.service == nil || t.look < l.next || l.service.alive() {
		return nil
	}
	l.next = t.look + searchAgain
	pids, err := l.fs.servers(l.target.Addr(), int(l.target.Port()))
	if errors.Is(err, ErrNoListener) {
		return nil // not up yet, or down
	}
	if err != nil {
		l.next = t.look + hiddenAgain
		return []string{fmt.Sprintf("the service's processes are not watched: %v", err)}
	}
	l.service.found = nil
	own := t.groups[0]
	for _, pid := range pids {
		e := t.known[pid]
		if e == nil {
			return nil // it came since the look; the next search sees it
		}
		if (e.group == nil || e.group == own) && !own.wants(e) {
			l.service.found = append(l.service.found, e)
		}
	}
	if len(l.service.found) == 0 {
		l.next = t.look + hiddenAgain // watched by another rule already
		return nil
	}
	if l.service.name == "" {
		l.service.name = l.service.found[0].comm
	}
	l.regroup(own)
	return l.proxies()
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
func (l *local) proxies() []string {
	for _, e := range l.service.found {
		switch e.comm {
		case "docker-proxy", "rootlessport", "rootlesskit", "conmon", "slirp4netns", "pasta":
			return []string{fmt.Sprintf("port %d is held by %s: the service itself runs in a container and is not watched; "+
				"name its processes in hosts", l.target.Port(), e.comm)}
		}
	}
	return nil
}
