package monitor

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// local is the probe of this machine.
type local struct {
	fs        *procFS
	clock     func() moment
	table     *table
	servers   *servers     // whose places on this machine are watched
	service   *group       // who listens there
	self      *group       // of this process
	with      func() []int // more of it
	onLook    func()       // called at the time of each sample
	scratch   func() string
	groups    []cpuGroup // of this process
	names     interned
	speeds    map[string]float64
	now, last *counters
	primed    bool
	noted     map[string]bool
}

func newLocal(h Host, o Options, targets []netip.AddrPort, clock func() moment) *local {
	f := newProcFS(o.proc, o.sys)
	l := &local{
		fs: f, clock: clock, table: newTable(f), servers: o.servers,
		speeds: map[string]float64{}, now: &counters{}, last: &counters{}, noted: map[string]bool{},
	}
	self := newGroup("weir", RoleClient)
	self.own, self.follow = true, o.Children
	l.table.groups = append([]*group{self}, configured(h)...)
	l.self, l.with, l.scratch, l.onLook = self, o.With, o.Scratch, o.Look
	for _, b := range o.backends {
		l.table.groups = append(l.table.groups, processesOf(b))
	}
	if len(o.Apart) > 0 {
		links := newGroup("links", RoleOther)
		links.pids, links.follow = o.Apart, false
		l.table.groups = append(l.table.groups, links)
	}
	if l.servers == nil {
		l.servers = &servers{}
	}
	for _, t := range targets {
		l.servers.place(t)
	}
	l.service = newGroup("", RoleServer)
	l.service.discovered = true
	l.table.groups = append(l.table.groups, l.service)
	return l
}

// configured returns the groups in a host's settings, the most exact rules first.
func configured(h Host) []*group {
	role := RoleServer // the named processes belong to the service, on the client's machine as well
	if h.Role == RoleOther {
		role = h.Role
	}
	var groups []*group
	for _, pid := range h.Pids {
		g := newGroup("pid "+strconv.Itoa(pid), role)
		g.pids = []int{pid}
		groups = append(groups, g)
	}
	for _, id := range h.Groups {
		g := newGroup("group "+strconv.Itoa(id), role)
		g.pgrps = []int{id}
		groups = append(groups, g)
	}
	for _, name := range h.Processes {
		g := newGroup(filepath.Base(name), role)
		g.programs = []string{g.name}
		groups = append(groups, g)
	}
	return groups
}

// processesOf returns the group of a backend's processes on this machine.
func processesOf(h Host) *group {
	g := newGroup(h.Name, RoleServer)
	g.pids, g.pgrps = h.Pids, h.Groups
	for _, name := range h.Processes {
		g.programs = append(g.programs, filepath.Base(name))
	}
	return g
}

func (l *local) close() { l.fs.close() }

// look takes a sample. The first call has no earlier counters and returns no sample. The error
// lists the values that could not be read; the sample is still valid unless all values are missing.
func (l *local) look(_ context.Context) (*Sample, error) {
	problems := l.count()
	if len(l.now.cores)+len(l.now.nets) == 0 && !l.now.hasMemory {
		l.now.reset()
		return nil, fmt.Errorf("this machine's %s: %s", l.fs.proc, strings.Join(problems, "; "))
	}
	if l.with != nil {
		l.self.pids = l.with()
	}
	if err := l.table.update(); err != nil {
		problems = append(problems, "processes: "+err.Error())
	}
	problems = append(problems, l.discover()...)
	var s *Sample
	if l.primed {
		s = l.now.since(l.last)
	}
	l.last, l.now, l.primed = l.now, l.last, true
	procs, said := l.procs()
	problems = append(problems, said...)
	if s != nil {
		if s.Procs = procs; l.scratch != nil {
			s.Scratch = l.scratch()
		}
		s.Others, s.Kernel = float64(l.table.others)/1e6, float64(l.table.kernel)/1e6
	}
	return s, l.news(problems)
}

// news returns the problems that were not reported yet.
func (l *local) news(problems []string) error {
	var fresh []string
	for _, p := range problems {
		if !l.noted[p] && len(l.noted) < 1000 {
			l.noted[p] = true
			fresh = append(fresh, p)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(fresh, "; "))
}

// count reads the host's counters and returns the problems.
func (l *local) count() (problems []string) {
	c := l.now
	c.reset()
	c.at = l.clock()
	if l.onLook != nil {
		l.onLook()
	}
	read := func(name string, parse func(b []byte) error) {
		b, err := l.fs.read(name)
		if err == nil {
			if err = parse(b); err != nil {
				err = fmt.Errorf("%s/%s: %w", l.fs.proc, name, err)
			}
		}
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	read("stat", func(b []byte) error { return parseCPU(b, c) })
	if b, err := l.fs.read("pressure/cpu"); err == nil { // missing in kernels before 4.20, and in some later kernels
		_ = parsePressure(b, c) // then it is not reported
	}
	if l.table.look%often == 0 {
		l.groups = cpuGroups(l.fs)
	}
	c.quota = quota(l.fs, l.groups)
	read("net/dev", func(b []byte) error { return parseNets(b, c, &l.names) })
	read("diskstats", func(b []byte) error { return parseDisks(b, c, &l.names) })
	read("loadavg", func(b []byte) error { return parseLoad(b, c) })
	read("meminfo", func(b []byte) error { return parseMemory(b, c) })
	tables := 0
	read("net/snmp", func(b []byte) (err error) {
		if c.tcp.Retransmits, err = parseTable(b, "Tcp:", "RetransSegs"); err == nil {
			c.tcp.Established, err = parseTable(b, "Tcp:", "CurrEstab")
			tables++
		}
		return err
	})
	read("net/netstat", func(b []byte) (err error) {
		c.tcp.ListenDrops, err = parseTable(b, "TcpExt:", "ListenDrops")
		tables++
		return err
	})
	c.hasTCP = tables == 2
	l.setSpeeds(c)
	return problems
}

// setSpeeds fills in the interfaces' speeds. A driver may respond slowly, so each is queried once a
// minute.
func (l *local) setSpeeds(c *counters) {
	if l.table.look%60 == 0 {
		clear(l.speeds)
	}
	for i := range c.nets {
		name := c.nets[i].name
		speed, ok := l.speeds[name]
		if !ok {
			mbit, good := number([]byte(l.fs.word(l.fs.sys + "/class/net/" + name + "/speed")))
			if good && mbit < 1<<30 { // some drivers report 4294967295 or -1 for unknown
				speed = float64(mbit) * 1e6
			}
			l.speeds[name] = speed
		}
		c.nets[i].speed = speed
	}
}

// procs returns one entry for each group that ever had a process.
func (l *local) procs() (procs []Proc, said []string) {
	for _, g := range l.table.groups {
		said = append(said, g.complaints()...)
		p := g.take()
		if g.name == "" || p.Count == 0 && p.User+p.System == 0 && p.Read+p.Written == 0 {
			continue
		}
		procs = append(procs, p)
	}
	return procs, said
}
