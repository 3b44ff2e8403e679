package monitor

import (
	"math"
	"strings"
)

// counters has the counters of a host at one moment. Two of them make a sample. Lists are empty and
// has* false if the host does not report the counter; not* is true if its value was not a number.
type counters struct {
	at        moment
	clock     float64 // the host's own wall clock in seconds; 0 unknown
	cores     []coreTime
	waits     float64 // seconds in which something waited for a core, since boot
	hasWaits  bool
	quota     *Quota // nil: no quota
	load      float64
	memory    Memory
	hasMemory bool
	notMemory bool
	disks     []diskCount
	nets      []netCount
	tcp       TCP // counted since boot, Established now
	hasTCP    bool
	notTCP    bool
	pastQuota past
	pastTCP   past
}

// A coreTime is the CPU time of one core since boot, in seconds.
type coreTime struct {
	id     int
	mode   CPU
	broken bool // a mode is not a number
}

// A diskCount has the counters of one block device since boot.
type diskCount struct {
	name        string
	read, write int64   // bytes
	ops         int64   // requests completed
	busy        float64 // seconds with a request in service
	queue       float64 // seconds that requests waited or were in service, summed
	broken      bool    // a counter is not a number
	past        past
}

// A netCount has the counters of one interface since it was created.
type netCount struct {
	name                  string
	received, sent        int64
	packetsIn, packetsOut int64
	drops                 int64
	speed                 float64
	broken                bool // a counter is not a number
	past                  past
	faster                int // looks in a row that found it faster than its speed
}

// reset empties c and keeps its memory.
func (c *counters) reset() {
	*c = counters{cores: c.cores[:0], disks: c.disks[:0], nets: c.nets[:0]}
}

