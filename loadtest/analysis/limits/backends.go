package limits

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/monitor"
)

// Backends sums the samples of the servers that share the load. Each server is identified by its
// index in names: first the servers in the plan, then others in the order of their first sample.
type Backends struct {
	run      *steps.Run
	holds    hosts.Holds
	names    []string
	declared int                             // number of backends in the plan
	hosts    []monitor.Host                  // of the plan, by index
	known    map[string]int                  // index by the name of a server
	self     string                          // host of this machine's samples; "": any host not in the plan
	steps    map[int]map[int]*backendSum     // by step and index; step 0 is the whole run
	whole    hosts.Holds                     // from the first interval to the last
	series   steps.Binned[int, backendCount] // by index
	balancer string                          // its kind; "": no balancer was sampled
	lacks    map[sourceOf]bool               // sources whose samples leave out seconds
}

// A sourceOf is one source of a backend's bytes.
type sourceOf struct {
	source string
	place  int
}

// A backendSum is the sum of the samples of one backend in one step, or in the whole run. Bytes are
// bytes of payload, as far as payload can be separated.
type backendSum struct {
	logged, wire, passed, reported       float64    // by its log, its interface, the balancer, and itself
	running, sessions, queue, own, busy  hosts.Mean // own: cores of its processes; busy: of the fuller direction of its interface
	connected                            float64
	limit, weight                        int
	status                               string
	late                                 float64 // of the whole run: passed by the balancer, with late counts
	untimely, hasLog, hasWire, hasReport bool
}

// A backendCount is the sum of the samples of one backend in one stretch of time.
type backendCount struct {
	bytes    map[string]float64 // by source
	sessions hosts.Mean
}

func (c *backendCount) add(source string, bytes float64) {
	if c.bytes == nil {
		c.bytes = map[string]float64{}
	}
	c.bytes[source] += bytes
}

func (c *backendCount) join(from *backendCount) {
	for source, bytes := range from.bytes {
		c.add(source, bytes)
	}
	c.sessions.Sum, c.sessions.Weight = c.sessions.Sum+from.sessions.Sum, c.sessions.Weight+from.sessions.Weight
}

const (
	// instant is the time for which a number of sessions counts: it was read at the end of a
	// sample's span, which may belong to another step than the rest of the span.
	instant = time.Millisecond
	// lateBytes is the time after the run during which bytes of its last sessions are still
	// accepted: HAProxy counts the bytes of a session when it ends.
	lateBytes = 5 * time.Second
)

// NewBackends returns the backends of a run, before its samples are added.
func NewBackends(d *steps.Run) *Backends {
	b := &Backends{run: d, holds: d.HoldTimes(), known: map[string]int{}, steps: map[int]map[int]*backendSum{},
		series: steps.NewBinned[int](steps.MostServerPoints, (*backendCount).join)}
	for _, h := range d.Plan.Hosts {
		switch {
		case h.Backend():
			b.names = append(b.names, h.Name)
			b.hosts = append(b.hosts, h)
		case h.NodeExporter+h.XRootDReport == "" && b.self == "":
			b.self = h.Name
		}
	}
	b.declared = len(b.names)
	for name, counts := range d.Service.Of {
		if name != "" && name != measure.Others && len(counts) > 0 {
			b.place(name)
		}
	}
	if n := len(d.Seconds); n > 0 {
		last := d.Seconds[n-1].End()
		b.whole = hosts.Holds{{From: d.Seconds[0].Start, To: last, Last: last}}
	}
	return b
}

// place returns the index of the backend that clients, or the server itself, call by this name: the
// backend with such an address or name. An unknown server becomes a new backend with that name.
func (bs *Backends) place(server string) int {
	if at, ok := bs.known[server]; ok {
		return at
	}
	at := bs.find(server)
	if at < 0 {
		at = len(bs.names)
		bs.names = append(bs.names, server)
	}
	bs.known[server] = at
	return at
}

// find returns the index of the backend with an address or name, -1 if there is no such backend.
func (bs *Backends) find(server string) int {
	host, port := hostPort(server)
	for i := range bs.hosts {
		h := &bs.hosts[i]
		if slices.ContainsFunc(h.Address, func(a string) bool {
			ownHost, ownPort := hostPort(a)
			return ownHost == host && (ownPort == "" || ownPort == port)
		}) {
			return i
		}
	}
	return slices.IndexFunc(bs.names, func(name string) bool { return name == server || name == host })
}

// hostPort splits HOST:PORT; it normalizes addresses.
func hostPort(s string) (host, port string) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = strings.Trim(s, "[]"), ""
	}
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.Unmap().String()
	}
	return host, port
}

// behind returns the index of a server that a balancer reports.
func (bs *Backends) behind(s *monitor.Balanced) int {
	if at := slices.Index(bs.names, s.Name); at >= 0 {
		return at
	}
	if s.Address != "" {
		if at := bs.find(s.Address); at >= 0 {
			return at
		}
	}
	return bs.place(s.Name)
}

func (bs *Backends) sum(step, place int) *backendSum {
	all := bs.steps[step]
	sum := basics.EntryOf(&all, place)
	bs.steps[step] = all
	return sum
}

// during calls f with the sums of a backend for all steps that were held between two moments, and
// for the run, with the number of seconds that belong to each sum.
func (bs *Backends) during(place int, from, to time.Time, f func(s *backendSum, seconds float64)) {
	bs.holds.During(from, to, func(step int, seconds float64) { f(bs.sum(step, place), seconds) })
	bs.whole.During(from, to, func(_ int, seconds float64) { f(bs.sum(0, place), seconds) })
}
