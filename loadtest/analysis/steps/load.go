package steps

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/storage"
)

// A Second is one interval with its kinds and data servers summed.
type Second struct {
	Start    time.Time
	Seconds  float64
	Step     int
	Phase    string
	Clients  float64
	Moved    int64
	Done     int64
	Errors   int64
	doneBy   [storage.Kinds]int64
	Failed   [storage.Classes]int64 // without operations canceled by the end of the run
	wrong    int64                  // operations of done whose payload a later check found wrong
	p50, p99 float64                // latency, 0 if no operation ended
	ReadBack int64                  // bytes that checks read back
	Summed   int64                  // bytes of files whose checksums were requested by checks

	FirstDone, LastDone time.Time // of its successful operations; zero for runs that do not record it

	Running               float64 // jobs, mean
	Work                  float64 // computing time of jobs in seconds
	Events, ended, broken int64   // broken jobs failed or crashed

	sites map[string]*Second // the jobs of each site
}

// End returns the end of the second.
func (s *Second) End() time.Time { return s.Start.Add(basics.Duration(s.Seconds)) }

// A Total sums intervals of one step, one kind or one data server. Only totals of steps have
// histograms other than Latency, and the fields after Span.
type Total struct {
	measure.Sum
	name    string
	Number  int
	Span    float64                 // s of measurement time
	Seconds []Second                // measurement time only, in order
	counts  map[place]*measure.Sum  // without histograms
	Servers map[string]*measure.Sum // without histograms
	sites   map[string]*Total       // their seconds, Moved, CPU and Jobs
}

// key identifies the lines of one second.
type key struct {
	start int64
	step  int
	phase string
}

