package analysis

import (
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/storage"
)

// A Series is a run against time, for plots and tables.
type Series struct {
	Plan     *scenario.Plan
	About    results.About
	Start    time.Time // of the first interval
	Points   []Point
	Hosts    []HostSeries
	Servers  []ServerSeries  // nil: the target did all itself
	Backends []BackendSeries // nil: fewer than two are known
	Events   []measure.Event

	Programs []Program // that servers say they run

	Kinds     []storage.Kind  // of operations that ended well at any time
	Classes   []storage.Class // of failures that there were
	Latencies []Distribution  // of the steps' measurement times, by step
	JobTimes  []Distribution  // wall clock times of jobs, by step
	Heat      *Heat           // nil: no operation ended well
}

// A Point is one interval, summed over kinds and data servers.
type Point struct {
	At         float64 // seconds from Series.Start to the interval's middle
	Seconds    float64
	Step       int
	Phase      string
	Clients    float64
	Throughput float64 // bytes per second
	Operations float64 // per second
	Errors     float64 // per second

	OperationsBy [storage.Kinds]float64   // per second, by kind
	ErrorsBy     [storage.Classes]float64 // per second, by class of failure
	P50, P99     float64                  // latency in seconds, 0 if nothing ended

	Jobs, Computing    float64 // jobs that were running; how many of them computed, mean
	Events             float64 // per second
	JobsDone, JobsLost float64 // per second: that came to their end; that crashed or failed
}

// AnalyzeWithSeries analyses run as Analyze does, and returns its time series besides.
func AnalyzeWithSeries(run *results.Run) (*Findings, *Series, error) {
	d, err := load(run)
	if err != nil {
		return nil, nil, err
	}
	f := d.findings()
	return f, d.series(f), nil
}

func (d *data) series(f *Findings) *Series {
	s := &Series{Plan: d.plan, About: d.about, Start: d.begin(), Hosts: d.watched.hostSeries(), Programs: d.watched.programs()}
	s.Latencies = d.distributions(func(t *total) *measure.Histogram { return &t.Latency })
	s.JobTimes = d.distributions(func(t *total) *measure.Histogram { return &t.Wall })
	var seen [storage.Kinds]bool
	var failed [storage.Classes]bool
	for x := range each(d.seconds) {
		if x.seconds <= 0 {
			continue
		}
		s.Points = append(s.Points, Point{
			At: x.start.Sub(s.Start).Seconds() + x.seconds/2, Seconds: x.seconds, Step: x.step, Phase: x.phase, Clients: x.clients,
			Throughput: ratio(float64(x.moved), x.seconds), Operations: ratio(float64(x.done), x.seconds),
			Errors: ratio(float64(x.errors), x.seconds), P50: x.p50, P99: x.p99,
			Jobs: x.running, Computing: ratio(x.work, x.seconds), Events: ratio(float64(x.events), x.seconds),
			JobsDone: ratio(float64(x.ended), x.seconds), JobsLost: ratio(float64(x.broken), x.seconds),
		})
		p := &s.Points[len(s.Points)-1]
		for k, n := range x.doneBy {
			p.OperationsBy[k] = ratio(float64(n), x.seconds)
			seen[k] = seen[k] || n > 0
		}
		by := x.failed
		by[storage.Checksummed] += x.wrong
		for class, n := range by {
			p.ErrorsBy[class] = ratio(float64(n), x.seconds)
			failed[class] = failed[class] || n > 0
		}
	}
	for k, is := range seen {
		if is {
			s.Kinds = append(s.Kinds, storage.Kind(k))
		}
	}
	for class, is := range failed {
		if is {
			s.Classes = append(s.Classes, storage.Class(class))
		}
	}
	if n := len(s.Points); n > 0 {
		s.Heat = d.heat.heat(s.Start, s.Points[n-1].At+s.Points[n-1].Seconds/2)
		s.Servers = d.serverSeries(s.Start)
		s.Backends = d.backendSeries(f.Balance, s.Start)
	}
	for _, e := range d.events {
		s.Events = append(s.Events, *e)
	}
	return s
}

// A Distribution is how long the operations, or the jobs, of one step's measurement time took.
type Distribution struct {
	Step      int
	Quantiles Quantiles
	Bins      []Bin // ascending, without gaps of their own making: empty ones are left out
}

// A Bin is how many operations took between From and To seconds.
type Bin struct {
	From, To float64
	Count    int64
}

// distributions returns those of all steps in which something ended well.
func (d *data) distributions(of func(*total) *measure.Histogram) []Distribution {
	var all []Distribution
	for _, t := range d.held() {
		if q := QuantilesOf(of(t)); q != nil {
			all = append(all, Distribution{Step: t.number, Quantiles: *q, Bins: bins(of(t))})
		}
	}
	return all
}

func bins(h *measure.Histogram) []Bin {
	var all []Bin
	h.Buckets(func(from, to float64, count int64) { all = append(all, Bin{from, to, count}) })
	return all
}
