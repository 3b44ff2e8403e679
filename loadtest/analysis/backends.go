package analysis

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir/loadtest/measure"
	"weir/monitor"
)

// backends is what the samples report on the servers that share the load. Each is known by its place in names: first
// those that the plan names, then others in the order in which they are seen.
type backends struct {
	names    []string
	declared int                         // so many the plan names
	hosts    []monitor.Host              // of the plan, by place
	known    map[string]int              // place by what a server was called
	self     string                      // host that this machine's samples are of; "": any that the plan does not name
	steps    map[int]map[int]*backendSum // by step and place; step 0 is the whole run
	whole    holds                       // from the first interval to the last
	series   binned[int, backendCount]   // by place
	balancer string                      // its kind; "": none was sampled
	lacks    map[sourceOf]bool           // sources of which seconds are left out
}

// A sourceOf is one source of a backend's bytes.
type sourceOf struct {
	source string
	place  int
}

// A backendSum gathers one backend in one step, or in the whole run. Bytes are of payload, as far as that can be
// told.
type backendSum struct {
	logged, wire, passed, reported       float64 // by its log, its interface, the balancer, and itself
	running, sessions, queue, own, busy  mean    // own: cores of its processes; busy: of the fuller direction of its interface
	connected                            float64
	limit, weight                        int
	status                               string
	late                                 float64 // of the whole run: passed by the balancer, what it counted later included
	untimely, hasLog, hasWire, hasReport bool
}

// A backendCount is what samples report on one backend in one stretch of time.
type backendCount struct {
	bytes    map[string]float64 // by source
	sessions mean
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
	c.sessions.sum, c.sessions.weight = c.sessions.sum+from.sessions.sum, c.sessions.weight+from.sessions.weight
}

const (
	// instant is the time that a number of sessions counts for: it was read at the end of a sample's span, which may
	// lie in another step than the rest.
	instant = time.Millisecond
	// lateBytes is how long after the run bytes of sessions that ended with it are waited for: HAProxy counts the
	// bytes of a session when it ends.
	lateBytes = 5 * time.Second
)

// watchBackends prepares for the samples.
func (d *data) watchBackends() {
	b := &backends{known: map[string]int{}, steps: map[int]map[int]*backendSum{},
		series: newBinned[int](mostServerPoints, (*backendCount).join)}
	for _, h := range d.plan.Hosts {
		switch {
		case h.Backend():
			b.names = append(b.names, h.Name)
			b.hosts = append(b.hosts, h)
		case h.NodeExporter+h.XRootDReport == "" && b.self == "":
			b.self = h.Name
		}
	}
	b.declared = len(b.names)
	d.backends = b
	for name, counts := range d.service.of {
		if name != "" && name != measure.Others && len(counts) > 0 {
			b.place(name)
		}
	}
	if n := len(d.seconds); n > 0 {
		last := d.seconds[n-1].end()
		b.whole = holds{{from: d.seconds[0].start, to: last, last: last}}
	}
}

// place returns which backend a server is that is called so by clients, or by itself: the one with such an address,
// or with such a name. One that is new becomes a backend with that name.
func (b *backends) place(server string) int {
	if at, ok := b.known[server]; ok {
		return at
	}
	at := b.find(server)
	if at < 0 {
		at = len(b.names)
		b.names = append(b.names, server)
	}
	b.known[server] = at
	return at
}

// find returns the place of the backend with an address or name, -1 if there is none.
func (b *backends) find(server string) int {
	host, port := hostPort(server)
	for i := range b.hosts {
		h := &b.hosts[i]
		if slices.ContainsFunc(h.Address, func(a string) bool {
			ownHost, ownPort := hostPort(a)
			return ownHost == host && (ownPort == "" || ownPort == port)
		}) {
			return i
		}
	}
	return slices.IndexFunc(b.names, func(name string) bool { return name == server || name == host })
}

