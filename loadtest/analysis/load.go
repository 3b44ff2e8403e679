package analysis

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/monitor"
	"weir/storage"
)

// A second is one interval with its kinds and data servers summed.
type second struct {
	start    time.Time
	seconds  float64
	step     int
	phase    string
	clients  float64
	moved    int64
	done     int64
	errors   int64
	doneBy   [storage.Kinds]int64
	failed   [storage.Classes]int64 // without those that the end of the run canceled
	wrong    int64                  // operations of done whose payload a later check found wrong
	p50, p99 float64                // latency, 0 if nothing ended
	readBack int64                  // bytes that checks read back
	summed   int64                  // bytes of files that checks asked the checksums of

	firstDone, lastDone time.Time // of its operations that ended well; zero in runs that do not record it

	running               float64 // jobs, mean
	work                  float64 // seconds for which jobs computed
	events, ended, broken int64   // broken jobs failed or crashed

	sites map[string]*second // what jobs did at each
}

func (s *second) end() time.Time { return s.start.Add(duration(s.seconds)) }

// A total sums intervals of one step, one kind or one data server. Only those of steps have histograms other than
// Latency, and what follows span.
type total struct {
	measure.Sum
	name    string
	number  int
	span    float64                 // s of measurement time
	seconds []second                // measurement time only, in order
	counts  map[place]*measure.Sum  // without histograms
	servers map[string]*measure.Sum // without histograms
	sites   map[string]*total       // their seconds, Moved, CPU and Jobs
}

// data is a run in memory, its histograms summed by step.
type data struct {
	plan     *scenario.Plan
	about    results.About
	torn     []string
	goesOn   bool     // the run is being written
	ipv6     bool     // the target is an IPv6 address
	seconds  []second // all phases, by time
	steps    map[int]*total
	kinds    map[string]*total
	servers  map[string]*total
	watched  watched
	backends *backends
	events   []*measure.Event
	moved    int64 // all phases
	renewed  int64 // the same
	down, up int64 // measurement time: read and written payload
	wire     int64 // all phases
	back     int   // lines that lie before their predecessor
	hold     float64
	traces   map[place]trace
	twice    int // lines that repeat another
	heat     *heatSum
	service  binned[string, serverCount]
	computed bool // some job computed at some time

	transfers *transferSums // nil: it is no record of transfers

	populations map[string]*data  // intervals of each population by itself, without what the run has but once
	index       map[key]int       // places in seconds
	last        int               // place of the second that the last line was of, -1 before the first
	latency     measure.Histogram // of that second
	near        int               // what after returned last: hosts are sampled at about the same time
}

// newData returns data without intervals.
func newData(plan *scenario.Plan) *data {
	return &data{
		plan: plan, ipv6: isIPv6(plan.Target), steps: map[int]*total{}, kinds: map[string]*total{}, servers: map[string]*total{},
		populations: map[string]*data{}, index: map[key]int{}, last: -1,
	}
}

func load(run *results.Run) (*data, error) { return loadTo(run, nil, nil) }

// loadTo reads run and writes intervals.csv and hosts.csv on the way, where they are wanted.
func loadTo(run *results.Run, intervals, hosts io.Writer) (*data, error) {
	d := newData(run.Plan)
	d.heat, d.service = newHeatSum(), newServerSums()
	d.about, d.torn, d.goesOn = run.About, run.Torn, run.GoesOn
	if err := d.loadIntervals(run, intervals); err != nil {
		return nil, err
	}
	d.finish()
	if err := d.loadTransfers(run); err != nil {
		return nil, err
	}
	d.watching()
	render, write, err := hostTable(hosts)
	if err != nil {
		return nil, err
	}
	if err := run.EachSample(render, func(s *monitor.Sample, row []byte) error {
		d.watch(s)
		return write(row)
	}); err != nil {
		return nil, err
	}
	d.watched.setDisksAside()
	for e, err := range run.Events() {
		if err != nil {
			return nil, err
		}
		d.events = append(d.events, e)
	}
	return d, nil
}

// key tells the lines of one second from those of others.
type key struct {
	start int64
	step  int
	phase string
}

func (d *data) loadIntervals(run *results.Run, table io.Writer) error {
	render, write, err := intervalTable(table)
	if err != nil {
		return err
	}
	var before time.Time // start of the last line
	err = run.EachInterval(render, func(iv *measure.Interval, row []byte) error {
		if iv.Start.Before(before.Add(-2 * time.Millisecond)) {
			d.back++
		}
		before = iv.Start
		d.interval(iv)
		middle := iv.Start.Add(duration(iv.Seconds / 2))
		if iv.Done > 0 {
			d.heat.add(middle, &iv.Latency)
		}
		d.service.at(iv.Server, middle).add(iv.Moved, iv.Done, iv.Errors())
		if d.repeats(d.last, iv) {
			d.twice++
		}
		if p := d.population(iv.Population); p != nil {
			p.interval(iv)
		}
		return write(row)
	})
	d.endSecond()
	return err
}

// interval adds a line of intervals.jsonl to its second and to the sums.
func (d *data) interval(iv *measure.Interval) {
	k := key{iv.Start.UnixNano(), iv.Step, iv.Phase}
	i, ok := d.index[k]
	if !ok {
		i = len(d.seconds)
		d.index[k] = i
		d.seconds = append(d.seconds, second{start: iv.Start, step: iv.Step, phase: iv.Phase})
	}
	if i != d.last {
		d.endSecond()
		d.last = i
	}
	d.latency.Merge(&iv.Latency)
	d.seconds[i].add(iv)
	d.count(iv)
}

