package validity

import (
	"fmt"
	"sort"
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
	"weir/monitor"
)

// A source identifies the counter of a count.
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

// ByteSums has the counts of all sources over the samples that lie within measurement times, and
// the counters that servers report.
type ByteSums struct {
	run         *steps.Run
	near        int // the last result of after: hosts are sampled at about the same time
	counts      []count
	index       map[source]int
	held, whole map[string]*count
	late        bool
	fastest     map[int]float64 // by step: the highest rate of a second
}

// NewByteSums returns the counts of a run, before its samples are added.
func NewByteSums(d *steps.Run) *ByteSums {
	return &ByteSums{run: d, index: map[source]int{}, held: map[string]*count{}, whole: map[string]*count{}, fastest: fastestOf(d)}
}

// A span is the time of a sample, with the bytes that the clients moved in it.
type span struct {
	from, to    time.Time
	seconds     float64
	moved       float64 // payload of the load, and bytes that checks read back
	readBack    float64 // the part of moved that checks read back
	summed      float64 // size of the files whose checksums were requested by checks
	first, last float64 // bytes that may lie on the other side of from, and of to
}

// contiguous is the longest time between two samples that still count as consecutive.
const contiguous = 50 * time.Millisecond

// add adds the bytes that a source counted in a span. expected are the corresponding bytes of the
// clients.
func (b *ByteSums) add(of source, there, expected float64, s *span, like count) {
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

// AddBytes adds the counters of s; held is true if s lies within a measurement time.
func (b *ByteSums) AddBytes(s *monitor.Sample, from time.Time, held bool) {
	server := s.Service != nil && s.Service.Kind != monitor.ClusterManager
	if !held && !server {
		return
	}
	overhead, v := b.run.Overhead(), b.span(from, s)
	if server {
		b.addServer(s, overhead*v.moved, &v, held)
	}
	if !held {
		return
	}
	for _, n := range s.Nets {
		there, unsure := b.run.Payload(&n)
		b.add(source{"interface", n.Name, s.Host}, there, v.moved*overhead, &v, count{shared: true, role: s.Role, edges: unsure})
	}
	for p := range basics.Each(s.Procs) {
		if p.Role == "server" {
			b.addProc(s, p, &v, overhead)
		}
	}
}

// addProc adds the counters of the server process p: its own, or the counters of the kernel.
func (b *ByteSums) addProc(s *monitor.Sample, p *monitor.Proc, v *span, overhead float64) {
	asked := v.moved * (overhead - 1) // at most
	if p.Sent+p.Received > 0 {
		b.add(source{"service", p.Name, s.Host}, float64(p.Sent+p.Received), v.moved, v, count{role: s.Role})
	}
	// A read is written to a socket, a write is read from a socket. If clients read and write at
	// once, the calls for files and for sockets cannot be distinguished. Requests of clients are
	// bytes as well, and for small reads not few; a server that does not itself read the files
	// reads nothing else.
	switch {
	case b.run.Up == 0:
		b.add(source{"written", p.Name, s.Host}, float64(p.Written), v.moved*overhead, v, count{partial: true, role: s.Role, less: asked})
		b.add(source{"written and read", p.Name, s.Host}, float64(p.Written+p.Read), v.moved*overhead, v, count{partial: true, role: s.Role})
	case b.run.Down == 0: // a server may read a file to send it, or for its checksum
		b.add(source{"read", p.Name, s.Host}, float64(p.Read), (v.moved-v.readBack)*overhead, v,
			count{partial: true, role: s.Role, less: asked, more: v.readBack + v.summed})
	}
}

// addServer adds the counters of the server in s. expected is the number of bytes that the clients
// moved in its span.
func (b *ByteSums) addServer(s *monitor.Sample, expected float64, v *span, held bool) {
	b.late = b.late || s.Service.Late
	there := float64(s.Service.Received + s.Service.Sent)
	basics.EntryOf(&b.whole, s.Host).add(there, expected, v)
	if held {
		basics.EntryOf(&b.held, s.Host).add(there, expected, v)
	}
}

// servers compares the sum of the servers' own counters with the clients, as each server carries a
// part of the clients' bytes. Servers that count the bytes of a connection when it ends can only be
// compared over the whole run.
func (b *ByteSums) servers() []count {
	from, like := b.held, count{source: "XRootD's counters", shared: true}
	if b.late {
		from, like = b.whole, count{source: "XRootD's counters, over the whole run,", shared: true, partial: true}
	}
	if len(from) == 0 {
		return nil
	}
	longest, there := addUp(from)
	like.there, like.clients, like.seconds, like.edges = there, longest.clients, longest.seconds, longest.edges
	if n := len(from); n > 1 {
		like.source = fmt.Sprintf("%s of %d servers", like.source, n)
	}
	return []count{like}
}

// span returns the time of a sample that begins at from, with the bytes that the clients moved in
// it. Intervals that overlap with it partly count by the share of the overlap.
func (b *ByteSums) span(from time.Time, s *monitor.Sample) span {
	i := b.after(from)
	v := span{from: from, to: s.Time, seconds: s.Seconds, first: b.edge(i, from), last: b.edge(b.after(s.Time), s.Time)}
	for ; i < len(b.run.Seconds) && b.run.Seconds[i].Start.Before(v.to); i++ {
		x := &b.run.Seconds[i]
		part := min(1, stats.Ratio(basics.SecondsShared(x.Start, x.End(), from, v.to), x.Seconds))
		v.moved += part * float64(x.Moved+x.ReadBack)
		v.readBack += part * float64(x.ReadBack)
		v.summed += part * float64(x.Summed)
	}
	return v
}

// after returns the index of the first second that ends after t.
func (b *ByteSums) after(t time.Time) int {
	ended := func(i int) bool { return b.run.Seconds[i].End().After(t) }
	for i := max(0, b.near-1); i <= min(b.near+1, len(b.run.Seconds)); i++ {
		if (i == len(b.run.Seconds) || ended(i)) && (i == 0 || !ended(i-1)) {
			b.near = i
			return i
		}
	}
	b.near = sort.Search(len(b.run.Seconds), ended)
	return b.near
}

// edge returns the number of bytes of second i, the first that ends after t, that may lie on the
// other side of t than their share by time suggests: the bytes that could still move in either part
// at the highest rate of that step, and the bytes that move at that rate while a sample, which is
// due at a whole second, is late on a busy machine.
func (b *ByteSums) edge(i int, t time.Time) float64 {
	if i == len(b.run.Seconds) || !b.run.Seconds[i].Start.Before(t) {
		return 0
	}
	x := &b.run.Seconds[i]
	moved, before := float64(x.Moved+x.ReadBack), min(t.Sub(x.Start).Seconds(), x.Seconds)
	most := b.fastest[x.Step]
	expected := moved * stats.Ratio(before, x.Seconds)
	late := time.Duration(t.Nanosecond()).Seconds()
	if late > hosts.MostLateLook {
		late = 0 // it was a final sample, which has no due time
	}
	return max(min(moved, most*before)-expected, expected-max(0, moved-most*(x.Seconds-before))) + late*most
}

// fastestOf returns the highest rate of the seconds of each step, in bytes per second; if the
// service let clients wait, which they may do at the same time, it returns the rate of the
// remaining time.
func fastestOf(d *steps.Run) map[int]float64 {
	most := map[int]float64{}
	for x := range basics.Each(d.Seconds) {
		if x.Seconds >= steps.LeastPiece {
			most[x.Step] = max(most[x.Step], stats.Ratio(float64(x.Moved+x.ReadBack), x.Seconds))
		}
	}
	for step, t := range d.Steps {
		if active := 1 - stats.Ratio(t.Waited, t.Latency.Sum()); active < 1 {
			most[step] /= max(active, 0.01)
		}
	}
	return most
}
