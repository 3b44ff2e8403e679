package validity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/monitor"
	"weir/storage"
)

// Bounds of the check that both ends agree on the bytes.
const (
	bytesOK   = 0.01
	bytesWarn = 0.05
	bytesFail = 0.10 // beyond this the result is invalid, however short the time that was compared
	leastLong = 3.0  // seconds that must have been compared before more than bytesWarn is a fault
)

// A count is what one source saw, and what the clients moved in the same time.
type count struct {
	source  string
	clients float64 // bytes: of the load, and of checks that read back what was written
	more    float64 // bytes that the source may count besides: of files that the server read again for a check
	less    float64 // bytes that it may not count: requests where only responses are counted, and the reverse
	edges   float64 // bytes of which it is not known whether they moved within the time that was compared
	there   float64
	seconds float64
	partial bool // it may see less than all: a process that uses other system calls
	shared  bool // it may see more than all: others use it
	sure    bool // of a process that has more than the clients: so has an interface
	of      source
	role    monitor.Role // of its host

	until time.Time // end of the last sample
	open  float64   // its part of edges, which is none if the next sample follows it
}

// off is by how much the source differs from the clients, as a share of their bytes, beyond what checks and the edges
// of the time compared explain.
func (c *count) off() float64 {
	less, more := c.there+c.edges+c.less-c.clients, c.there-c.edges-c.clients-c.more
	return stats.Ratio(min(0, less)+max(0, more), c.clients)
}

// checkBytes compares the payload that the clients counted with what the kernel or the service counted in the same
// seconds of the measurement times. It is enough that one source agrees: an interface carries others' traffic, and a process
// can move bytes by calls that the kernel does not charge to it, and by others on files.
func (d *Evidence) checkBytes() Check {
	if d.Transfers != nil {
		return checkEnds(d.Transfers)
	}
	c := Check{Name: "both ends agree", Status: Skipped}
	if d.Run.Down+d.Run.Up == 0 {
		c.Detail = "reads and writes transferred no payload"
		return c
	}
	if float64(d.Run.Moved) < hosts.LeastSeen && float64(d.Run.Wire) > 10*float64(d.Run.Moved) {
		c.Detail = fmt.Sprintf("%s of payload in %s on the network: nearly all of it are requests and responses",
			unit.Bytes(float64(d.Run.Moved)),
			unit.Bytes(float64(d.Run.Wire)))
		return c
	}
	if d.Run.Plan.Driver == storage.Local || d.Run.Plan.Driver == storage.Simulated {
		c.Detail = "the payload does not cross a network"
		return c
	}
	sources := append(d.Bytes.servers(), together(d.Bytes.counts)...)
	sources = slices.DeleteFunc(sources, func(s count) bool {
		return s.clients < hosts.LeastSeen || s.partial && s.off() < -bytesWarn || s.shared && s.there < 0.01*s.clients
	})
	if len(sources) == 0 {
		c.unchecked("no monitored interface or server process carried at least "+unit.Bytes(hosts.LeastSeen)+
			" of this traffic in a second of the measurement", "measure for 3 s or longer, and name the server's machine and processes in hosts")
		return c
	}
	decisive(onTheWay(sources)).judge(&c)
	return c
}

// decisive returns the source that agrees best. A process that moved more than the clients counted may have written logs or copies
// of files: it decides only where no other source is left, or an interface carried as much more.
func decisive(sources []count) *count {
	slices.SortStableFunc(sources, func(a, b count) int { return cmp.Compare(math.Abs(a.off()), math.Abs(b.off())) })
	best := slices.IndexFunc(sources, func(c count) bool { return !c.maybeFiles() })
	if best < 0 {
		return &sources[0]
	}
	for c := range basics.Each(sources) {
		c.sure = c.maybeFiles() && sources[best].of.what == "interface" && math.Abs(c.off()-sources[best].off()) <= bytesOK
		if c.sure {
			return c
		}
	}
	return &sources[best]
}

// maybeFiles reports whether what the source has more than the clients may be of files: a process's system calls are of both.
func (c *count) maybeFiles() bool { return c.partial && c.of.what != "" && c.off() > bytesOK }

// onTheWay leaves out the interfaces of a host that carried less than the clients moved, if another one of its
// interfaces carried as much. Where none did, what moved was spread over them: their sum replaces them, but for
// loopback, whose traffic may be that of other programs.
func onTheWay(sources []count) []count {
	type way struct {
		host string
		back bool
	}
	carries := map[string]bool{}
	for s := range basics.Each(sources) {
		if s.of.what == "interface" && s.off() >= -bytesWarn {
			carries[s.of.host] = true
		}
	}
	var all []count
	spread := map[way]int{} // place of the sum
	for _, s := range sources {
		w := way{s.of.host, s.of.name == hosts.Loopback}
		i, begun := spread[w]
		switch {
		case s.of.what != "interface" || s.off() >= -bytesWarn:
			all = append(all, s)
		case carries[s.of.host]:
		case !begun:
			spread[w] = len(all)
			all = append(all, s)
		default:
			sum := &all[i]
			sum.there += s.there
			sum.of.name += ", " + s.of.name
			sum.widen(&s)
			sum.source = "interfaces " + sum.of.name + " of " + s.of.host
		}
	}
	return all
}

// judge says what the difference means. A source that others use and that has more than the clients is no evidence
// against them, unless it is a link that the test needs for itself.
func (c *count) judge(k *Check) {
	k.Detail = fmt.Sprintf("clients counted %s, %s %s in the same seconds: %+.2f%%", unit.Bytes(c.clients), c.source, unit.Bytes(c.there),
		100*stats.Ratio(c.there-c.clients, c.clients))
	if c.more > 0 {
		k.Detail += fmt.Sprintf("; the server may have read %s of that for checksums", unit.Bytes(c.more))
	}
	switch off := c.off(); {
	case math.Abs(off) <= bytesOK, off > 0 && off <= bytesWarn && c.shared:
		k.Status = OK
	case off > 0 && c.more > 0: // how often it reads a file for a checksum is the server's to choose
		k.unchecked(k.Detail+"; no other source counted only these bytes", "set workload.verify to 0, or leave the network interface to the test")
	case c.maybeFiles() && !c.sure:
		k.unchecked(k.Detail+"; that may be of files, such as logs and copies", "monitor the network interface of the server, and leave it "+
			"to the test")
	case off > 0 && c.shared && c.of.name == hosts.Loopback:
		k.unchecked(k.Detail+"; other programs use this interface", "leave the loopback interface to the test, or name the server's "+
			"processes in hosts if they are not monitored")
	case off > 0 && c.shared:
		k.worsen(Warn, "other traffic shared the link of the test, or the throughput is too low by %s", unit.Percent(off))
	case math.Abs(off) <= bytesWarn, math.Abs(off) <= bytesFail && c.seconds < leastLong:
		k.worsen(Warn, "the throughput may be wrong by %s", unit.Percent(math.Abs(off)))
	default:
		k.worsen(Fail, "the throughput is wrong by %s", unit.Percent(math.Abs(off)))
	}
}
