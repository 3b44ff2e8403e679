package monitor

import (
	"math"
	"strings"
)

// counters is what a host has counted up to one moment. Two of them make a sample. Lists are empty and has* false
// where the host does not tell.
type counters struct {
	at        moment
	clock     float64 // the host's own wall clock in seconds; 0 unknown
	cores     []coreTime
	waits     float64 // seconds in which something waited for a core, since boot
	hasWaits  bool
	load      float64
	memory    Memory
	hasMemory bool
	disks     []diskCount
	nets      []netCount
	tcp       TCP // counted since boot, Established now
	hasTCP    bool
}

// A coreTime is the CPU time of one core since boot, in seconds.
type coreTime struct {
	id   int
	mode CPU
}

// A diskCount is what one block device did since boot.
type diskCount struct {
	name        string
	read, write int64   // bytes
	ops         int64   // requests completed
	busy        float64 // seconds with a request in service
	queue       float64 // seconds that requests waited or were in service, summed
}

// A netCount is what one interface did since it was made.
type netCount struct {
	name                  string
	received, sent        int64
	packetsIn, packetsOut int64
	drops                 int64
	speed                 float64
}

// reset empties c and keeps its memory.
func (c *counters) reset() {
	*c = counters{cores: c.cores[:0], disks: c.disks[:0], nets: c.nets[:0]}
}

// since returns what happened between the moments of p and c.
func (c *counters) since(p *counters) *Sample {
	seconds := c.secondsSince(p)
	s := &Sample{Time: c.at.wall, Seconds: seconds, Cores: len(c.cores), Load: c.load}
	s.CPU, s.Core = cpuSince(c.cores, p.cores)
	if c.hasWaits && p.hasWaits && seconds > 0 {
		waits := min(share(growth(c.waits, p.waits), seconds), 1)
		s.Waits = &waits
	}
	if c.hasMemory {
		m := c.memory
		s.Memory = &m
	}
	s.Disks = disksSince(c.disks, p.disks, seconds)
	s.Nets = netsSince(c.nets, p.nets)
	if c.hasTCP && p.hasTCP {
		s.TCP = &TCP{
			Retransmits: growth(c.tcp.Retransmits, p.tcp.Retransmits),
			Established: c.tcp.Established,
			ListenDrops: growth(c.tcp.ListenDrops, p.tcp.ListenDrops),
		}
	}
	return s
}

// secondsSince prefers the host's own clock, for a page may be slow to come; but not when that clock was set in
// between.
func (c *counters) secondsSince(p *counters) float64 {
	here := (c.at.mono - p.at.mono).Seconds()
	if c.clock == 0 || p.clock == 0 {
		return here
	}
	if there := c.clock - p.clock; there > 0 && math.Abs(there-here) <= 0.5+here/2 {
		return there
	}
	return here
}

// growth is how much a counter grew. One that fell was started anew in between, with its host, process or interface,
// and what it shows now happened since.
func growth[N int64 | float64](now, before N) N {
	if now < before {
		return now
	}
	return now - before
}

// cpuSince returns the shares of all cores together and the busy share of each; nil where nothing was counted.
func cpuSince(now, before []coreTime) (*CPU, []float64) {
	if len(now) == 0 {
		return nil, nil
	}
	var sum CPU
	core := make([]float64, len(now))
	for i := range now {
		was := findNear(before, i, func(c *coreTime) bool { return c.id == now[i].id })
		if was == nil {
			continue
		}
		d := modesSince(&now[i].mode, &was.mode)
		if t := total(&d); t > 0 {
			core[i] = share(d.Busy(), t)
		}
		for i, mode := range sum.modes() {
			*mode += *d.modes()[i]
		}
	}
	t := total(&sum)
	if t <= 0 {
		return nil, nil
	}
	for _, mode := range sum.modes() {
		*mode = share(*mode, t)
	}
	return &sum, core
}

// share rounds to a millionth: ticks tell no more, and files get shorter.
func share(part, whole float64) float64 { return math.Round(part/whole*1e6) / 1e6 }

