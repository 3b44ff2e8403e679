package fit

import (
	"fmt"
	"math"
)

// Rules of choice.
const (
	// clearly is by how much the AICc of the polynomial, which says nothing of
	// scaling, must be below all others to be the best: a weight of 20 to 1
	// (Burnham and Anderson, Model Selection and Multimodel Inference,
	// Springer 2002, section 2.6, call 4 to 7 considerably less support).
	clearly = 6
	// surely is the share of resamples that must have the maximum inside, and
	// chance the share of flat curves whose noise looks as much like one.
	surely = 0.975
	chance = 0.025
	// leastDrop is by how much a curve must be lower at both ends of the tested
	// range than at its maximum, as a share of that.
	leastDrop = 0.01
)

// counted is the number of parameters in a model's AICc: where the size of the
// noise is not known it is one of them.
func (c *curve) counted(m *model) int {
	if c.se == nil {
		return len(m.names) + 1
	}
	return len(m.names)
}

// judge computes AICc and Akaike weights.
func (c *curve) judge(all []*candidate) {
	n := float64(len(c.x))
	excess := math.Inf(1) // variance beyond what the steps' spread explains
	for _, a := range all {
		excess = min(excess, a.left/float64(a.free))
	}
	excess = max(1, excess)
	least := math.Inf(1)
	for _, a := range all {
		k := float64(c.counted(a.model))
		a.aicc = a.left/excess + 2*k + 2*k*(k+1)/(n-k-1)
		if c.se == nil {
			a.aicc += n*math.Log(a.left/n) - a.left/excess
		}
		least = min(least, a.aicc)
	}
	sum := 0.0
	for _, a := range all {
		sum += math.Exp((least - a.aicc) / 2)
	}
	for _, a := range all {
		a.weight = math.Exp((least-a.aicc)/2) / sum
	}
}

// best is the model with the least AICc; the polynomial only if it is so clearly.
func best(all []*candidate) *candidate {
	var found *candidate
	for _, a := range all {
		if a.physical && (found == nil || a.aicc < found.aicc) {
			found = a
		}
	}
	for _, a := range all {
		if !a.physical && (found == nil || a.aicc < found.aicc-clearly) {
			found = a
		}
	}
	return found
}

// conclude turns candidates into what is reported.
func (c *curve) conclude(fits *Fits, all []*candidate) {
	for _, a := range all {
		f := c.report(a)
		switch a.name {
		case Line:
			fits.Line = f
		case Plateau:
			fits.Plateau = f
		case Amdahl:
			fits.Amdahl = f
		case USL:
			fits.USL = f
		case Decline:
			fits.Decline = f
		case Poly4:
			fits.Poly4 = f
		}
	}
	top := best(all)
	fits.Best = top.name
	fits.Unfit = c.unfit(top)
	fits.Detail = fits.detail(top)
}

// certain tells whether chance is no explanation of a turn: 0, that points come
// down at the end, or 1, that they rise at the start.
func (a *candidate) certain(turn int) bool {
	return float64(a.byChance[turn]+1) <= chance*float64(len(a.drawn[0])+1)
}

func (c *curve) report(a *candidate) *Fit {
	f := &Fit{
		Name: a.name, Formula: a.formula, R2: 1, AICc: a.aicc, Weight: a.weight, Points: len(c.x),
		From: c.first() * c.xUnit, To: c.last() * c.xUnit, Residuals: make([]float64, len(c.x)),
		at: func(clients float64) float64 { return a.value(a.p, clients/c.xUnit) * c.yUnit },
	}
	for i, v := range a.natural(a.p) {
		e := estimate(a.names[i], v, a.drawn[i], 1)
		if float64(a.unbound[i]) > chance*float64(len(a.drawn[i])) {
			e.High = nil
		}
		f.Parameters = append(f.Parameters, e)
	}
	for _, p := range a.kept {
		f.Resampled = append(f.Resampled, func(clients float64) float64 { return a.value(p, clients/c.xUnit) * c.yUnit })
	}
	for i, at := range c.order {
		f.Residuals[at] = (c.y[i] - a.fitted[i]) * c.yUnit
	}
	if c.meanVariance > 0 {
		f.R2 = 1 - c.squares(a.model, a.p, c.y)/c.meanVariance
	}
	if f.NoMax = c.refuses(a); f.NoMax == "" {
		from, to := c.highest(a.model, a.p)
		f.Max = &Maximum{estimate("", from, a.from, c.xUnit), estimate("", a.value(a.p, from), a.tops, c.yUnit)}
		f.Max.Clients.High = estimate("", to, a.to, c.xUnit).High
	}
	return f
}

// refuses says why a fitted curve has no maximum that could be believed, "" if
// it has one: the curve must be highest inside the tested range, in nearly all
// resamples, and clearly higher there than at both ends; and the points must
// say so without any model.
func (c *curve) refuses(a *candidate) string {
	if !a.canFall {
		return "a curve of this kind never comes down"
	}
	x, to := c.highest(a.model, a.p)
	if to >= c.last() {
		return "it does not come down before the heaviest tested load"
	}
	if x <= c.first() {
		return "it is highest at the lightest tested load"
	}
	clients := x * c.xUnit
	if share := float64(a.inside) / float64(len(a.from)); share < surely {
		return fmt.Sprintf("it is highest at %.4g clients, but in only %.0f%% of the resamples inside the tested range", clients, math.Floor(100*share))
	}
	top := a.value(a.p, x)
	down, up := 1-a.value(a.p, c.last())/top, 1-a.value(a.p, c.first())/top
	if down < leastDrop || up < leastDrop {
		return fmt.Sprintf("it is highest at %.4g clients, but by only %.2g%%", clients, 100*max(0, min(down, up)))
	}
	if !a.certain(0) {
		return fmt.Sprintf("it is highest at %.4g clients, but the points do not come down after it by more than their noise", clients)
	}
	if !a.certain(1) {
		return fmt.Sprintf("it is highest at %.4g clients, but the points do not rise before it by more than their noise", clients)
	}
	return ""
}

// detail says what the best model is worth, in one sentence.
func (f *Fits) detail(a *candidate) string {
	m := f.Named(a.name)
	if why := map[string]string{
		NoBetter: "it is no better than a constant by more than chance",
		Scatter:  "the points scatter too much around it",
		Misfit:   "it misses the points by more than their spread explains",
	}[f.Unfit]; why != "" {
		return fmt.Sprintf("no model describes the %d points: the best is %s, which explains %.2g%% of the variance, and %s", m.Points, a.name, 100*max(0, m.R2), why)
	}
	text := fmt.Sprintf("%s describes the %d points best (Akaike weight %.0f%%", a.name, m.Points, 100*a.weight)
	if p := f.Poly4; p != nil && p.AICc < m.AICc {
		text += fmt.Sprintf("; %s, which says nothing of scaling, has %.0f%%", p.Name, 100*p.Weight)
	}
	if m.Max == nil {
		return text + "): no maximum in the tested range, " + m.NoMax
	}
	at := m.Max.Clients
	return text + fmt.Sprintf("): its maximum is at %.0f clients (%.0f to %.0f)", at.Value, math.Floor(*at.Low), math.Ceil(*at.High))
}
