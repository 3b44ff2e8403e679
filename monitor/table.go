package monitor

import "os"

// A table stores the known processes of this machine. Watched processes are read at every look; of
// the others, new processes and processes that used CPU at their last reading are read, and every
// process again from time to time, because a process can change its name and its group.
type table struct {
	fs     *procFS
	known  map[int]*entry
	pids   []int
	look   int
	groups []*group
	others int64 // CPU time of programs in no group in the last look, microseconds
	kernel int64 // of threads of the kernel
}

// An entry is a process that was seen.
type entry struct {
	pid, ppid, pgrp int
	start           int64
	comm            string
	argv0, exe      string
	since           int // the look that saw it first
	seen            int // the last look that saw it
	threads, files  int
	rss             int64
	dead            bool
	joined          bool  // it has been in a group before
	cpu             int64 // CPU time so far, microseconds
	used            int64 // of it since it was read before
	kernel          bool  // a thread of the kernel, no program
	gain            int64 // CPU time since the last look, microseconds; of a server's processes
	busiest         threadFigure
	tasks           *threadTable // nil: its threads were not read
	allowed         coreSet      // on which it may run
	knowsAllowed    bool
	group           *group
}

const (
	young = 5  // looks during which a process is read again each time
	often = 10 // looks after which any process is read again
)

func newTable(fs *procFS) *table { return &table{fs: fs, known: map[int]*entry{}} }

// update takes a look at all processes.
func (t *table) update() error {
	pids, err := t.fs.pids(t.pids)
	if err != nil {
		return err
	}
	t.pids = pids
	t.look++
	var fresh []*entry
	for _, pid := range pids {
		if e := t.visit(pid); e != nil {
			fresh = append(fresh, e)
		}
	}
	t.removeEnded()
	t.others, t.kernel = 0, 0
	for _, e := range fresh {
		t.classify(e)
		switch {
		case e.group != nil:
		case e.kernel:
			t.kernel += e.used
		default:
			t.others += e.used
		}
	}
	return nil
}

// visit reads a process if it is due and returns it if its group is to be found or found again.
func (t *table) visit(pid int) *entry {
	e := t.known[pid]
	if e != nil && e.group == nil && !t.due(e) {
		e.seen = t.look
		return nil
	}
	b, err := t.fs.readPid(pid, "stat")
	if err != nil {
		return nil // it ended meanwhile; removeEnded handles it
	}
	s, err := parseProcStat(b)
	if err != nil {
		return nil
	}
	if e != nil && e.start != s.start {
		t.end(e) // the same number, another process
		e = nil
	}
	if e == nil {
		e = &entry{pid: pid, start: s.start, since: t.look}
		t.known[pid] = e
	}
	e.seen = t.look
	e.ppid, e.pgrp, e.threads, e.rss, e.dead, e.kernel = s.ppid, s.pgrp, s.threads, s.rss, s.dead, s.kernel
	before := e.cpu
	e.cpu = s.self.user + s.self.system
	if e.used = e.cpu - before; e.since == t.look && t.look == 1 {
		e.used = 0 // of the time before the watch
	}
	if e.comm != string(s.comm) {
		e.comm = string(s.comm)
		e.argv0, e.exe = t.fs.programNames(pid)
	}
	if e.group == nil {
		return e
	}
	t.measure(e, &s)
	return nil
}

// due reports whether a process that is not watched is to be read again.
func (t *table) due(e *entry) bool {
	isYoung := t.look == e.since+1 || e.since > 1 && t.look-e.since < young
	return isYoung || e.used > 0 || (t.look+e.pid)%often == 0
}

// removeEnded ends the processes that this look did not see. Children are removed before their
// parents if the two ended together, or else the parent could not inherit.
func (t *table) removeEnded() {
	var gone []*entry
	for _, e := range t.known {
		if e.seen != t.look {
			gone = append(gone, e)
		}
	}
	for len(gone) > 0 {
		rest := gone[:0]
		for _, e := range gone {
			if t.hasEndingChild(e, gone) {
				rest = append(rest, e)
				continue
			}
			t.end(e)
		}
		if len(rest) == len(gone) { // a circle, by pids used again
			for _, e := range rest {
				t.end(e)
			}
			return
		}
		gone = rest
	}
}

