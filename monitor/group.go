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
	found      []*entry      // the discovered processes

	family *family
	blind  error // why the bytes of a member could not be read
	noted  map[string]bool
}

func newGroup(name string, role Role) *group {
	return &group{name: name, role: role, follow: true, family: newFamily(),
		bound: map[int]int64{}, noted: map[string]bool{}}
}

// matches reports whether a rule of the group names the process. This process belongs only to its
// own group.
func (g *group) matches(e *entry) bool {
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

// take returns the group's usage since the last call.
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

// complaints returns the problems of the group, each problem once.
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

// ownCPU replaces this process's CPU time by its own measurement, which is exact to the
// microsecond. The CPU time of children is read first: a child that ends in between is then counted
// late, not twice.
func ownCPU(m *member, kids bool) {
	var ru unix.Rusage
	if kids && unix.Getrusage(unix.RUSAGE_CHILDREN, &ru) == nil {
		m.kids.user, m.kids.system = microseconds(ru.Utime), microseconds(ru.Stime)
	}
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) == nil {
		m.self.user, m.self.system = microseconds(ru.Utime), microseconds(ru.Stime)
	}
}

// microseconds converts a Timeval, whose fields differ in size between systems.
func microseconds(t unix.Timeval) int64 { return int64(t.Sec)*1e6 + int64(t.Usec) }

// countFiles returns the number of open files of a process. Since Linux 6.2 the size of its folder
// is that number; before, the folder has to be read, which takes long if it has many files, so then
// it is read at every tenth sample.
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

// A family sums up the usage of a group of processes since the watch began. Its sum keeps the usage
// of processes that ended, and counts no usage twice although the kernel adds a child's usage to a
// parent that waits for it.
type family struct {
	live    map[*entry]*member
	retired usage // of ended members whose parent is not a member
	highest usage // the largest sum so far, up to which usage has been reported
}

// A member is one process of a family. CPU time stands apart for itself and for the children that it waited for; its
// bytes include theirs, because the kernel keeps them so.
type member struct {
	base, baseKids usage // its usage when it joined
	self, kids     usage // as last read
	claims         usage // the usage, until they were last sampled, of its children that were members
	debit          usage // the usage that children will add to it but that does not belong to this span or family
}

func newFamily() *family { return &family{live: map[*entry]*member{}} }

// used returns the usage of m itself and of its ended children. A child that was a member and that
// was not waited for is in claims only; a child that began and ended between two samples is in kids
// only.
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

// history returns the part of m's kernel counters that does not belong to this span.
func (m *member) history() usage { return m.base.plus(m.baseKids).plus(m.debit) }

// leave removes an ended process. The parent gets its inheritance if the parent is a member as
// well; waits reports whether the parent waits for children, so that the kernel adds their bytes to
// the parent's bytes.
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

// disown records that the kernel will add the usage of the process m of another family to the
// member, although it does not belong to this family.
func (m *member) disown(other *member) {
	m.debit = m.debit.plus(other.self).plus(other.kids)
}

// advance returns the increase of the sum above the largest sum reported before. A decrease, caused
// by a process that changed between two reads of one sample, is compensated later and never
// reported as a negative number.
func (f *family) advance() usage {
	sum := f.retired
	for _, m := range f.live {
		sum = sum.plus(m.used())
	}
	risen := sum.minus(f.highest).most(usage{})
	f.highest = f.highest.most(sum)
	return risen
}