// findNear returns the element that is meant, first looked for where it is likely; nil if there is none.
func findNear[T any](list []T, likely int, is func(*T) bool) *T {
	if likely < len(list) && is(&list[likely]) {
		return &list[likely]
	}
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

func findDisk(list []diskCount, name string, likely int) *diskCount {
	return findNear(list, likely, func(d *diskCount) bool { return d.name == name })
}

func findNet(list []netCount, name string, likely int) *netCount {
	return findNear(list, likely, func(n *netCount) bool { return n.name == name })
}

// modes returns the places of all modes.
func (c *CPU) modes() [6]*float64 {
	return [...]*float64{&c.User, &c.System, &c.IRQ, &c.IOWait, &c.Steal, &c.Idle}
}

// modesSince differs from growth in each mode: Linux lets iowait and idle fall a little at times, which is no restart.
func modesSince(now, before *CPU) CPU {
	d := *now
	if total(now) < total(before)/2 {
		return d
	}
	for i, mode := range d.modes() {
		*mode = max(0, *mode-*before.modes()[i])
	}
	return d
}

func total(c *CPU) float64 { return c.Busy() + c.IOWait + c.Idle }

// wrap is where the kernel's counters of milliseconds of a disk start again.
const wrap = (1 << 32) / 1000.0

func disksSince(now, before []diskCount, seconds float64) []Disk {
	var out []Disk
	for i := range now {
		d := &now[i]
		was := findDisk(before, d.name, i)
		if was == nil || seconds <= 0 {
			continue
		}
		if d.ops < was.ops || d.read < was.read || d.write < was.write {
			was = &diskCount{} // another device under the same name
		}
		if isLoop(d.name) && d.ops == was.ops && d.queue == was.queue {
			continue // an image that is mounted and not used, of which some machines have dozens
		}
		out = append(out, Disk{
			Name:  d.name,
			Read:  math.Round(float64(d.read-was.read) / seconds),
			Write: math.Round(float64(d.write-was.write) / seconds),
			Ops:   share(float64(d.ops-was.ops), seconds),
			Queue: share(wrapped(d.queue, was.queue), seconds),
			Busy:  min(1, share(wrapped(d.busy, was.busy), seconds)),
		})
	}
	return out
}

func wrapped(now, before float64) float64 {
	if d := now + wrap - before; now < before && d < wrap/2 {
		return d
	}
	return growth(now, before)
}

// netsSince leaves out interfaces that never carried a byte.
func netsSince(now, before []netCount) []Net {
	var out []Net
	for i := range now {
		n := &now[i]
		was := findNet(before, n.name, i)
		if was == nil || n.received+n.sent == 0 {
			continue
		}
		if n.received < was.received || n.sent < was.sent {
			was = &netCount{} // the interface was made anew
		}
		out = append(out, Net{
			Name:       n.name,
			Received:   n.received - was.received,
			Sent:       n.sent - was.sent,
			PacketsIn:  growth(n.packetsIn, was.packetsIn),
			PacketsOut: growth(n.packetsOut, was.packetsOut),
			Drops:      growth(n.drops, was.drops),
			Speed:      n.speed,
		})
	}
	return out
}

// realDisks drops, in place, what is no disk of its own: memory, partitions, layers (device mapper, md) that repeat
// what the disks under them do, and loop devices that were never used.
func realDisks(disks []diskCount) []diskCount {
	keep := disks[:0]
	for i := range disks {
		name := disks[i].name
		unused := isLoop(name) && disks[i].ops == 0
		if !unused && !isLayer(name) && !isPartition(disks, name) {
			keep = append(keep, disks[i])
		}
	}
	return keep
}

func isLoop(name string) bool { return strings.HasPrefix(name, "loop") }

func isLayer(name string) bool {
	for _, p := range [...]string{"ram", "zram", "fd", "sr", "dm-"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return strings.HasPrefix(name, "md") && len(name) > 2 && (isDigit(name[2]) || name[2] == '_')
}

// isPartition reports whether the disk that name would be a part of is listed: sda1 of sda, nvme0n1p2 of nvme0n1. A
// lone xvda1, as some clouds have it, is a disk.
func isPartition(disks []diskCount, name string) bool {
	whole := strings.TrimRight(name, "0123456789")
	if whole == name || whole == "" {
		return false
	}
	if n := len(whole); n > 1 && whole[n-1] == 'p' && isDigit(whole[n-2]) {
		whole = whole[:n-1]
	}
	return findDisk(disks, whole, 0) != nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
