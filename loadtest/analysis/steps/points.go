package steps

import (
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/measure"
	"weir/storage"
)

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

	Jobs, Computing    float64 // running jobs; mean number of jobs that computed
	Events             float64 // per second
	JobsDone, JobsLost float64 // per second: completed; crashed or failed
}

// Points returns the intervals as points of a series that begins at start, the kinds of operations
// of which at least one succeeded, and the classes of failures that occurred.
func (d *Run) Points(start time.Time) (all []Point, kinds []storage.Kind, classes []storage.Class) {
	var seen [storage.Kinds]bool
	var failed [storage.Classes]bool
	for x := range basics.Each(d.Seconds) {
		if x.Seconds <= 0 {
			continue
		}
		all = append(all, Point{
			At: x.Start.Sub(start).Seconds() + x.Seconds/2, Seconds: x.Seconds, Step: x.Step, Phase: x.Phase, Clients: x.Clients,
			Throughput: stats.Ratio(float64(x.Moved), x.Seconds), Operations: stats.Ratio(float64(x.Done), x.Seconds),
			Errors: stats.Ratio(float64(x.Errors), x.Seconds), P50: x.p50, P99: x.p99,
			Jobs: x.Running, Computing: stats.Ratio(x.Work, x.Seconds), Events: stats.Ratio(float64(x.Events), x.Seconds),
			JobsDone: stats.Ratio(float64(x.ended), x.Seconds), JobsLost: stats.Ratio(float64(x.broken), x.Seconds),
		})
		p := &all[len(all)-1]
		for k, n := range x.doneBy {
			p.OperationsBy[k] = stats.Ratio(float64(n), x.Seconds)
			seen[k] = seen[k] || n > 0
		}
		by := x.Failed
		by[storage.Checksummed] += x.wrong
		for class, n := range by {
			p.ErrorsBy[class] = stats.Ratio(float64(n), x.Seconds)
			failed[class] = failed[class] || n > 0
		}
	}
	for k, is := range seen {
		if is {
			kinds = append(kinds, storage.Kind(k))
		}
	}
	for class, is := range failed {
		if is {
			classes = append(classes, storage.Class(class))
		}
	}
	return all, kinds, classes
}

// A Distribution is the distribution of the durations of operations, or of jobs, in one step's
// measurement time.
type Distribution struct {
	Step      int
	Quantiles Quantiles
	Bins      []Bin // ascending; empty bins are left out
}

// A Bin has the number of operations that took between From and To seconds.
type Bin struct {
	From, To float64
	Count    int64
}

// Distributions returns the distributions of all steps in which an operation or a job succeeded.
func (d *Run) Distributions(of func(*Total) *measure.Histogram) []Distribution {
	var all []Distribution
	for _, t := range d.Held() {
		if q := QuantilesOf(of(t)); q != nil {
			all = append(all, Distribution{Step: t.Number, Quantiles: *q, Bins: bins(of(t))})
		}
	}
	return all
}

func bins(h *measure.Histogram) []Bin {
	var all []Bin
	h.Buckets(func(from, to float64, count int64) { all = append(all, Bin{from, to, count}) })
	return all
}
