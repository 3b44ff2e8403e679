package analysis

import (
	"math"
	"strings"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/fit"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/analysis/steps"
)

// optimum converts the optimum of the points into the Optimum of findings.json.
func (f *conclusion) optimum(o shape.Optimum) *Optimum {
	s := f.c.Steps[o.Least]
	out := &Optimum{Step: s.Step, Clients: s.Clients, ClientsLow: f.c.Steps[o.Low()].Clients, ClientsHigh: f.c.Steps[o.High()].Clients,
		Throughput: s.Throughput, Low: s.ThroughputLow, High: s.ThroughputHigh, Operations: s.Operations, Inside: o.Inside,
		Method: fact.New("verdict.method.optimum").Text}
	for _, i := range o.Equals {
		out.Equals = append(out.Equals, f.c.Steps[i].Step)
	}
	return out
}

// peak returns the maximum of the model that describes the curve, nil if its place is not certain,
// or if the measured steps have their maximum elsewhere.
func (f *conclusion) peak(fits *fit.Fits) *Estimate {
	if !f.Optimum.Inside || !describes(fits) {
		return nil
	}
	m := fits.Named(fits.Best)
	if m.Max == nil || m.Max.Clients.Low == nil || m.Max.Clients.High == nil {
		return nil
	}
	top := 0.0
	for _, s := range f.c.Steps {
		_, high := f.c.Bounds(s)
		top = max(top, high)
	}
	if m.Max.Yield.Value > (1+disagree)*top {
		return nil
	}
	return new(m.Max.Clients)
}

// disagree is the largest share by which the maximum of a model may lie above all measured values
// if its place is to be credible.
const disagree = 0.1

// describes reports whether a model describes the curve.
func describes(fits *fit.Fits) bool {
	return fits != nil && fits.Unfit == "" && fits.Named(fits.Best) != nil
}

// knee returns the knee of the model that describes the curve, or the tested step at the knee of
// the curve. It returns nil if there is no knee, or no model describes the curve.
func (f *conclusion) knee(o shape.Optimum, points []shape.Point, fits *fit.Fits) *Knee {
	lightest := f.c.LoadOf(f.c.Steps[f.c.Lightest()])
	if points[o.Low()].Load == lightest || fits != nil && fits.Unfit != "" && len(fits.All()) > 1 {
		return nil // the lightest load may give the best already, or the bend is noise
	}
	k, how := f.bend(points, fits)
	if k == nil || math.Round(k.Load) <= lightest {
		return nil
	}
	out := &Knee{Clients: int(math.Round(k.Load)), ClientsLow: k.Low, ClientsHigh: k.High, Method: how}
	near := f.nearest(k.Load)
	out.Step, out.Tested = near.Step, near.Clients
	out.Throughput, out.Operations = f.measured(k.Load)
	if f.c.Open() {
		out.Clients = near.Clients
		return out
	}
	if x := shape.Saturation(points, o.Level); x <= f.c.LoadOf(f.c.Steps[f.c.Heaviest()]) {
		out.Saturation = x
	}
	return out
}

func (f *conclusion) bend(points []shape.Point, fits *fit.Fits) (k *shape.Knee, how string) {
	// with so few points that no model competes with the line, the best model is no reason to call
	// the curve straight
	if !describes(fits) || fits.Best == fit.Line && len(fits.All()) == 1 {
		k, _ = shape.KneeAmong(points)
		return k, fact.New("verdict.method.knee").Text
	}
	m := fits.Named(fits.Best)
	resampled := make([]shape.Curve, 0, len(m.Resampled))
	for _, at := range m.Resampled {
		resampled = append(resampled, at)
	}
	loads := map[float64]bool{}
	for i := range points {
		loads[points[i].Load] = true
	}
	k, _ = shape.KneeOf(m.At, m.From, m.To, len(loads), resampled)
	return k, fact.New("verdict.method.knee.fitted", "model", m.Name).Text
}

// measured returns the measured yields at a load: the means of the steps with that load, or a
// linear interpolation between the next lighter and the next heavier steps.
func (f *conclusion) measured(load float64) (throughput, operations float64) {
	left, right := math.Inf(-1), math.Inf(1)
	for i := range f.c.Steps {
		if x := f.c.LoadOf(f.c.Steps[i]); x <= load {
			left = max(left, x)
		}
		if x := f.c.LoadOf(f.c.Steps[i]); x >= load {
			right = min(right, x)
		}
	}
	mean := func(at float64, of func(*steps.Working) float64) float64 {
		sum, n := 0.0, 0.0
		for i := range f.c.Steps {
			if f.c.LoadOf(f.c.Steps[i]) == at {
				sum, n = sum+of(f.c.Steps[i]), n+1
			}
		}
		return stats.Ratio(sum, n)
	}
	at := func(of func(*steps.Working) float64) float64 {
		switch {
		case math.IsInf(left, 0):
			return mean(right, of)
		case math.IsInf(right, 0):
			return mean(left, of)
		}
		return mean(left, of) + stats.Ratio(load-left, right-left)*(mean(right, of)-mean(left, of))
	}
	return at(func(s *steps.Working) float64 { return s.Throughput }), at(func(s *steps.Working) float64 { return s.Operations })
}

// nearest returns the step whose load is nearest to x, by ratio.
func (f *conclusion) nearest(x float64) *steps.Working {
	best, least := 0, math.Inf(1)
	for i := range f.c.Steps {
		if d := math.Abs(math.Log(max(x, 1e-9) / max(f.c.LoadOf(f.c.Steps[i]), 1e-9))); d < least {
			best, least = i, d
		}
	}
	return f.c.Steps[best]
}

// collapse returns the load beyond the best step at which throughput broke down, nil if it did not
// break down.
func (f *conclusion) collapse(points []shape.Point, best int) *Collapse {
	b := shape.Collapse(points, best)
	if b == nil {
		return nil
	}
	s := f.c.Steps[b.Point]
	top, _, _ := f.c.Yield(f.c.Steps[best])
	mean, _, _ := f.c.Yield(s)
	facts := []fact.Fact{fact.New("verdict.collapse", "load", f.c.At(s), "yield", mean, "best", top, "unit", f.c.Unit(), "share", b.Left)}
	if b.Stalled {
		facts = append(facts, fact.New("verdict.collapse.stalled"))
	}
	if !b.Certain {
		facts = append(facts, fact.New("verdict.collapse.likely"))
	}
	if b.Recovered >= 0 {
		facts = append(facts, fact.New("verdict.collapse.recovered", "load", f.c.At(f.c.Steps[b.Recovered])))
	}
	return &Collapse{Step: s.Step, Clients: s.Clients, Left: b.Left, Facts: facts, Detail: strings.Join(fact.Texts(facts), "; ")}
}