func (d *Run) loadIntervals(run *results.Run, render func([]byte, *measure.Interval) []byte, write func([]byte) error) error {
	var before time.Time // start of the last line
	err := run.EachInterval(render, func(iv *measure.Interval, row []byte) error {
		if iv.Start.Before(before.Add(-2 * time.Millisecond)) {
			d.Back++
		}
		before = iv.Start
		d.interval(iv)
		middle := iv.Start.Add(basics.Duration(iv.Seconds / 2))
		if iv.Done > 0 {
			d.Heat.add(middle, &iv.Latency)
		}
		d.Service.At(iv.Server, middle).add(iv.Moved, iv.Done, iv.Errors())
		if d.repeats(d.last, iv) {
			d.Twice++
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
func (d *Run) interval(iv *measure.Interval) {
	k := key{iv.Start.UnixNano(), iv.Step, iv.Phase}
	i, ok := d.index[k]
	if !ok {
		i = len(d.Seconds)
		d.index[k] = i
		d.Seconds = append(d.Seconds, Second{Start: iv.Start, Step: iv.Step, Phase: iv.Phase})
	}
	if i != d.last {
		d.endSecond()
		d.last = i
	}
	d.latency.Merge(&iv.Latency)
	d.Seconds[i].Add(iv)
	d.count(iv)
}

// endSecond stores the latency of the second of the last line.
func (d *Run) endSecond() {
	if d.last >= 0 && d.latency.Count() > 0 {
		d.Seconds[d.last].p50, d.Seconds[d.last].p99 = d.latency.Quantile(0.5), d.latency.Quantile(0.99)
	}
	d.latency.Reset()
}

// Add adds an interval of the second.
func (s *Second) Add(iv *measure.Interval) {
	s.Seconds = max(s.Seconds, iv.Seconds)
	s.Clients = max(s.Clients, iv.Clients)
	s.Moved += iv.Moved
	s.ReadBack += iv.ReadBack
	s.Summed += iv.Summed
	s.Done += iv.Done
	s.wrong += iv.Wrong
	s.doneBy[iv.Kind] += iv.Done
	if !iv.FirstDone.IsZero() && (s.FirstDone.IsZero() || iv.FirstDone.Before(s.FirstDone)) {
		s.FirstDone = iv.FirstDone
	}
	if iv.LastDone.After(s.LastDone) {
		s.LastDone = iv.LastDone
	}
	s.Running = max(s.Running, iv.Running)
	s.Work += worked(iv)
	s.Events += iv.Events
	s.ended += iv.Ended
	s.broken += iv.Lost()
	s.sites = addSites(s.sites, iv, (*Second).Add)
	for class, n := range iv.Failed {
		if class.Failure() {
			s.Errors += n
			s.Failed[class] += n
		}
	}
}

// count adds iv to the sums that it belongs to.
func (d *Run) count(iv *measure.Interval) {
	d.Moved += iv.Moved
	d.Renewed += iv.Renewed
	d.Wire += iv.Wire
	d.computed = d.computed || worked(iv) > 0
	if iv.Phase != measure.Measured {
		return
	}
	switch iv.Kind {
	case storage.Read:
		d.Down += iv.Moved
	case storage.Write:
		d.Up += iv.Moved
	case storage.Copy:
		d.Copied += iv.Moved
	}
	step := basics.EntryOf(&d.Steps, iv.Step)
	step.Number = iv.Step
	step.AddHistograms(&iv.Sum)
	basics.EntryOf(&step.counts, place{kind: iv.Kind, server: iv.Server}).AddCounts(&iv.Sum)
	step.sites = addSites(step.sites, iv, func(t *Total, iv *measure.Interval) { t.Add(&iv.Sum) })
	d.kind(iv.Kind).Latency.Merge(&iv.Latency)
	d.server(iv.Server).Latency.Merge(&iv.Latency)
}

func (d *Run) kind(k storage.Kind) *Total {
	t := basics.EntryOf(&d.Kinds, k.String())
	t.name = k.String()
	return t
}

func (d *Run) server(name string) *Total {
	t := basics.EntryOf(&d.Servers, name)
	t.name = name
	return t
}

// sumUp adds the counts by step, kind and server to their sums, always in the same order, so that
// sums of seconds are reproducible.
func (d *Run) sumUp() {
	for _, number := range slices.Sorted(maps.Keys(d.Steps)) {
		step := d.Steps[number]
		for _, p := range slices.SortedFunc(maps.Keys(step.counts), func(a, b place) int {
			return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.server, b.server))
		}) {
			counts := step.counts[p]
			step.AddCounts(counts)
			basics.EntryOf(&step.Servers, p.server).AddCounts(counts)
			d.kind(p.kind).AddCounts(counts)
			d.server(p.server).AddCounts(counts)
		}
	}
}

// finish puts all seconds in order of time and gives each step its seconds.
func (d *Run) finish() {
	for _, p := range d.populations {
		p.endSecond()
		p.finish()
	}
	d.sumUp()
	slices.SortStableFunc(d.Seconds, func(a, b Second) int { return a.Start.Compare(b.Start) })
	for _, s := range d.Seconds {
		if s.Phase == measure.Measured && s.Seconds > 0 {
			t := basics.EntryOf(&d.Steps, s.Step)
			t.Seconds = append(t.Seconds, s)
			t.Span += s.Seconds
			t.heldSites(&s)
			d.Hold += s.Seconds
		}
	}
	for _, m := range []map[string]*Total{d.Kinds, d.Servers} {
		for _, t := range m {
			t.Span = d.Hold
		}
	}
}

// A place identifies the intervals of a second: at most one interval of a second has the same
// place.
type place struct {
	kind       storage.Kind
	server     string
	population string
}

// A trace has the counts of the last interval of a place, and the index of its second.
type trace struct {
	second             int
	moved, begun, done int64
}

// repeats reports whether iv is a repeated line of the file, for example after a failed copy: the
// same second, place and counts, which are not all zero.
func (d *Run) repeats(second int, iv *measure.Interval) bool {
	p, t := place{iv.Kind, iv.Server, iv.Population}, trace{second, iv.Moved, iv.Begun, iv.Done}
	if d.traces == nil {
		d.traces = map[place]trace{}
	}
	again := d.traces[p] == t && iv.Moved+iv.Begun+iv.Done > 0
	d.traces[p] = t
	return again
}
