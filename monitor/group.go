package monitor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// A group is the processes that are watched together under one name. The rules that are set add up.
type group struct {
	name       string
	role       Role
	follow     bool // descendants belong to it
	own        bool // of this process
	programs   []string
	pgrps      []int
	pids       []int
	bound      map[int]int64 // start of the processes that pids meant when they were first seen
	discovered bool          // by its listening socket
	found      []*entry      // what was discovered

	family *family
	blind  error // why the bytes of a member could not be read
	noted  map[string]bool
}

func newGroup(name string, role Role) *group {
	return &group{name: name, role: role, follow: true, family: newFamily(),
		bound: map[int]int64{}, noted: map[string]bool{}}
}

// wants reports whether a rule of the group names the process. This process is wanted by its own group only.
func (g *group) wants(e *entry) bool {
	if e.pid == os.Getpid() {
		return g.own
	}
	if slices.Contains(g.pids, e.pid) {
		start, ok := g.bound[e.pid]
		if !ok {
			g.bound[e.pid] = e.start
		}
		if !ok || start == e.start {
			return true
		}
	}
	return slices.Contains(g.pgrps, e.pgrp) || slices.Contains(g.found, e) ||
		slices.ContainsFunc(g.programs, func(name string) bool { return calledBy(name, e.comm, e.argv0, e.exe) })
}

// take returns what the group did since it was last asked.
func (g *group) take() Proc {
	u := g.family.advance()
	p := Proc{
		Name: g.name, Role: g.role,
		User: float64(u.user) / 1e6, System: float64(u.system) / 1e6,
		Read: u.read, Written: u.written,
	}
	var allowed coreSet
	known := true
	gone := u.user + u.system // CPU time of processes that ended in the span
	for e := range g.family.live {
		if e.dead {
			continue
		}
		p.Count++
		p.Threads += e.threads
		p.RSS += e.rss
		p.Files += e.files
		p.MeasuredThreads += e.busiest.measured
		p.BusiestThread = max(p.BusiestThread, float64(e.busiest.busiest)/1e6)
		p.UnmeasuredThread = max(p.UnmeasuredThread, float64(e.busiest.rest)/1e6)
		gone -= e.gain
		known = known && e.knowsAllowed
		allowed.join(&e.allowed)
	}
	if p.MeasuredThreads == 0 {
		return p
	}
	p.UnmeasuredThread = max(p.UnmeasuredThread, float64(gone)/1e6)
	if known {
		p.AllowedCores = allowed.Count()
	}
	return p
}

// alive reports whether a process of the group runs.
func (g *group) alive() bool {
	for e := range g.family.live {
		if !e.dead {
			return true
		}
	}
	return false
}

// complaints returns what has to be said of the group, each thing once.
func (g *group) complaints() []string {
	var out []string
	say := func(text string) {
		if !g.noted[text] {
			g.noted[text] = true
			out = append(out, text)
		}
	}
	if !g.own && !g.discovered && !g.alive() {
		say(fmt.Sprintf("no process of %s runs", g.name))
	}
	if g.blind != nil {
		if errors.Is(g.blind, fs.ErrPermission) {
			say(fmt.Sprintf("bytes read and written by %s are not counted: its processes belong to another user", g.name))
		} else if !errors.Is(g.blind, fs.ErrNotExist) && !errors.Is(g.blind, unix.ESRCH) {
			say(fmt.Sprintf("bytes read and written by %s: %v", g.name, g.blind))
		}
		g.blind = nil
	}
	return out
}

// ownCPU puts in what this process knows of itself to the microsecond. What children used is read first: a child that
// is waited for in between is then seen late, not twice.
func ownCPU(m *member, kids bool) {
	var ru unix.Rusage
	if kids && unix.Getrusage(unix.RUSAGE_CHILDREN, &ru) == nil {
		m.kids.user, m.kids.system = microseconds(ru.Utime), microseconds(ru.Stime)
	}
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) == nil {
		m.self.user, m.self.system = microseconds(ru.Utime), microseconds(ru.Stime)
	}
}

// microseconds converts what has other sizes on other systems.
func microseconds(t unix.Timeval) int64 { return int64(t.Sec)*1e6 + int64(t.Usec) }

// countFiles returns the number of open files of a process. Since Linux 6.2 its folder's size tells; before, the
// folder has to be read, which takes long where there are many, so then that is done every tenth look.
func (f *procFS) countFiles(pid, before, look int) int {
	path := f.ofPid(pid, "fd")
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	if f.real() && st.Size > 0 {
		return int(st.Size)
	}
	if before > 500 && look%10 != 0 {
		return before
	}
	dir, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	return len(names)
}

// A family sums up what a group of processes used since it is watched. Its sum keeps what processes used that ended,
// and counts nothing twice although the kernel adds what a child used to the parent that waits for it.
type family struct {
	live    map[*entry]*member
	retired usage // of members that ended and whose parent is no member
	highest usage // the largest sum so far: what was reported already
}

// A member is one process of a family. CPU time stands apart for itself and for the children that it waited for; its
// bytes include theirs, because the kernel keeps them so.
type member struct {
	base, baseKids usage // what it had used when it joined
	self, kids     usage // as last read
	claims         usage // what members that were its children used until they were last seen
	debit          usage // what will come to it from children but is not of this span or family
}

func newFamily() *family { return &family{live: map[*entry]*member{}} }

// used is what m itself used and its children that are gone. A child that was a member and that was not waited for is
// in claims only; a child that lived and died between two looks is in kids only.
func (m *member) used() usage {
	fromKids := m.kids.minus(m.baseKids).minus(m.debit).most(m.claims)
	own := m.self.minus(m.base)
	return usage{
		user:    own.user + max(0, fromKids.user),
		system:  own.system + max(0, fromKids.system),
		read:    max(0, own.read-m.debit.read) + m.claims.read,
		written: max(0, own.written-m.debit.written) + m.claims.written,
	}
}

// history is what the kernel has in m's counters that is not of this span.
func (m *member) history() usage { return m.base.plus(m.baseKids).plus(m.debit) }

// leave removes an ended process. The parent gets its inheritance if the parent is a member as well; waits says whether
// the parent waits for children, so that the kernel adds their bytes to the parent's.
func (f *family) leave(e *entry, parent *member, waits bool) {
	m := f.live[e]
	delete(f.live, e)
	if parent == nil {
		f.retired = f.retired.plus(m.used())
		return
	}
	used, history := m.used(), m.history()
	if waits {
		parent.debit.read += history.read
		parent.debit.written += history.written
		// The rest is in the parent's own now.
		used.read, used.written = m.claims.read, m.claims.written
	}
	parent.debit.user += history.user
	parent.debit.system += history.system
	parent.claims = parent.claims.plus(used)
}

// disown tells a member that what the process m of another family used will be added to it by the kernel although it
// is not its own.
func (m *member) disown(other *member) {
	m.debit = m.debit.plus(other.self).plus(other.kids)
}

// advance returns how far the sum rose above what was reported before. A sum that fell, by a process that changed between
// two reads of one look, is compensated later and never reported as a negative number.
func (f *family) advance() usage {
	sum := f.retired
	for _, m := range f.live {
		sum = sum.plus(m.used())
	}
	risen := sum.minus(f.highest).most(usage{})
	f.highest = f.highest.most(sum)
	return risen
}
