package analysis

import "time"

// A BackendSeries is one backend against time.
type BackendSeries struct {
	Name   string
	Points []BackendPoint
}

// A BackendPoint is what one backend did in a stretch of time, which is the same for all of them.
type BackendPoint struct {
	At         float64 // seconds from Series.Start to the middle of the stretch
	Seconds    float64 // of it that were measured
	Clients    float64 // mean, of all backends
	Throughput float64 // bytes per second, by Balance.Source; negative: sessions are all that is known
	Sessions   float64 // mean at once; negative: not known
}

// backendSeries lists the backends of f in their order, each in order of time; nil if there are none.
func (d *data) backendSeries(f *Balance, start time.Time) []BackendSeries {
	if f == nil {
		return nil
	}
	own := &d.backends.series
	bins := &own.timeBins
	if f.Source == ByClients || bins.width == 0 {
		bins = &d.service.timeBins
	}
	spans, middles := d.covered(bins, start)
	clients := d.perStretch(bins, func(x *second, _ time.Time) float64 { return x.clients })
	seen := d.clientBytes()
	var all []BackendSeries
	for b := range each(f.Backends) {
		one := BackendSeries{Name: b.Name}
		for n, span := range spans {
			if span <= 0 {
				continue // nothing was measured
			}
			k := bins.lo + int64(n)
			p := BackendPoint{At: middles[n], Seconds: span, Clients: ratio(clients[n], span), Sessions: -1}
			switch x := own.of[b.place][k]; {
			case f.Source == BySessions:
				p.Throughput = -1
			case f.Source == ByClients:
				p.Throughput = ratio(seen[b.place][k], span)
			case x != nil:
				p.Throughput = ratio(x.bytes[f.Source], span)
			}
			if sessions := sessionsDuring(own, b.place, k*bins.width, (k+1)*bins.width); sessions != nil {
				p.Sessions = *sessions
			}
			one.Points = append(one.Points, p)
		}
		all = append(all, one)
	}
	return all
}

// sessionsDuring returns the mean of the sessions at once of the backend at place, in the stretches of b that lie
// between two moments; nil if nothing is known.
func sessionsDuring(b *binned[int, backendCount], place int, from, to int64) *float64 {
	var sum mean
	for at := from; at < to && b.width > 0; at += min(b.width, to-from) {
		if x := b.of[place][floor(at, b.width)]; x != nil && x.sessions.weight > 0 {
			sum.add(x.sessions.or0(), 1)
		}
	}
	return sum.value()
}
