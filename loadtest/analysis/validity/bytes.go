package validity

import (
	"cmp"
	"math"
	"slices"
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/monitor"
	"weir/storage"
)

// Bounds of the check that both ends agree on the bytes.
const (
	bytesOK   = 0.01
	bytesWarn = 0.05
	bytesFail = 0.10 // beyond this the result is invalid, however short the compared time was
	leastLong = 3.0  // seconds that must have been compared before more than bytesWarn is a fault
)

// A count has the bytes that one source counted, and the bytes that the clients moved in the same
// time.
type count struct {
	source  string
	clients float64 // bytes: of the load, and of checks that read back written files
	more    float64 // bytes that it may count in addition: of files that the server read for a check
	less    float64 // bytes that it may not count: requests, if only responses count, or the reverse
	edges   float64 // bytes that may have moved within the compared time or outside of it
	there   float64
	seconds float64
	partial bool // it may count fewer than all bytes: a process that uses other system calls
	shared  bool // it may count more than these bytes: others use it
	sure    bool // of a process that has more than the clients: an interface has as many
	of      source
	role    monitor.Role // of its host

	until time.Time // end of the last sample
	open  float64   // its part of edges, which is 0 if the next sample follows it
}

// off returns the difference between the source and the clients, as a share of the clients' bytes,
// that neither checks nor the edges of the compared time explain.
func (c *count) off() float64 {
	less, more := c.there+c.edges+c.less-c.clients, c.there-c.edges-c.clients-c.more
	return stats.Ratio(min(0, less)+max(0, more), c.clients)
}

// checkBytes compares the payload that the clients counted with the counters of the kernel or the
// service in the same seconds of the measurement times. One source that agrees is enough: an
// interface carries other traffic as well, and a process can move bytes by calls that the kernel
// does not charge to it, or by calls on files.
func (d *Evidence) checkBytes() Check {
	if d.Transfers != nil {
		return checkEnds(d.Transfers)
	}
	c := Check{Name: "both ends agree", Status: Skipped}
	if d.Run.Copied > 0 { // the progress that servers report is too coarse for a comparison
		return c.Skip(fact.New("check.bytes.copies"))
	}
	if d.Run.Down+d.Run.Up == 0 {
		return c.Skip(fact.New("check.bytes.no_payload"))
	}
	if float64(d.Run.Moved) < hosts.LeastSeen && float64(d.Run.Wire) > 10*float64(d.Run.Moved) {
		return c.Skip(fact.New("check.bytes.requests", "payload", d.Run.Moved, "wire", d.Run.Wire))
	}
	if d.Run.Plan.Driver == storage.Local || d.Run.Plan.Driver == storage.Simulated {
		return c.Skip(fact.New("check.bytes.no_network"))
	}
	sources := append(d.Bytes.servers(), together(d.Bytes.counts)...)
	sources = slices.DeleteFunc(sources, func(s count) bool {
		return s.clients < hosts.LeastSeen || s.partial && s.off() < -bytesWarn || s.shared && s.there < 0.01*s.clients
	})
	if len(sources) == 0 {
		return c.unchecked(fact.New("check.bytes.no_source", "least", hosts.LeastSeen), fact.New("remedy.watch_server"))
	}
	decisive(onTheWay(sources)).judge(&c)
	return c
}

// decisive returns the source that agrees best. A process that moved more than the clients counted
// may have written logs or copies of files: it decides only if no other source is left, or if an
// interface carried the same excess.
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

// maybeFiles reports whether the excess of the source over the clients may be bytes of files: the
// system calls of a process count sockets and files.
func (c *count) maybeFiles() bool { return c.partial && c.of.what != "" && c.off() > bytesOK }

// onTheWay removes the interfaces of a host that carried less than the clients moved, if another
// interface of the host carried as much. If no interface did, the bytes were spread over them:
// their sum replaces them, without the loopback interface, whose traffic may belong to other
// programs.
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
	spread := map[way]int{} // index of the sum
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

// judge adds the meaning of the difference to a check. A source that others also use and that has
// more than the clients is no evidence against the clients, unless it is a link that only the test
// uses.
func (c *count) judge(k *Check) {
	k.addFact("check.bytes.compared", "clients", c.clients, "source", c.source, "there", c.there,
		"difference", stats.Ratio(c.there-c.clients, c.clients))
	if c.more > 0 {
		k.addFact("check.bytes.read_for_checksums", "bytes", c.more)
	}
	switch off := c.off(); {
	case math.Abs(off) <= bytesOK, off > 0 && off <= bytesWarn && c.shared:
		k.Status = OK
	case off > 0 && c.more > 0: // the server decides how many times it reads a file for a checksum
		k.addFact("check.bytes.no_other_source")
		k.undecided(fact.New("remedy.no_checksums"))
	case c.maybeFiles() && !c.sure:
		k.addFact("check.bytes.maybe_files")
		k.undecided(fact.New("remedy.watch_interface"))
	case off > 0 && c.shared && c.of.name == hosts.Loopback:
		k.addFact("check.bytes.loopback_shared")
		k.undecided(fact.New("remedy.free_loopback"))
	case off > 0 && c.shared:
		k.worsen(Warn, fact.New("effect.other_traffic", "share", off))
	case math.Abs(off) <= bytesWarn, math.Abs(off) <= bytesFail && c.seconds < leastLong:
		k.worsen(Warn, fact.New("effect.throughput_doubtful", "share", math.Abs(off)))
	default:
		k.worsen(Fail, fact.New("effect.throughput_wrong", "share", math.Abs(off)))
	}
}
