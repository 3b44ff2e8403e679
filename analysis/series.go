package analysis

import (
	"math"
	"time"

	"weir/measure"
	"weir/monitor"
	"weir/results"
	"weir/scenario"
	"weir/storage"
)

// A Series is a run against time, for plots and tables.
type Series struct {
	Plan   *scenario.Plan
	About  results.About
	Start  time.Time // of the first interval
	Points []Point
	Hosts  []HostSeries
	Events []measure.Event

	Kinds     []storage.Kind // of operations that ended well at any time
	Latencies []Distribution // of the steps' hold times, by step
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

	OperationsBy [storage.Kinds]float64 // per second, by kind
	P50, P99     float64                // latency in seconds, 0 if nothing ended
}

// A HostSeries is one host against time.
type HostSeries struct {
	Host, Role string
	Cores      int
	Points     []HostPoint
}

// A HostPoint is one sample of a host. CPU and the like are shares; Cores are
// numbers of busy cores; negative values are unknown.
type HostPoint struct {
	At                       float64 // seconds from Series.Start to the end of the sample
	CPU, IOWait              float64
	ServerCores, ClientCores float64
	DiskBusy                 float64 // of the busiest disk
	DiskBytes                float64 // read and written, per second
	NetBytes                 float64 // received and sent, per second; through loopback if that is more
}

// Both analyses run as Of does, and returns its time series besides.
func Both(run *results.Run) (*Findings, *Series, error) {
	d, err := load(run)
	if err != nil {
		return nil, nil, err
	}
	return d.findings(), d.series(), nil
}

func (d *data) series() *Series {
	s := &Series{Plan: d.plan, About: d.about, Start: d.begin(), Hosts: d.watched.hostSeries()}
	s.Latencies = d.distributions()
	var seen [storage.Kinds]bool
	for i := range d.seconds {
		x := &d.seconds[i]
		if x.seconds <= 0 {
			continue
		}
		s.Points = append(s.Points, Point{
			At: x.start.Sub(s.Start).Seconds() + x.seconds/2, Seconds: x.seconds, Step: x.step, Phase: x.phase, Clients: x.clients,
			Throughput: ratio(float64(x.moved), x.seconds), Operations: ratio(float64(x.done), x.seconds),
			Errors: ratio(float64(x.errors), x.seconds), P50: x.p50, P99: x.p99,
		})
		p := &s.Points[len(s.Points)-1]
		for k, n := range x.doneBy {
			p.OperationsBy[k] = ratio(float64(n), x.seconds)
			seen[k] = seen[k] || n > 0
		}
	}
	for k, is := range seen {
		if is {
			s.Kinds = append(s.Kinds, storage.Kind(k))
		}
	}
	for _, e := range d.events {
		s.Events = append(s.Events, *e)
	}
	return s
}

func hostPoint(s *monitor.Sample, start time.Time) HostPoint {
	k := lookAt(s)
	known := func(x float64) float64 {
		if math.IsNaN(x) {
			return -1
		}
		return x
	}
	net := max(k.received, k.back) + max(k.sent, k.looped)
	if k.looped > 0 && k.looped >= k.sent {
		net = k.looped // loopback counts each byte on both sides
	}
	return HostPoint{At: s.Time.Sub(start).Seconds(), CPU: known(k.cpu), IOWait: known(k.iowait),
		ServerCores: known(k.serverCores), ClientCores: known(k.clientCores), DiskBusy: known(k.diskBusy),
		DiskBytes: k.diskRead + k.diskWrite, NetBytes: net}
}

// A Distribution is how long the operations of one step's hold time took.
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

// distributions returns those of all steps in which operations ended well.
func (d *data) distributions() []Distribution {
	var all []Distribution
	for _, t := range d.held() {
		if q := quantiles(&t.latency); q != nil {
			all = append(all, Distribution{Step: t.number, Quantiles: *q, Bins: bins(&t.latency)})
		}
	}
	return all
}

func bins(h *measure.Histogram) []Bin {
	var all []Bin
	h.Buckets(func(from, to float64, count int64) { all = append(all, Bin{from, to, count}) })
	return all
}
