// Package steps reads the intervals and events of a run and computes the steps of its curve: means
// with their spread, steady parts, windows, jobs, sites, populations, and points against time.
// Figures are part of findings.json; a Working step has in addition the values that other packages
// need to interpret it.
package steps

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/monitor"
)

// A Run holds the intervals and events of a run in memory, with its histograms summed by step.
type Run struct {
	Plan     *scenario.Plan
	About    results.About
	Torn     []string
	GoesOn   bool     // the run is being written
	ipv6     bool     // the target is an IPv6 address
	Record   bool     // of transfers between sites, which have no clients
	Seconds  []Second // all phases, by time
	Steps    map[int]*Total
	Kinds    map[string]*Total
	Servers  map[string]*Total
	Events   []*measure.Event
	Moved    int64 // all phases
	Renewed  int64 // the same
	Down, Up int64 // measurement time: read and written payload
	Copied   int64 // measurement time: payload of third-party copies, which passed between services
	Wire     int64 // all phases
	Back     int   // lines with an earlier time than the previous line
	Hold     float64
	traces   map[place]trace
	Twice    int // lines that repeat another line
	Heat     *heatSum
	Service  Binned[string, serverCount]
	computed bool // a job computed at some time

	populations map[string]*Run   // intervals of each population, without figures of the whole run
	index       map[key]int       // indexes in Seconds
	last        int               // index of the second of the last line, -1 before the first line
	latency     measure.Histogram // of that second
}

// newRun returns a Run without intervals.
func newRun(plan *scenario.Plan) *Run {
	return &Run{
		Plan: plan, ipv6: isIPv6(plan.Target), Steps: map[int]*Total{}, Kinds: map[string]*Total{}, Servers: map[string]*Total{},
		populations: map[string]*Run{}, index: map[key]int{}, last: -1,
	}
}

// Load reads the intervals of a run. It also passes each interval, as encoded by render, to row.
func Load(run *results.Run, render func([]byte, *measure.Interval) []byte, row func([]byte) error) (*Run, error) {
	d := newRun(run.Plan)
	d.Heat, d.Service = newHeatSum(), newServerSums()
	d.About, d.Torn, d.GoesOn = run.About, run.Torn, run.GoesOn
	if err := d.loadIntervals(run, render, row); err != nil {
		return nil, err
	}
	d.finish()
	return d, nil
}

// LoadEvents reads the events of a run.
func (d *Run) LoadEvents(run *results.Run) error {
	for e, err := range run.Events() {
		if err != nil {
			return err
		}
		d.Events = append(d.Events, e)
	}
	return nil
}

// leastPayload is the minimum mean payload of an operation of a mix, in bytes, for which throughput
// is the measure.
const leastPayload = 512

// measure returns the quantity by which steps are compared: operations if no payload is moved, or
// in a mix with hardly any payload.
func (d *Run) measure() string {
	var moved, done int64
	for _, t := range d.Held() {
		moved, done = moved+t.Moved, done+t.Done
	}
	if moved > 0 && (d.Plan.Work.Kind != workload.MixWork || moved >= leastPayload*done) {
		return Throughput
	}
	return Rate
}

// Held returns the steps with measurement time, by number.
func (d *Run) Held() []*Total {
	var all []*Total
	for _, t := range d.Steps {
		if t.Span > 0 && !d.Repeated(t.Number) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *Total) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// Begin returns the start of the run's series.
func (d *Run) Begin() time.Time {
	if len(d.Seconds) > 0 {
		return d.Seconds[0].Start
	}
	return d.About.Start
}

// Phases returns the means of each phase, in order of time.
func (d *Run) Phases() []Phase {
	all := []Phase{}
	for _, s := range d.Seconds {
		n := len(all)
		if n == 0 || all[n-1].Step != s.Step || all[n-1].Phase != s.Phase {
			all = append(all, Phase{Step: s.Step, Phase: s.Phase})
			n++
		}
		p := &all[n-1]
		p.Seconds += s.Seconds
		p.Clients += s.Clients * s.Seconds // divided below
		p.Throughput += float64(s.Moved)
		p.Errors += s.Errors
	}
	for p := range basics.Each(all) {
		p.Clients = stats.Ratio(p.Clients, p.Seconds)
		p.Throughput = stats.Ratio(p.Throughput, p.Seconds)
		p.PerClient = stats.Ratio(p.Throughput, p.Clients)
	}
	return all
}

// EmptyCurve returns the curve of the run before it has steps.
func (d *Run) EmptyCurve() *Curve {
	c := &Curve{Measure: d.measure(), Model: d.Plan.Model}
	if d.Plan.BuiltIn {
		c.PageThreads = d.Plan.Server.Threads
	}
	return c
}

// isIPv6 reports whether a target is an IPv6 address. The address family of a host name is unknown:
// the interface then seems to carry 20 bytes more per packet, as if it had other users.
func isIPv6(target string) bool {
	u, err := url.Parse(target)
	return err == nil && strings.Contains(u.Hostname(), ":")
}

// Payload returns the bytes that an interface carried without headers, and their uncertainty. The
// loopback interface counts each byte twice.
func (d *Run) Payload(n *monitor.Net) (bytes, unsure float64) {
	all, packets := n.Sent, n.PacketsOut
	if n.Name != hosts.Loopback {
		all, packets = all+n.Received, packets+n.PacketsIn
	}
	headers, left := monitor.HeaderBytes(n.Name, d.ipv6)
	return max(0, float64(all-headers*packets)), float64(left * packets)
}

// Overhead returns the number of bytes on the wire per byte of payload, by the drivers' counts of
// the whole run, or 1 if the drivers do not count.
func (d *Run) Overhead() float64 {
	return max(1, stats.Ratio(float64(d.Wire), float64(d.Moved)))
}
