package analysis

import (
	"math"
	"slices"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/fit"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/analysis/steps"
)

// A conclusion holds the findings that follow from a curve while they are computed.
type conclusion struct {
	*Findings
	c         *steps.Curve
	resources limits.Resources
}

// understand fills in the findings on the whole curve: the optimum, the models, the knee and the
// special loads. Without a step with successful operations there are no such findings. If some
// loads certainly give another result on the way down, only the way up counts.
func (f *conclusion) understand() {
	points := f.c.Points()
	f.Hysteresis = f.hysteresis(points)
	if f.returned() != nil {
		whole := f.c
		defer func() { f.c = whole }()
		points = points[:shape.Rise(points)]
		f.c = f.c.With(f.c.Steps[:len(points)])
	}
	o, ok := shape.OptimumOf(points)
	if !ok {
		return
	}
	f.Optimum = f.optimum(o)
	f.Optimum.Unclear = unclear(f.c, f.c.Numbered(f.Optimum.Step))
	fits := f.fit(points)
	if fits != nil {
		f.Fits = fits
		if fits.Unfit != "" {
			f.Fits = &Fits{Unfit: fits.Unfit, Detail: fits.Detail, Facts: fits.Facts, Lacking: fits.Lacking}
		}
	}
	f.Optimum.Peak = f.peak(fits)
	f.Knee = f.knee(o, points, fits)
	f.Power = f.operating(shape.Power(points), fact.New("verdict.method.power").Text)
	f.Collapse = f.collapse(points, o.Best)
}

// fit fits the models to the steps with few errors. It returns nil in the open model, in which the
// throughput equals the planned load until the service is saturated, and if no such steps are left.
func (f *conclusion) fit(of []shape.Point) *fit.Fits {
	if f.c.Open() {
		return nil
	}
	var points []fit.Point
	few := shape.FewErrors(of)
	for _, s := range f.c.Steps {
		mean, _, _ := f.c.Yield(s)
		if s.Unwell() > few || s.ActiveClients <= 0 || mean <= 0 {
			continue
		}
		p := fit.Point{Clients: f.c.ClientsAt(s), Yield: mean, Batches: s.Means}
		if _, high := f.c.Bounds(s); f.Correlation > 0 {
			p.Error = stats.Ratio(high-mean, stats.Student(float64(s.Batches-1)))
		}
		if s.ThinkSeconds > 0 {
			p.Busy = min(p.Clients, stats.Ratio(s.BusySeconds, s.Duration))
		}
		points = append(points, p)
	}
	if len(points) == 0 {
		return nil
	}
	fits, err := fit.Of(points, fit.Options{})
	if err != nil {
		f.addFact("warning.no_model", "error", err.Error())
		return nil
	}
	if left := len(f.c.Steps) - len(points); left > 0 {
		fits.AddLeftOut(f.c.OfJobs())
	}
	return fits
}

// best returns the index of the optimum's step in the curve, -1 without an optimum.
func (f *conclusion) best() int {
	if f.Optimum == nil {
		return -1
	}
	return slices.IndexFunc(f.c.Steps, func(s *steps.Working) bool { return s.Step == f.Optimum.Step })
}

// operating returns step i as an operating point, nil if i is negative.
func (f *conclusion) operating(i int, how string) *Operating {
	if i < 0 {
		return nil
	}
	s := f.c.Steps[i]
	o := &Operating{Step: s.Step, Clients: s.Clients, Throughput: s.Throughput, Operations: s.Operations, Method: how}
	if s.Latency != nil {
		o.Latency = s.Latency.Mean
	}
	return o
}

// returned returns the load with the largest certain difference between the way up and the way
// down, nil without such a difference.
func (f *conclusion) returned() *Hysteresis {
	var most *Hysteresis
	for h := range basics.Each(f.Hysteresis) {
		if h.Certain && (most == nil || math.Abs(h.Change) > math.Abs(most.Change)) {
			most = h
		}
	}
	return most
}

func (f *conclusion) hysteresis(points []shape.Point) []Hysteresis {
	all := []Hysteresis{}
	for _, r := range shape.Hysteresis(points) {
		up, down := f.c.Steps[r.Up], f.c.Steps[r.Down]
		all = append(all, Hysteresis{Clients: up.Clients, Up: up.Step, Down: down.Step, Change: r.Change, Certain: r.Certain})
	}
	return all
}

// partFits fits fourth-order functions to the parts of all steps: the yield against the number of
// active clients, and the yield per client. It returns nil if there are too few parts.
func (f *Findings) partFits() *PartFits {
	of := func(each bool) *Fit {
		var points []fit.Point
		for _, p := range f.Subintervals {
			y := p.Throughput
			if f.Measure == steps.Rate {
				y = p.Operations
			}
			if p.Clients <= 0 || y <= 0 {
				continue
			}
			if each {
				y /= p.Clients
			}
			points = append(points, fit.Point{Clients: p.Clients, Yield: y})
		}
		fits, err := fit.Of(points, fit.Options{})
		if err != nil || fits.Poly4 == nil {
			return nil
		}
		fits.Poly4.Band = nil // it need not be the best model here
		return fits.Poly4
	}
	if p := (&PartFits{Total: of(false), Each: of(true)}); p.Total != nil || p.Each != nil {
		return p
	}
	return nil
}
