package analysis

import (
	"math"

	"weir/internal/stats"
	"weir/loadtest/analysis/fit"
	"weir/loadtest/analysis/shape"
)

// understand fills in what the curve says: the optimum, the models, the knee and the loads that are singled out.
// Without a step at which anything went well there are none. Where loads certainly give another result on the way down,
// the way up alone says what the service gives.
func (f *Findings) understand() {
	points := f.points()
	f.Hysteresis = f.hysteresis(points)
	if f.returned() != nil {
		whole := f.Curve
		defer func() { f.Curve = whole }()
		points = points[:shape.Rise(points)]
		f.Curve = f.Curve[:len(points)]
	}
	o, ok := shape.OptimumOf(points)
	if !ok {
		return
	}
	f.Optimum = f.optimum(o)
	f.Optimum.Unclear = f.unclear(f.numbered(f.Optimum.Step))
	fits := f.fit(points)
	if fits != nil {
		f.Fits = fits
		if fits.Unfit != "" {
			f.Fits = &Fits{Unfit: fits.Unfit, Detail: fits.Detail, Lacking: fits.Lacking}
		}
	}
	f.Optimum.Peak = f.peak(fits)
	f.Knee = f.knee(o, points, fits)
	f.Power = f.operating(shape.Power(points), "tested step with the most throughput over mean latency")
	f.Collapse = f.collapse(points, o.Best)
}

// points are the steps as package shape sees them.
func (f *Findings) points() []shape.Point {
	all := make([]shape.Point, len(f.Curve))
	for i := range f.Curve {
		s := &f.Curve[i]
		mean, low, high := f.yield(s)
		all[i] = shape.Point{Load: f.load(s), Yield: mean, Low: low, High: high, Batches: s.Batches, Errors: s.unwell()}
		if s.Latency != nil {
			all[i].Latency = s.Latency.Mean
		}
	}
	return all
}

// fit lays the models through the steps with few errors; nil in the open model, where throughput is what was asked
// for until the service is full, and where there is nothing to fit.
func (f *Findings) fit(of []shape.Point) *fit.Fits {
	if f.Open() {
		return nil
	}
	var points []fit.Point
	few := shape.FewErrors(of)
	for s := range each(f.Curve) {
		mean, _, _ := f.yield(s)
		if s.unwell() > few || s.ActiveClients <= 0 || mean <= 0 {
			continue
		}
		p := fit.Point{Clients: s.at(), Yield: mean, Batches: s.means}
		if _, high := f.bounds(s); f.Correlation > 0 {
			p.Error = ratio(high-mean, stats.Student(float64(s.Batches-1)))
		}
		if s.thinkSeconds > 0 {
			p.Busy = min(p.Clients, ratio(s.busySeconds, s.Duration))
		}
		points = append(points, p)
	}
	if len(points) == 0 {
		return nil
	}
	fits, err := fit.Of(points, fit.Options{})
	if err != nil {
		f.Warnings = append(f.Warnings, "no model was fitted to the curve: "+err.Error())
		return nil
	}
	if left := len(f.Curve) - len(points); left > 0 {
		fits.Detail += "; steps with more than 5% errors" + map[bool]string{true: ", or jobs that were not completed,"}[f.OfJobs()] +
			" were left out"
	}
	return fits
}

// at is the number of clients that a step represents on a curve: the planned one, or what a table says, which need
// not be whole.
func (s *Step) at() float64 {
	if !s.fromTable && s.Clients > 0 && math.Abs(s.ActiveClients-float64(s.Clients)) < 0.5 {
		return float64(s.Clients)
	}
	return s.ActiveClients
}

// operating singles out step i; nil if there is none.
func (f *Findings) operating(i int, how string) *Operating {
	if i < 0 {
		return nil
	}
	s := &f.Curve[i]
	o := &Operating{Step: s.Step, Clients: s.Clients, Throughput: s.Throughput, Operations: s.Operations, Method: how}
	if s.Latency != nil {
		o.Latency = s.Latency.Mean
	}
	return o
}
