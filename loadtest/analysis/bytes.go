package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"sort"
	"strings"
	"time"

	"weir/internal/unit"
	"weir/monitor"
	"weir/storage"
)

// loopback is the interface that carries a machine's traffic with itself. It counts every byte as sent and as
// received.
const loopback = "lo"

// Bounds of the check that both ends agree on the bytes.
const (
	bytesOK   = 0.01
	bytesWarn = 0.05
	bytesFail = 0.10 // beyond this the result is invalid, however short the time that was compared
	inside    = 0.99 // share of a sample that must lie in one step's measurement time
	leastSeen = 1e6  // bytes; less is lost among everything else that a machine does
	leastLong = 3.0  // seconds that must have been compared before more than bytesWarn is a fault
)

// A count is what one source saw, and what the clients moved in the same time.
type count struct {
	source  string
	clients float64 // bytes: of the load, and of checks that read back what was written
	more    float64 // bytes that the source may count besides: of files that the server read again for a check
	less    float64 // bytes that it may not count: what clients ask, where only answers are counted, and the reverse
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
	return ratio(min(0, less)+max(0, more), c.clients)
}

// checkBytes compares the payload that the clients counted with what the kernel or the service counted in the same
// seconds of the measurement times. It is enough that one source agrees: an interface carries others' traffic, and a process
// can move bytes by calls that the kernel does not charge to it, and by others on files.
func (d *data) checkBytes() Check {
	if d.transfers != nil {
		return d.checkEnds()
	}
	c := Check{Name: "both ends agree", Status: Skipped}
	if d.down+d.up == 0 {
		c.Detail = "reads and writes transferred no payload"
		return c
	}
	if float64(d.moved) < leastSeen && float64(d.wire) > 10*float64(d.moved) {
		c.Detail = fmt.Sprintf("%s of payload in %s on the network: nearly all of it are requests and responses", unit.Bytes(float64(d.moved)),
			unit.Bytes(float64(d.wire)))
		return c
	}
	if d.plan.Driver == storage.Local || d.plan.Driver == storage.Simulated {
		c.Detail = "the payload does not cross a network"
		return c
	}
	sources := append(d.watched.bytes.servers(), together(d.watched.bytes.counts)...)
	sources = slices.DeleteFunc(sources, func(s count) bool {
		return s.clients < leastSeen || s.partial && s.off() < -bytesWarn || s.shared && s.there < 0.01*s.clients
	})
	if len(sources) == 0 {
		c.unchecked("no monitored interface or server process carried at least "+unit.Bytes(leastSeen)+
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
	for c := range each(sources) {
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
	for s := range each(sources) {
		if s.of.what == "interface" && s.off() >= -bytesWarn {
			carries[s.of.host] = true
		}
	}
	var all []count
	spread := map[way]int{} // place of the sum
	for _, s := range sources {
		w := way{s.of.host, s.of.name == loopback}
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
		100*ratio(c.there-c.clients, c.clients))
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
	case off > 0 && c.shared && c.of.name == loopback:
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

// A source is what a count comes from.
type source struct{ what, name, host string }

func (s source) String() string {
	switch s.what {
	case "service":
		return "service " + s.name + " of " + s.host
	case "interface":
		return "interface " + s.name + " of " + s.host
	}
	return "process " + s.name + " of " + s.host + " (" + s.what + ")"
}

// byteSums are the counts of all sources over the samples that lie within measurement times, and what servers say of
// themselves.
type byteSums struct {
	counts      []count
	index       map[source]int
	held, whole map[string]*count
	late        bool
	fastest     map[int]float64 // by step: the highest rate of a second
}

// A span is the time of a sample, and what the clients moved in it.
type span struct {
	from, to    time.Time
	seconds     float64
	moved       float64 // payload of the load, and what checks read back
	readBack    float64 // of that, by checks
	summed      float64 // size of files that checks asked the checksums of
	first, last float64 // bytes that may lie on the other side of from, and of to
}

// contiguous is how far the next sample may begin after the end of the one before and still follow it.
const contiguous = 50 * time.Millisecond

// add adds what a source counted in a span. expected is what the clients' bytes are there.
func (b *byteSums) add(of source, there, expected float64, s *span, like count) {
	i, ok := b.index[of]
	if !ok {
		i = len(b.counts)
		b.index[of] = i
		like.source, like.of = of.String(), of
		b.counts = append(b.counts, like)
		b.counts[i].more, b.counts[i].less, b.counts[i].edges = 0, 0, 0
	}
	b.counts[i].edges += like.edges
	b.counts[i].more += like.more
	b.counts[i].less += like.less
	b.counts[i].add(there, expected, s)
}

func (c *count) add(there, expected float64, s *span) {
	c.there += there
	c.clients += expected
	c.seconds += s.seconds
	if s.from.Sub(c.until).Abs() <= contiguous {
		c.edges -= c.open
	} else {
		c.edges += s.first
	}
	c.edges += s.last
	c.until, c.open = s.to, s.last
}

// addBytes adds what the counters of s saw; held says that s lies within a measurement time.
func (d *data) addBytes(s *monitor.Sample, from time.Time, held bool) {
	server := s.Service != nil && s.Service.Kind != monitor.ClusterManager
	if !held && !server {
		return
	}
	b, overhead, v := &d.watched.bytes, d.overhead(), d.span(from, s)
	if server {
		b.addServer(s, overhead*v.moved, &v, held)
	}
	if !held {
		return
	}
	for _, n := range s.Nets {
		there, unsure := d.payload(&n)
		b.add(source{"interface", n.Name, s.Host}, there, v.moved*overhead, &v, count{shared: true, role: s.Role, edges: unsure})
	}
	for p := range each(s.Procs) {
		if p.Role == "server" {
			d.addProc(s, p, &v, overhead)
		}
	}
}

// addProc adds what the server process p, or the kernel about it, says.
func (d *data) addProc(s *monitor.Sample, p *monitor.Proc, v *span, overhead float64) {
	b, asked := &d.watched.bytes, v.moved*(overhead-1) // at most
	if p.Sent+p.Received > 0 {
		b.add(source{"service", p.Name, s.Host}, float64(p.Sent+p.Received), v.moved, v, count{role: s.Role})
	}
	// A read is written to a socket, a write is read from one. With both at once the calls for files and sockets
	// cannot be distinguished. What clients ask is bytes as well, and of small reads not few; a server that does not
	// read the files themselves reads nothing else.
	switch {
	case d.up == 0:
		b.add(source{"written", p.Name, s.Host}, float64(p.Written), v.moved*overhead, v, count{partial: true, role: s.Role, less: asked})
		b.add(source{"written and read", p.Name, s.Host}, float64(p.Written+p.Read), v.moved*overhead, v, count{partial: true, role: s.Role})
	case d.down == 0: // a server need not read a file to send it, or to know its checksum, but it may
		b.add(source{"read", p.Name, s.Host}, float64(p.Read), (v.moved-v.readBack)*overhead, v,
			count{partial: true, role: s.Role, less: asked, more: v.readBack + v.summed})
	}
}

// payload returns the bytes that an interface carried without headers, and by how many more or fewer they may be. The loopback interface
// counts each byte twice.
func (d *data) payload(n *monitor.Net) (bytes, unsure float64) {
	all, packets := n.Sent, n.PacketsOut
	if n.Name != loopback {
		all, packets = all+n.Received, packets+n.PacketsIn
	}
	headers, left := monitor.HeaderBytes(n.Name, d.ipv6)
	return max(0, float64(all-headers*packets)), float64(left * packets)
}

// isIPv6 reports whether a target is an IPv6 address. The kind of a name is unknown: the interface seems to carry 20 bytes more for each
// packet then, as if others used it as well.
func isIPv6(target string) bool {
	u, err := url.Parse(target)
	return err == nil && strings.Contains(u.Hostname(), ":")
}

// overhead returns bytes on the wire for one byte of payload, by what the drivers counted over the whole run; 1 where
// they cannot.
func (d *data) overhead() float64 {
	return max(1, ratio(float64(d.wire), float64(d.moved)))
}

// span returns the time of a sample that begins at from, with what the clients moved in it: intervals that lie only
// partly in it count by their part.
func (d *data) span(from time.Time, s *monitor.Sample) span {
	i := d.after(from)
	v := span{from: from, to: s.Time, seconds: s.Seconds, first: d.edge(i, from), last: d.edge(d.after(s.Time), s.Time)}
	for ; i < len(d.seconds) && d.seconds[i].start.Before(v.to); i++ {
		x := &d.seconds[i]
		part := min(1, ratio(secondsShared(x.start, x.end(), from, v.to), x.seconds))
		v.moved += part * float64(x.moved+x.readBack)
		v.readBack += part * float64(x.readBack)
		v.summed += part * float64(x.summed)
	}
	return v
}

// after returns the place of the first second that ends after t.
func (d *data) after(t time.Time) int {
	ended := func(i int) bool { return d.seconds[i].end().After(t) }
	for i := max(0, d.near-1); i <= min(d.near+1, len(d.seconds)); i++ {
		if (i == len(d.seconds) || ended(i)) && (i == 0 || !ended(i-1)) {
			d.near = i
			return i
		}
	}
	d.near = sort.Search(len(d.seconds), ended)
	return d.near
}

// edge returns how many of the bytes of second i, the first that ends after t, may lie on the other side of t than their part by
// time: as many as would still move in either part at the highest rate of that step, and as many as move at that rate
// while a look at a busy machine is late, which is due at a whole second.
func (d *data) edge(i int, t time.Time) float64 {
	if i == len(d.seconds) || !d.seconds[i].start.Before(t) {
		return 0
	}
	x := &d.seconds[i]
	moved, before := float64(x.moved+x.readBack), min(t.Sub(x.start).Seconds(), x.seconds)
	most := d.watched.bytes.fastest[x.step]
	expected := moved * ratio(before, x.seconds)
	late := time.Duration(t.Nanosecond()).Seconds()
	if late > mostLateLook {
		late = 0 // it was a last look, which is not due at any time
	}
	return max(min(moved, most*before)-expected, expected-max(0, moved-most*(x.seconds-before))) + late*most
}

// mostLateLook is by how many seconds a look at a host is late at most.
const mostLateLook = 0.5

// fastest returns the highest rate of the seconds of each step, in bytes per second; where the service had clients
// wait, which they may do together, that of the time in which they did not.
func (d *data) fastest() map[int]float64 {
	most := map[int]float64{}
	for x := range each(d.seconds) {
		if x.seconds >= leastPiece {
			most[x.step] = max(most[x.step], ratio(float64(x.moved+x.readBack), x.seconds))
		}
	}
	for step, t := range d.steps {
		if active := 1 - ratio(t.Waited, t.Latency.Sum()); active < 1 {
			most[step] /= max(active, 0.01)
		}
	}
	return most
}

// A sameSide is the sources of one kind on all hosts of one role.
type sameSide struct {
	what string
	role monitor.Role
}

// together replaces the counts of several hosts of one role by their sum, for each of these hosts saw only a part of
// what the clients moved. Loopback is left out of it: what many hosts serve crosses a network.
func together(counts []count) []count {
	hosts := map[sameSide]map[string]*count{} // sums by host
	for _, c := range counts {
		s := sameSide{c.of.what, c.role}
		all := hosts[s]
		one := entryOf(&all, c.of.host)
		hosts[s] = all
		if one.of.what == "" {
			*one = count{source: c.source, of: c.of, role: c.role, partial: c.partial, shared: c.shared}
		}
		if c.of.what != "interface" || c.of.name != loopback {
			one.there += c.there
			one.widen(&c)
		}
	}
	all := slices.DeleteFunc(slices.Clone(counts), func(c count) bool { return len(hosts[sameSide{c.of.what, c.role}]) > 1 })
	for _, s := range slices.SortedFunc(maps.Keys(hosts), func(a, b sameSide) int {
		return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.role, b.role))
	}) {
		if len(hosts[s]) > 1 {
			all = append(all, summed(s, hosts[s]))
		}
	}
	return all
}

// summed is the count of all hosts together.
func summed(s sameSide, hosts map[string]*count) count {
	sum := *hosts[slices.Min(slices.Collect(maps.Keys(hosts)))]
	longest, there := addUp(hosts)
	sum.there, sum.clients, sum.seconds, sum.edges, sum.more, sum.less = there, longest.clients, longest.seconds, longest.edges,
		longest.more, longest.less
	what := map[string]string{"interface": "interfaces", "service": "services", "written": "processes (written)",
		"written and read": "processes (written and read)", "read": "processes (read)"}[s.what]
	sum.source = fmt.Sprintf("%s of %d %s hosts", what, len(hosts), s.role)
	return sum
}

// widen has c cover the time that o covers, if that is longer.
func (c *count) widen(o *count) {
	c.clients, c.seconds, c.edges = max(c.clients, o.clients), max(c.seconds, o.seconds), max(c.edges, o.edges)
	c.more, c.less = max(c.more, o.more), max(c.less, o.less)
}

// addUp adds what hosts saw, and returns the count that covers the longest time. A host that was silent for a while
// is counted as if it had gone on as before.
func addUp(hosts map[string]*count) (longest *count, there float64) {
	names := slices.Sorted(maps.Keys(hosts)) // sums do not depend on the order of a map
	longest = hosts[slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(hosts[a].seconds, hosts[b].seconds) })]
	for _, name := range names {
		there += hosts[name].there * ratio(longest.seconds, hosts[name].seconds)
	}
	return longest, there
}