// endSecond notes the latency of the second that the last line was of.
func (d *data) endSecond() {
	if d.last >= 0 && d.latency.Count() > 0 {
		d.seconds[d.last].p50, d.seconds[d.last].p99 = d.latency.Quantile(0.5), d.latency.Quantile(0.99)
	}
	d.latency.Reset()
}

func (s *second) add(iv *measure.Interval) {
	s.seconds = max(s.seconds, iv.Seconds)
	s.clients = max(s.clients, iv.Clients)
	s.moved += iv.Moved
	s.readBack += iv.ReadBack
	s.summed += iv.Summed
	s.done += iv.Done
	s.wrong += iv.Wrong
	s.doneBy[iv.Kind] += iv.Done
	if !iv.FirstDone.IsZero() && (s.firstDone.IsZero() || iv.FirstDone.Before(s.firstDone)) {
		s.firstDone = iv.FirstDone
	}
	if iv.LastDone.After(s.lastDone) {
		s.lastDone = iv.LastDone
	}
	s.running = max(s.running, iv.Running)
	s.work += worked(iv)
	s.events += iv.Events
	s.ended += iv.Ended
	s.broken += iv.Lost()
	s.sites = addSites(s.sites, iv, (*second).add)
	for class, n := range iv.Failed {
		if class.Failure() {
			s.errors += n
			s.failed[class] += n
		}
	}
}

// count adds iv to the sums that it belongs to.
func (d *data) count(iv *measure.Interval) {
	d.moved += iv.Moved
	d.renewed += iv.Renewed
	d.wire += iv.Wire
	d.computed = d.computed || worked(iv) > 0
	if iv.Phase != measure.Measured {
		return
	}
	switch iv.Kind {
	case storage.Read:
		d.down += iv.Moved
	case storage.Write:
		d.up += iv.Moved
	}
	step := entryOf(&d.steps, iv.Step)
	step.number = iv.Step
	step.AddHistograms(&iv.Sum)
	entryOf(&step.counts, place{kind: iv.Kind, server: iv.Server}).AddCounts(&iv.Sum)
	step.sites = addSites(step.sites, iv, func(t *total, iv *measure.Interval) { t.Add(&iv.Sum) })
	d.kind(iv.Kind).Latency.Merge(&iv.Latency)
	d.server(iv.Server).Latency.Merge(&iv.Latency)
}

func (d *data) kind(k storage.Kind) *total {
	t := entryOf(&d.kinds, k.String())
	t.name = k.String()
	return t
}

func (d *data) server(name string) *total {
	t := entryOf(&d.servers, name)
	t.name = name
	return t
}

// sumUp adds what was counted apart, by step, kind and server, to the sums that it belongs to; always in the same order, so that sums of
// seconds are the same.
func (d *data) sumUp() {
	for _, number := range slices.Sorted(maps.Keys(d.steps)) {
		step := d.steps[number]
		for _, p := range slices.SortedFunc(maps.Keys(step.counts), func(a, b place) int {
			return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.server, b.server))
		}) {
			counts := step.counts[p]
			step.AddCounts(counts)
			entryOf(&step.servers, p.server).AddCounts(counts)
			d.kind(p.kind).AddCounts(counts)
			d.server(p.server).AddCounts(counts)
		}
	}
}

// finish puts all seconds in order of time and gives each step its seconds.
func (d *data) finish() {
	for _, p := range d.populations {
		p.endSecond()
		p.finish()
	}
	d.sumUp()
	slices.SortStableFunc(d.seconds, func(a, b second) int { return a.start.Compare(b.start) })
	for _, s := range d.seconds {
		if s.phase == measure.Measured && s.seconds > 0 {
			t := entryOf(&d.steps, s.step)
			t.seconds = append(t.seconds, s)
			t.span += s.seconds
			t.heldSites(&s)
			d.hold += s.seconds
		}
	}
	for _, m := range []map[string]*total{d.kinds, d.servers} {
		for _, t := range m {
			t.span = d.hold
		}
	}
}

// held returns the steps that have measurement time, by number.
func (d *data) held() []*total {
	var all []*total
	for _, t := range d.steps {
		if t.span > 0 && !d.repeated(t.number) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *total) int { return cmp.Compare(a.number, b.number) })
	return all
}

// phases sums the seconds phase by phase, in order of time.
func (d *data) phases() []Phase {
	all := []Phase{}
	for _, s := range d.seconds {
		n := len(all)
		if n == 0 || all[n-1].Step != s.step || all[n-1].Phase != s.phase {
			all = append(all, Phase{Step: s.step, Phase: s.phase})
			n++
		}
		p := &all[n-1]
		p.Seconds += s.seconds
		p.Clients += s.clients * s.seconds // divided below
		p.Throughput += float64(s.moved)
		p.Errors += s.errors
	}
	for p := range each(all) {
		p.Clients = ratio(p.Clients, p.Seconds)
		p.Throughput = ratio(p.Throughput, p.Seconds)
		p.PerClient = ratio(p.Throughput, p.Clients)
	}
	return all
}