// hostPort takes HOST:PORT apart; addresses are written in one way.
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

// behind returns the place of a server that a balancer reports on.
func (b *backends) behind(s *monitor.Balanced) int {
	if at := slices.Index(b.names, s.Name); at >= 0 {
		return at
	}
	if s.Address != "" {
		if at := b.find(s.Address); at >= 0 {
			return at
		}
	}
	return b.place(s.Name)
}

func (b *backends) sum(step, place int) *backendSum {
	all := b.steps[step]
	sum := entryOf(&all, place)
	b.steps[step] = all
	return sum
}

// backendDuring calls f with the sums of a backend for all steps that were held between two moments, and for the run,
// with the seconds that fall to each.
func (w *watched) backendDuring(b *backends, place int, from, to time.Time, f func(s *backendSum, seconds float64)) {
	w.holds.during(from, to, func(step int, seconds float64) { f(b.sum(step, place), seconds) })
	b.whole.during(from, to, func(_ int, seconds float64) { f(b.sum(0, place), seconds) })
}

// watchBackend adds what a sample reports on backends. It reports whether that is all that the sample tells.
func (d *data) watchBackend(s *monitor.Sample, from time.Time) (all bool) {
	switch {
	case s.Balancer != nil:
		d.balanced(s, from)
		return true
	case s.Transfers != nil:
		d.logged(s)
		return true
	case s.Service != nil:
		if s.Service.Kind == monitor.DataServer {
			d.addOwnReport(s, from)
		}
		return false
	}
	for i := range d.backends.hosts {
		if d.backends.watchedBy(i, s) {
			d.ofHost(i, s, from)
		}
	}
	return false
}

// watchedBy reports whether a sample is of the machine that a backend's interface and processes are on.
func (b *backends) watchedBy(place int, s *monitor.Sample) bool {
	h := &b.hosts[place]
	if h.NodeExporter != "" {
		return s.Host == h.Name
	}
	if b.self != "" {
		return s.Host == b.self
	}
	return s.Link == nil
}

// incomplete notes the sources of backends whose counters a sample leaves out: their sums lack bytes then.
func (d *data) incomplete(s *monitor.Sample) {
	b := d.backends
	if b == nil {
		return
	}
	lacks := func(source string, place int) {
		if b.lacks == nil {
			b.lacks = map[sourceOf]bool{}
		}
		b.lacks[sourceOf{source, place}] = true
	}
	for _, what := range s.LeftOut {
		switch what {
		case monitor.LeftOutBalancer:
			for place := range b.names {
				lacks(ByBalancer, place)
			}
		case monitor.LeftOutService:
			lacks(ByItself, b.find(s.Host))
		default:
			for i := range b.hosts {
				if what == monitor.LeftOutNet+b.hosts[i].Interface && b.watchedBy(i, s) {
					lacks(ByInterface, i)
				}
			}
		}
	}
}

// ofHost adds what the machine's counters report on a backend.
func (d *data) ofHost(place int, s *monitor.Sample, from time.Time) {
	b := d.backends
	h := &b.hosts[place]
	net := slices.IndexFunc(s.Nets, func(n monitor.Net) bool { return n.Name == h.Interface })
	proc := slices.IndexFunc(s.Procs, func(p monitor.Proc) bool { return p.Name == h.Name && p.Role == server })
	if net < 0 && proc < 0 || s.Seconds <= 0 {
		return
	}
	d.watched.backendDuring(b, place, from, s.Time, func(sum *backendSum, seconds float64) {
		part := seconds / s.Seconds
		if net >= 0 {
			n := &s.Nets[net]
			sum.hasWire = true
			carried, _ := d.payload(n)
			sum.wire += part * carried
			if n.Speed > 0 {
				sum.busy.add(8*float64(max(n.Sent, n.Received))/s.Seconds/n.Speed, seconds)
			}
		}
		if proc >= 0 {
			sum.own.add((s.Procs[proc].User+s.Procs[proc].System)/s.Seconds, seconds)
		}
	})
	if net >= 0 {
		n := &s.Nets[net]
		carried, _ := d.payload(n)
		b.series.at(place, middleOf(from, s.Time)).add(ByInterface, carried)
	}
}

