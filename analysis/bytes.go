package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"weir/internal/unit"
	"weir/monitor"
)

// loopback is the interface that carries a machine's traffic with itself. It
// counts every byte as sent and as received.
const loopback = "lo"

// headers is what Ethernet (14), IPv4 (20) and TCP with timestamps (32) add to
// a packet; the kernel counts large packets before they are cut, so this is small.
const headers = 66

// Bounds of the check that both ends agree on the bytes.
const (
	bytesOK   = 0.01
	bytesWarn = 0.05
	inside    = 0.99 // share of a sample that must lie in one step's hold time
	leastSeen = 1e6  // bytes; less is lost among everything else that a machine does
	leastLong = 3.0  // seconds that must have been compared before a difference is a fault
)

// A count is what one source saw, and what the clients moved in the same time.
type count struct {
	source  string
	clients float64 // bytes
	there   float64
	seconds float64
	partial bool // it may see less than all: a process that uses other system calls
	shared  bool // it may see more than all: others use it, too
	of      source
	role    string // of its host
	rereads bool   // it may see more than all: what was uploaded is read again for its checksum
}

func (c *count) off() float64 { return ratio(c.there-c.clients, c.clients) }

// checkBytes compares the payload that the clients counted with what the
// kernel or the service counted in the same seconds of the hold times. It is
// enough that one source agrees: an interface carries others' traffic, too,
// and a process can move bytes by calls that the kernel does not charge to it.
func (d *data) checkBytes() Check {
	if d.transfers != nil {
		return d.checkEnds()
	}
	c := Check{Name: "both ends agree", Status: Skipped}
	if d.down+d.up == 0 {
		c.Detail = "no payload was moved by reads or writes"
		return c
	}
	if d.plan.Driver == "local" || d.plan.Driver == "simulated" {
		c.Detail = "the payload crosses no network"
		return c
	}
	sources := append(d.watched.bytes.servers(), together(d.wiresTogether(d.watched.bytes.counts))...)
	sources = slices.DeleteFunc(sources, func(s count) bool {
		return s.clients < leastSeen || s.partial && s.off() < -bytesWarn || s.shared && s.there < 0.01*s.clients
	})
	if len(sources) == 0 {
		c.Detail = "no interface or server process was watched that saw at least " + unit.Bytes(leastSeen) + " of this traffic, for a second within a hold time"
		return c
	}
	slices.SortStableFunc(sources, func(a, b count) int { return cmp.Compare(math.Abs(a.off()), math.Abs(b.off())) })
	s := sources[0]
	c.Detail = fmt.Sprintf("clients %s, %s %s in the same seconds: %+.2f%%", unit.Bytes(s.clients), s.source, unit.Bytes(s.there), 100*s.off())
	switch off := s.off(); {
	case math.Abs(off) <= bytesOK:
		c.Status = OK
	case math.Abs(off) <= bytesWarn:
		c.Status = Warn
	case off > 0 && s.shared:
		c.Status = Warn
		c.Detail += "; it may count other traffic, too"
	case off > 0 && s.rereads:
		c.Status = Warn
		c.Detail += "; the process may have read files again to tell their checksums"
	case s.seconds < leastLong:
		c.Status = Warn
		c.Detail += fmt.Sprintf("; only %.3g s could be compared", s.seconds)
	default:
		c.Status = Fail
		c.Detail += "; the clients' figure can not be right"
	}
	return c
}

// A source is what a count comes from.
type source struct{ what, name, host string }

func (s source) String() string {
	switch s.what {
	case "service":
		return "service " + s.name + " of " + s.host + " itself"
	case "interface":
		return "interface " + s.name + " of " + s.host
	}
	return "process " + s.name + " of " + s.host + " (" + s.what + ")"
}

// byteSums are the counts of all sources over the samples that lie within
// hold times, and what servers say of themselves.
type byteSums struct {
	counts      []count
	index       map[source]int
	held, whole map[string]*count
	late        bool
}

func (b *byteSums) add(of source, there, clients, seconds float64, like count) {
	i, ok := b.index[of]
	if !ok {
		i = len(b.counts)
		b.index[of] = i
		like.source, like.of = of.String(), of
		b.counts = append(b.counts, like)
	}
	c := &b.counts[i]
	c.there += there
	c.clients += clients
	c.seconds += seconds
}

// addBytes adds what the counters of s saw; held says that s lies within a
// hold time.
func (d *data) addBytes(s *monitor.Sample, from time.Time, held bool) {
	server := s.Service != nil && s.Service.Kind != monitor.ClusterManager
	if !held && !server {
		return
	}
	b, overhead, moved := &d.watched.bytes, d.overhead(), d.movedIn(from, s.Time)
	if server {
		b.addServer(s, overhead*moved, held)
	}
	if !held {
		return
	}
	for _, n := range s.Nets {
		there := payload(n.Sent, n.PacketsOut)
		if n.Name != loopback {
			there += payload(n.Received, n.PacketsIn)
		}
		b.add(source{"interface", n.Name, s.Host}, there, moved*overhead, s.Seconds, count{shared: true, role: s.Role})
	}
	for i := range s.Procs {
		if p := &s.Procs[i]; p.Role == "server" {
			d.addProc(s, p, moved, overhead)
		}
	}
}

// addProc adds what the server process p, or the kernel about it, says.
func (d *data) addProc(s *monitor.Sample, p *monitor.Proc, moved, overhead float64) {
	b := &d.watched.bytes
	if p.Sent+p.Received > 0 {
		b.add(source{"service", p.Name, s.Host}, float64(p.Sent+p.Received), moved, s.Seconds, count{role: s.Role})
	}
	// A read is written to a socket, a write is read from one. With both at
	// once the calls for files and sockets can not be told apart. What clients ask
	// is bytes, too, and of small reads not few; a server that does not read the
	// files themselves reads nothing else.
	switch {
	case d.up == 0:
		b.add(source{"written", p.Name, s.Host}, float64(p.Written), moved*overhead, s.Seconds, count{partial: true, role: s.Role})
		b.add(source{"written and read", p.Name, s.Host}, float64(p.Written+p.Read), moved*overhead, s.Seconds, count{partial: true, role: s.Role})
	case d.down == 0:
		b.add(source{"read", p.Name, s.Host}, float64(p.Read), moved*overhead, s.Seconds, count{partial: true, role: s.Role, rereads: d.plan.Work.Verify > 0})
	}
}

func payload(bytes, packets int64) float64 { return max(0, float64(bytes)-headers*float64(packets)) }

// overhead returns bytes on the wire for one byte of payload, by what the
// drivers counted over the whole run; 1 where they can not.
func (d *data) overhead() float64 {
	return max(1, ratio(float64(d.wire), float64(d.moved)))
}

// movedIn returns the payload that moved between two moments, intervals that
// lie only partly between them counted by their part.
func (d *data) movedIn(from, to time.Time) float64 {
	i, _ := slices.BinarySearchFunc(d.seconds, from, func(s second, t time.Time) int { return s.end().Compare(t) })
	sum := 0.0
	for ; i < len(d.seconds) && d.seconds[i].start.Before(to); i++ {
		s := &d.seconds[i]
		a, b := s.start, s.end()
		if from.After(a) {
			a = from
		}
		if to.Before(b) {
			b = to
		}
		sum += float64(s.moved) * min(1, ratio(max(0, b.Sub(a).Seconds()), s.seconds))
	}
	return sum
}
