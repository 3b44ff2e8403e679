package analysis

import (
	"fmt"
	"math"

	"weir/analysis/fit"
	"weir/analysis/shape"
	"weir/internal/unit"
)

// optimum is the maximum of the model that describes the curve best, if it has
// one in the tested range and the tested steps agree with it; else the best
// tested step.
func (f *Findings) optimum(best int, fits *fit.Fits) *Optimum {
	if best < 0 {
		return nil
	}
	o := f.bestTested(best)
	if fits == nil {
		return o
	}
	o.Inside = fits.Falls || f.declines(best)
	m := fits.Named(fits.Best)
	if m == nil || m.Max == nil || m.Max.Clients.Low == nil || m.Max.Clients.High == nil || !f.agrees(best, m) {
		return o
	}
	at, top := m.Max.Clients, m.Max.Yield
	o.Clients, o.Inside = int(math.Round(at.Value)), true
	o.ClientsLow, o.ClientsHigh = int(math.Floor(*at.Low)), int(math.Ceil(*at.High))
	o.Method, o.fitted = "maximum of the fitted "+m.Name, true
	scale := func(x float64) float64 { // of what is not fitted, in proportion
		mean, _, _ := f.yield(&f.Curve[best])
		return ratio(x*top.Value, mean)
	}
	if f.Measure == Rate {
		o.Operations, o.Throughput, o.Low, o.High = top.Value, scale(o.Throughput), nil, nil
		return o
	}
	o.Throughput, o.Low, o.High, o.Operations = top.Value, top.Low, top.High, scale(o.Operations)
	return o
}

// bestTested is the best tested step as an optimum, with its equals.
func (f *Findings) bestTested(best int) *Optimum {
	s := &f.Curve[best]
	low, _ := f.bounds(s)
	o := &Optimum{Clients: s.Clients, ClientsLow: s.Clients, ClientsHigh: s.Clients, Throughput: s.Throughput,
		Low: s.ThroughputLow, High: s.ThroughputHigh, Operations: s.Operations, Step: s.Step, Tested: s.Clients, Inside: f.declines(best),
		Method: "best tested step; equals are those whose 95% intervals overlap its own"}
	for i := range f.Curve {
		if _, high := f.bounds(&f.Curve[i]); high >= low && f.Curve[i].unwell() <= max(shape.FewErrors, s.unwell()) {
			o.ClientsLow = min(o.ClientsLow, f.Curve[i].Clients)
			o.ClientsHigh = max(o.ClientsHigh, f.Curve[i].Clients)
		}
	}
	return o
}

// declines tells whether the heaviest load certainly gave less than the best one:
// the 95% intervals are apart, and it is 5% or more.
func (f *Findings) declines(best int) bool {
	s := &f.Curve[best]
	top, _, _ := f.yield(s)
	low, _ := f.bounds(s)
	heaviest := f.heaviest()
	if f.load(&f.Curve[heaviest]) <= f.load(s) {
		return false
	}
	mean, _, _ := f.yield(&f.Curve[heaviest])
	_, high := f.bounds(&f.Curve[heaviest])
	return mean < shape.NearBest*top && high < low
}

// disagree is by how much a fitted maximum may differ from the best tested step
// before the step is believed rather than the model.
const disagree = 0.1

func (f *Findings) agrees(best int, m *fit.Fit) bool {
	mean, _, _ := f.yield(&f.Curve[best])
	low, high := f.bounds(&f.Curve[best])
	near := func(x float64) bool { return math.Abs(x-mean) <= disagree*mean || x >= low && x <= high }
	// a law that has its maximum far from the steps, as in a search that ended
	// early, agrees if it tells what the best step gave
	law := m.Name == fit.USL || m.Name == fit.Decline
	return near(m.Max.Yield.Value) || law && m.Max.Yield.Value > mean && near(m.At(f.load(&f.Curve[best])))
}

// knee is where the model that describes the curve best bends, or the tested
// step at which the curve does; nil where it does not.
func (f *Findings) knee(best int, points []shape.Point, fits *fit.Fits) *Knee {
	if best < 0 {
		return nil
	}
	k, how := f.bend(points, fits)
	if k == nil {
		return nil
	}
	out := &Knee{Clients: int(math.Round(k.Load)), ClientsLow: k.Low, ClientsHigh: k.High, Method: how}
	near := f.nearest(k.Load)
	mean, _, _ := f.yield(near)
	out.Step, out.Tested = near.Step, near.Clients
	out.Throughput, out.Operations = ratio(near.Throughput*k.Yield, mean), ratio(near.Operations*k.Yield, mean)
	if f.Open() {
		out.Clients = near.Clients
		return out
	}
	top := shape.Level(points, best)
	if f.Optimum != nil && f.Optimum.fitted {
		if top = f.Optimum.Throughput; f.Measure == Rate {
			top = f.Optimum.Operations
		}
	}
	out.Saturation = shape.Saturation(points, top)
	return out
}

func (f *Findings) bend(points []shape.Point, fits *fit.Fits) (k *shape.Knee, how string) {
	// with so few points that a line has no rival, the best model is no reason
	// to call the curve straight
	if fits == nil || fits.Named(fits.Best) == nil || fits.Best == fit.Line && len(fits.All()) == 1 {
		k, _ = shape.KneeAmong(points)
		return k, "tested step at which the curve is farthest above the straight way to its best (Kneedle)"
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
	return k, fmt.Sprintf("where the fitted %s is farthest above the straight way to its best (Kneedle)", m.Name)
}

// nearest returns the step whose load is nearest to x, by ratio.
func (f *Findings) nearest(x float64) *Step {
	best, least := 0, math.Inf(1)
	for i := range f.Curve {
		if d := math.Abs(math.Log(max(x, 1e-9) / max(f.load(&f.Curve[i]), 1e-9))); d < least {
			best, least = i, d
		}
	}
	return &f.Curve[best]
}

// collapse tells where throughput broke down beyond the best step.
func (f *Findings) collapse(points []shape.Point, best int) *Collapse {
	b := shape.Collapse(points, best)
	if b == nil {
		return nil
	}
	s := &f.Curve[b.Point]
	top, _, _ := f.yield(&f.Curve[best])
	mean, _, _ := f.yield(s)
	c := &Collapse{Step: s.Step, Clients: s.Clients, Left: b.Left,
		Detail: fmt.Sprintf("with %s only %s is left of %s: %s", f.at(s), f.show(mean), f.show(top), unit.Percent(b.Left))}
	if b.Stalled {
		c.Detail += "; the service nearly stood still"
	}
	if !b.Certain {
		c.Detail += "; without intervals that is no more than likely"
	}
	if b.Recovered >= 0 {
		c.Detail += fmt.Sprintf("; with %s it worked again", f.at(&f.Curve[b.Recovered]))
	}
	return c
}

func (f *Findings) hysteresis(points []shape.Point) []Hysteresis {
	all := []Hysteresis{}
	for _, r := range shape.Hysteresis(points) {
		up, down := &f.Curve[r.Up], &f.Curve[r.Down]
		all = append(all, Hysteresis{Clients: up.Clients, Up: up.Step, Down: down.Step, Change: r.Change, Certain: r.Certain})
	}
	return all
}