func middleOf(from, to time.Time) time.Time { return from.Add(to.Sub(from) / 2) }

// balanced adds what a balancer reports on the servers behind it.
func (d *data) balanced(s *monitor.Sample, from time.Time) {
	b := d.backends
	if b.balancer = s.Balancer.Kind; s.Seconds <= 0 {
		return
	}
	for v := range each(s.Balancer.Servers) {
		place := b.behind(v)
		if n := len(b.whole); n > 0 && s.Time.After(b.whole[0].from) && from.Before(b.whole[0].to.Add(lateBytes)) {
			b.sum(0, place).late += float64(v.Received + v.Sent)
		}
		d.watched.backendDuring(b, place, from, s.Time, func(sum *backendSum, seconds float64) {
			part := seconds / s.Seconds
			sum.passed += part * float64(v.Received+v.Sent)
			sum.connected += part * float64(v.Connected)
			sum.limit, sum.weight, sum.status = v.Limit, max(sum.weight, v.Weight), v.Status
		})
		d.watched.backendDuring(b, place, s.Time.Add(-instant), s.Time, func(sum *backendSum, seconds float64) {
			sum.sessions.add(float64(v.Connections), seconds)
			sum.queue.add(float64(v.Queue), seconds)
		})
		x := b.series.at(place, middleOf(from, s.Time))
		x.add(ByBalancer, float64(v.Received+v.Sent))
		x.sessions.add(float64(v.Connections), s.Seconds)
	}
}

// logged adds what a backend's log tells.
func (d *data) logged(s *monitor.Sample) {
	b := d.backends
	place := b.place(s.Host)
	for v := range each(s.Transfers.Spans) {
		if v.Seconds <= 0 {
			continue
		}
		to := v.Begin.Add(duration(v.Seconds))
		d.watched.backendDuring(b, place, v.Begin, to, func(sum *backendSum, seconds float64) {
			sum.hasLog = true
			sum.logged += seconds / v.Seconds * float64(v.Moved)
			sum.running.sum += v.Running * seconds // what several lines report on one second adds up
		})
		for at := v.Begin; at.Before(to); at = at.Add(time.Second) {
			_, end := common(at, at.Add(time.Second), at, to)
			if len(b.whole) > 0 && !end.Before(b.whole[0].from) && !at.After(b.whole[0].to) {
				b.series.at(place, middleOf(at, end)).add(ByLog, end.Sub(at).Seconds()/v.Seconds*float64(v.Moved))
			}
		}
	}
}

// addOwnReport adds the counters that a data server reports.
func (d *data) addOwnReport(s *monitor.Sample, from time.Time) {
	b := d.backends
	if s.Seconds <= 0 {
		return
	}
	place, v := b.find(s.Host), s.Service
	if place < 0 {
		return // clients call it otherwise, or never saw it
	}
	d.watched.backendDuring(b, place, from, s.Time, func(sum *backendSum, seconds float64) {
		part := seconds / s.Seconds
		sum.hasReport, sum.untimely = true, sum.untimely || v.Late
		sum.reported += part * float64(v.Received+v.Sent)
		sum.own.add((v.User+v.System)/s.Seconds, seconds)
		sum.connected += part * float64(v.Connected)
	})
	d.watched.backendDuring(b, place, s.Time.Add(-instant), s.Time, func(sum *backendSum, seconds float64) {
		sum.sessions.add(float64(v.Connections), seconds)
	})
	x := b.series.at(place, middleOf(from, s.Time))
	x.add(ByItself, float64(v.Received+v.Sent))
	x.sessions.add(float64(v.Connections), s.Seconds)
}
