package analysis

import (
	"encoding/csv"
	"io"
	"time"
)

// A BackendSeries is one backend against time.
type BackendSeries struct {
	Name   string
	Points []BackendPoint
}

// A BackendPoint is what one backend did in a stretch of time, which is the same
// for all of them.
type BackendPoint struct {
	At         float64 // seconds from Series.Start to the middle of the stretch
	Seconds    float64 // of it that were measured
	Clients    float64 // mean, of all backends
	Throughput float64 // bytes per second, by Balance.Source; negative: sessions are all that is known
	Sessions   float64 // mean at once; negative: not known
}

// backendBins is what samples tell of one backend against time.
type backendBins struct {
	wire, passed, logged, told map[int64]float64 // bytes
	sessions                   meanBins
}

type meanBins map[int64]*mean

func (m meanBins) at(k int64) *mean {
	if m[k] == nil {
		m[k] = &mean{}
	}
	return m[k]
}

// bin calls f with the bins of a backend and the number of the stretch that holds t.
func (b *backends) bin(place int, t time.Time, f func(x *backendBins, k int64)) {
	k, halved := b.bins.place(t)
	if halved > 0 {
		for _, x := range b.series {
			for _, m := range []*map[int64]float64{&x.wire, &x.passed, &x.logged, &x.told} {
				*m = halve(*m, halved, func(into, from float64) float64 { return into + from })
			}
			x.sessions = halve(x.sessions, halved, func(into, from *mean) *mean {
				into.sum, into.weight = into.sum+from.sum, into.weight+from.weight
				return into
			})
		}
	}
	x := b.series[place]
	if x == nil {
		x = &backendBins{wire: map[int64]float64{}, passed: map[int64]float64{}, logged: map[int64]float64{}, told: map[int64]float64{}, sessions: meanBins{}}
		b.series[place] = x
	}
	f(x, k)
}

// backendSeries lists the backends of f in their order, each in order of time;
// nil if there are none.
func (d *data) backendSeries(f *Balance, start time.Time) []BackendSeries {
	if f == nil {
		return nil
	}
	bins := &d.backends.bins
	if f.Source == ByClients || bins.width == 0 {
		bins = &d.service.bins
	}
	spans, middles := d.covered(bins, start)
	clients := d.clientsIn(bins)
	var all []BackendSeries
	for i := range f.Backends {
		one := BackendSeries{Name: f.Backends[i].Name}
		place := f.Backends[i].place
		for n, span := range spans {
			if span <= 0 {
				continue // nothing was measured
			}
			k := bins.lo + int64(n)
			p := BackendPoint{At: middles[n], Seconds: span, Clients: ratio(clients[n], span), Sessions: -1}
			if p.Throughput = ratio(d.backendBytes(f.Source, place, k), span); f.Source == BySessions {
				p.Throughput = -1
			}
			if x := d.backends.series[place]; x != nil && bins == &d.backends.bins {
				p.sessions(x, k)
			} else if x != nil {
				p.sessionsNear(x, bins, &d.backends.bins, k)
			}
			one.Points = append(one.Points, p)
		}
		all = append(all, one)
	}
	return all
}

func (p *BackendPoint) sessions(x *backendBins, k int64) {
	if m := x.sessions[k]; m != nil && m.weight > 0 {
		p.Sessions = m.or0()
	}
}

// sessionsNear looks where other stretches than those of the samples are shown.
func (p *BackendPoint) sessionsNear(x *backendBins, shown, own *timeBins, k int64) {
	if own.width == 0 {
		return
	}
	sum := mean{}
	for at := k * shown.width; at < (k+1)*shown.width; at += min(own.width, shown.width) {
		if m := x.sessions[floor(at, own.width)]; m != nil && m.weight > 0 {
			sum.add(m.or0(), 1)
		}
	}
	if sum.weight > 0 {
		p.Sessions = sum.or0()
	}
}

// clientsIn returns the seconds of clients in each stretch.
func (d *data) clientsIn(b *timeBins) []float64 {
	if b.width == 0 {
		return nil
	}
	all := make([]float64, b.hi-b.lo+1)
	for i := range d.seconds {
		x := &d.seconds[i]
		if k := floor(x.start.Add(duration(x.seconds/2)).UnixNano(), b.width) - b.lo; k >= 0 && k < int64(len(all)) {
			all[k] += x.clients * x.seconds
		}
	}
	return all
}

// backendBytes is what a source tells of a backend in one stretch.
func (d *data) backendBytes(source string, place int, k int64) float64 {
	if source == ByClients {
		sum := 0.0
		for name, counts := range d.service.names {
			if c := counts[k]; c != nil && name != "" && d.backends.place(name) == place {
				sum += float64(c.moved)
			}
		}
		return sum
	}
	x := d.backends.series[place]
	if x == nil {
		return 0
	}
	return map[string]map[int64]float64{ByLog: x.logged, ByInterface: x.wire, ByBalancer: x.passed, ByItself: x.told}[source][k]
}

// BackendsCSV writes what each backend did against time, one line for each
// backend and stretch of time; each header names its unit.
func BackendsCSV(w io.Writer, s *Series) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"time", "duration_seconds", "clients", "backend", "throughput_bytes_per_second", "sessions",
		"sum_bytes_per_second", "sum_per_client_bytes_per_second"}); err != nil {
		return err
	}
	for i := range s.Backends[0].Points {
		sum := 0.0
		for k := range s.Backends {
			sum += s.Backends[k].Points[i].Throughput
		}
		for k := range s.Backends {
			p := &s.Backends[k].Points[i]
			at := s.Start.Add(duration(p.At - p.Seconds/2)).UTC().Format(time.RFC3339Nano)
			if err := out.Write([]string{at, number(p.Seconds), number(p.Clients), text(s.Backends[k].Name), unlessNegative(p.Throughput),
				unlessNegative(p.Sessions), unlessNegative(sum), unlessNegative(ratio(sum, p.Clients))}); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// unlessNegative is nothing for what is not known.
func unlessNegative(x float64) string {
	if x < 0 {
		return ""
	}
	return number(x)
}
