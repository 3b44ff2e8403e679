package limits

import (
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
)

// A BackendSeries contains the figures of one backend over time.
type BackendSeries struct {
	Name   string
	Points []BackendPoint
}

// A BackendPoint has the figures of one backend in a stretch of time. All backends have the same
// stretches.
type BackendPoint struct {
	At         float64 // seconds from Series.Start to the middle of the stretch
	Seconds    float64 // measured seconds of the stretch
	Clients    float64 // mean, of all backends
	Throughput float64 // bytes per second, by Balance.Source; negative: only sessions are known
	Sessions   float64 // mean number of concurrent sessions; negative: not known
}

// Series returns the series of the backends of f, each in the order of time; nil without backends.
func (bs *Backends) Series(f *Balance, start time.Time) []BackendSeries {
	if f == nil {
		return nil
	}
	own := &bs.series
	bins := &own.TimeBins
	if f.Source == ByClients || bins.Width == 0 {
		bins = &bs.run.Service.TimeBins
	}
	spans, middles := bs.run.Covered(bins, start)
	clients := bs.run.PerStretch(bins, func(x *steps.Second, _ time.Time) float64 { return x.Clients })
	seen := bs.clientBytes()
	var all []BackendSeries
	for b := range basics.Each(f.Backends) {
		one := BackendSeries{Name: b.Name}
		for n, span := range spans {
			if span <= 0 {
				continue // nothing was measured
			}
			k := bins.Lo + int64(n)
			p := BackendPoint{At: middles[n], Seconds: span, Clients: stats.Ratio(clients[n], span), Sessions: -1}
			switch x := own.Of[b.place][k]; {
			case f.Source == BySessions:
				p.Throughput = -1
			case f.Source == ByClients:
				p.Throughput = stats.Ratio(seen[b.place][k], span)
			case x != nil:
				p.Throughput = stats.Ratio(x.bytes[f.Source], span)
			}
			if sessions := sessionsDuring(own, b.place, k*bins.Width, (k+1)*bins.Width); sessions != nil {
				p.Sessions = *sessions
			}
			one.Points = append(one.Points, p)
		}
		all = append(all, one)
	}
	return all
}

// sessionsDuring returns the mean number of concurrent sessions of the backend at place, in the
// stretches of b between two moments; nil if no number is known.
func sessionsDuring(b *steps.Binned[int, backendCount], place int, from, to int64) *float64 {
	var sum hosts.Mean
	for at := from; at < to && b.Width > 0; at += min(b.Width, to-from) {
		if x := b.Of[place][steps.Floor(at, b.Width)]; x != nil && x.sessions.Weight > 0 {
			sum.Add(x.sessions.Or0(), 1)
		}
	}
	return sum.Value()
}