// since returns the sample of the time between p and c. Devices with implausible counters are left
// out.
func (c *counters) since(p *counters) *Sample {
	seconds := c.secondsSince(p)
	s := &Sample{Time: c.at.wall, Seconds: seconds, Cores: len(c.cores), Load: c.load}
	s.cpuSince(c.cores, p.cores)
	if c.hasWaits && p.hasWaits && seconds > 0 {
		r := rises{seconds: seconds}
		if waits := rose(&r, c.waits, p.waits, mostTime); !r.leftOut(s, LeftOutWaits) {
			s.Waits = new(min(share(waits, seconds), 1))
		}
	}
	c.pastQuota = c.quota.since(p.quota, p.pastQuota, s)
	if m := c.memory; c.notMemory || c.hasMemory && (m.Available > m.Total || m.Total > mostMemory) {
		s.LeftOut = append(s.LeftOut, LeftOutMemory)
	} else if c.hasMemory {
		s.Memory = &m
	}
	s.disksSince(c.disks, p.disks)
	s.netsSince(c.nets, p.nets)
	if c.hasTCP && p.hasTCP {
		r := p.pastTCP.rises(seconds, c.notTCP || p.notTCP || c.tcp.Established > mostConnections)
		t := &TCP{
			Retransmits: rose(&r, c.tcp.Retransmits, p.tcp.Retransmits, mostEvents),
			Established: c.tcp.Established,
			ListenDrops: rose(&r, c.tcp.ListenDrops, p.tcp.ListenDrops, mostEvents),
		}
		if c.pastTCP = r.past(); !r.leftOut(s, LeftOutTCP) {
			s.TCP = t
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

// cpuSince sets the shares of all cores together and the busy share of each; nil if nothing was
// counted.
func (s *Sample) cpuSince(now, before []coreTime) {
	if len(now) == 0 {
		return
	}
	var sum CPU
	core := make([]float64, len(now))
	for i := range now {
		was := findNear(before, i, func(c *coreTime) bool { return c.id == now[i].id })
		if was == nil {
			continue
		}
		d, ok := modesSince(&now[i].mode, &was.mode)
		t := total(&d)
		if !ok || now[i].broken || was.broken || s.Seconds > 0 && t > mostTime*(s.Seconds+1) {
			s.LeftOut = append(s.LeftOut, LeftOutCPU)
			return
		}
		if t > 0 {
			core[i] = share(d.Busy(), t)
		}
		for i, mode := range sum.modes() {
			*mode += *d.modes()[i]
		}
	}
	t := total(&sum)
	if t <= 0 {
		return
	}
	for _, mode := range sum.modes() {
		*mode = share(*mode, t)
	}
	s.CPU, s.Core = &sum, core
}

// share rounds to a millionth: ticks tell no more, and files get shorter.
func share(part, whole float64) float64 { return math.Round(part/whole*1e6) / 1e6 }

// findNear returns the element for which is returns true, first searched near the index likely. It
// returns nil if there is no such element.
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

// littleBack is the largest decrease in seconds of iowait and idle that Linux may show.
const littleBack = 3.0

// modesSince returns the time in each mode. ok is false if one fell that cannot.
func modesSince(now, before *CPU) (d CPU, ok bool) {
	d, ok = *now, true
	for i, mode := range d.modes() {
		grew := *mode - *before.modes()[i]
		if grew < 0 && (mode != &d.IOWait && mode != &d.Idle || grew < -littleBack) {
			ok = false
		}
		*mode = max(0, grew)
	}
	return d, ok
}

func total(c *CPU) float64 { return c.Busy() + c.IOWait + c.Idle }

// wrap is the value in seconds at which the kernel's counters of milliseconds of a disk start again
// at zero.
const wrap = (1 << 32) / 1000.0

func (s *Sample) disksSince(now, before []diskCount) {
	for i := range now {
		d := &now[i]
		was := findDisk(before, d.name, i)
		if was == nil || s.Seconds <= 0 {
			continue
		}
		if d.past = was.past; isLoop(d.name) && d.ops == was.ops && d.queue == was.queue {
			continue // an image that is mounted and not used, of which some machines have dozens
		}
		r := was.past.rises(s.Seconds, d.broken || was.broken)
		disk := Disk{
			Name:  d.name,
			Read:  math.Round(float64(rose(&r, d.read, was.read, mostBytes)) / s.Seconds),
			Write: math.Round(float64(rose(&r, d.write, was.write, mostBytes)) / s.Seconds),
			Ops:   share(float64(rose(&r, d.ops, was.ops, mostEvents)), s.Seconds),
			Queue: share(roseWrapped(&r, d.queue, was.queue, mostQueue), s.Seconds),
			Busy:  min(1, share(roseWrapped(&r, d.busy, was.busy, mostBusy), s.Seconds)),
		}
		if d.past = r.past(); !r.leftOut(s, LeftOutDisk+d.name) {
			s.Disks = append(s.Disks, disk)
		}
	}
}

// roseWrapped works like rose, for a counter that starts again at wrap.
func roseWrapped(r *rises, now, before, most float64) float64 {
	if now < before && now+wrap-before <= most*(r.seconds+1) {
		now += wrap
	}
	return rose(r, now, before, most)
}

// If a device is found faster than its speed in this number of consecutive samples, the speed is
// wrong: virtual devices report arbitrary speeds.
const fasterThanSpeed = 3

// netsSince leaves out interfaces that never carried a byte.
func (s *Sample) netsSince(now, before []netCount) {
	for i := range now {
		n := &now[i]
		was := findNet(before, n.name, i)
		if was == nil || n.received+n.sent+was.received+was.sent == 0 && was.past == nil && !n.broken {
			continue
		}
		n.faster = was.faster
		if n.faster >= fasterThanSpeed {
			n.speed = 0
		}
		r := was.past.rises(s.Seconds, n.broken || was.broken)
		net := Net{
			Name:       n.name,
			Received:   rose(&r, n.received, was.received, mostBytes),
			Sent:       rose(&r, n.sent, was.sent, mostBytes),
			PacketsIn:  rose(&r, n.packetsIn, was.packetsIn, mostEvents),
			PacketsOut: rose(&r, n.packetsOut, was.packetsOut, mostEvents),
			Drops:      rose(&r, n.drops, was.drops, mostEvents),
			Speed:      n.speed,
		}
		// a driver may update its counters once a second, so that a sample covers two of its
		// seconds
		if n.speed > 0 && 8*float64(max(net.Received, net.Sent)) > speedMargin*n.speed*(s.Seconds+1) {
			r.wrong = true
			n.faster++
		} else if n.faster < fasterThanSpeed {
			n.faster = 0
		}
		if n.past = r.past(); !r.leftOut(s, LeftOutNet+n.name) {
			s.Nets = append(s.Nets, net)
		}
	}
}

// realDisks removes, in place, the devices that are not disks of their own: memory, partitions,
// layers (device mapper, md) that repeat the traffic of the disks under them, and loop devices that
// were never used.
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