// hasEndingChild reports whether a child of e is still to be ended.
func (t *table) hasEndingChild(e *entry, gone []*entry) bool {
	if e.group == nil {
		return false
	}
	for _, other := range gone {
		if other != e && other.group != nil && other.ppid == e.pid && t.known[other.pid] == other {
			return true
		}
	}
	return false
}

// end settles the usage of an ended process and removes it.
func (t *table) end(e *entry) {
	delete(t.known, e.pid)
	if e.group == nil {
		return
	}
	m := e.group.family.live[e]
	parent := t.known[e.ppid]
	if parent == nil || parent.group == nil {
		e.group.family.leave(e, nil, false)
		return
	}
	heir := parent.group.family.live[parent]
	if parent.group == e.group && parent.group.follow {
		e.group.family.leave(e, heir, !t.ignores(parent))
		return
	}
	if !t.ignores(parent) {
		heir.disown(m)
	}
	e.group.family.leave(e, nil, false)
}

// ignores reports whether a process lets the kernel forget its children.
func (t *table) ignores(parent *entry) bool {
	b, err := t.fs.readPid(parent.pid, "status")
	return err == nil && parseIgnored(b)
}

// classify finds the group of a process: its own by a rule, or else that of the nearest ancestor that has one.
func (t *table) classify(e *entry) {
	if e.group != nil {
		return
	}
	at := e
	for range 64 { // deeper than any honest tree
		if g := t.match(at); g != nil && (at == e || g.follow && at.pid != 1) {
			t.join(e, g)
			return
		}
		if at = t.known[at.ppid]; at == nil || at.pid == at.ppid {
			return
		}
	}
}

// match returns the group that a process is in, or should be in by a rule.
func (t *table) match(e *entry) *group {
	if e.group != nil {
		return e.group
	}
	for _, g := range t.groups {
		if g.matches(e) {
			return g
		}
	}
	return nil
}

// join makes e a member of g. Its earlier usage counts only if the watch detected its start.
func (t *table) join(e *entry, g *group) {
	b, err := t.fs.readPid(e.pid, "stat")
	if err != nil {
		return
	}
	s, err := parseProcStat(b)
	if err != nil || s.start != e.start {
		return
	}
	e.group = g
	m := &member{}
	g.family.live[e] = m
	t.measure(e, &s)
	if e.since == 1 || e.joined {
		m.base, m.baseKids = m.self, m.kids
		e.gain, e.busiest = 0, threadFigure{}
	}
}

// release removes a process from its group, which keeps the usage so far.
func (t *table) release(e *entry) {
	e.group.family.leave(e, nil, false)
	e.group, e.joined = nil, true
}

// measure adds the figures in s to a member, and reads its remaining figures.
func (t *table) measure(e *entry, s *procStat) {
	g := e.group
	m := g.family.live[e]
	io := usage{read: m.self.read, written: m.self.written}
	before := m.self.user + m.self.system
	m.self = s.self.plus(io)
	if g.follow {
		m.kids = s.kids
	}
	if g.own && e.pid == os.Getpid() && t.fs.real() {
		ownCPU(m, g.follow)
	}
	if e.dead {
		return // its files and bytes cannot be read any more
	}
	if g.role == RoleServer {
		cpu := m.self.user + m.self.system
		e.gain = max(0, cpu-before)
		e.busiest = t.threads(e, cpu, e.gain)
		if !e.knowsAllowed || (t.look+e.pid)%often == 0 {
			e.allowed, e.knowsAllowed = t.fs.allowedCores(e.pid)
		}
	}
	e.files = t.fs.countFiles(e.pid, e.files, t.look)
	b, err := t.fs.readPid(e.pid, "io")
	if err == nil {
		if m.self.read, m.self.written, err = parseProcIO(b); err == nil {
			return
		}
	}
	m.self.read, m.self.written = io.read, io.written
	g.blind = err
}
