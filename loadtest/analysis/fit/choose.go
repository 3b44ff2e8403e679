package fit

import (
	"math"
	"slices"
	"strings"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
)

// Rules of choice.
const (
	// clearly is the difference by which the AICc of the polynomial, which does not describe
	// scaling, must be below all others to be chosen: a weight of 20 to 1 (Burnham and Anderson,
	// Model Selection and Multimodel Inference, Springer 2002, section 2.6, call 4 to 7
	// considerably less support).
	clearly = 6
	// surely is the minimum share of resamples with the maximum inside the range. chance is the
	// maximum share of flat curves whose noise turns as much as the points.
	surely = 0.975
	chance = 0.025
	// leastDrop is the minimum drop from the maximum to both ends of the tested range, as a share
	// of the maximum.
	leastDrop = 0.01
)

// counted returns the number of parameters in a model's AICc. The size of the noise is one of them
// if it is unknown.
func (c *curve) counted(m *model) int {
	if c.se == nil {
		return len(m.names) + 1
	}
	return len(m.names)
}

// judge computes AICc and Akaike weights.
func (c *curve) judge(all []*candidate) {
	n := float64(len(c.x))
	excess := math.Inf(1) // variance beyond the spread of the steps
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

// best returns the model with the least AICc. The polynomial needs a clear advantage.
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

// conclude fills in fits from the candidates.
func (c *curve) conclude(fits *Fits, all []*candidate) {
	models := map[string]**Fit{Line: &fits.Line, Plateau: &fits.Plateau, Amdahl: &fits.Amdahl, USL: &fits.USL, Decline: &fits.Decline,
		Poly4: &fits.Poly4}
	for _, a := range all {
		*models[a.name] = c.report(a)
	}
	top := best(all)
	fits.Best = top.name
	(*models[top.name]).band()
	fits.Unfit = c.unfit(top)
	fits.Facts = fits.facts(top)
	fits.Detail = strings.Join(fact.Texts(fits.Facts), ": ")
}

// places is the number of parts into which a curve is cut for Drawn.
const places = 60

// draw fills in Drawn: places at equal distances, or at equal ratios if the range is wide.
func (f *Fit) draw() {
	for i := range places + 1 {
		x := f.From + (f.To-f.From)*float64(i)/places
		if f.From > 0 && f.To > 10*f.From {
			x = f.From * math.Pow(f.To/f.From, float64(i)/places)
		}
		f.Drawn = append(f.Drawn, [2]float64{x, stats.OrZero(f.At(x))})
	}
}

// leastBand is the minimum number of resamples for an interval.
const leastBand = 50

// band fills in Band if there are enough resamples.
func (f *Fit) band() {
	n := len(f.Resampled)
	if n < leastBand {
		return
	}
	values := make([]float64, n)
	for _, at := range f.Drawn {
		for k, curve := range f.Resampled {
			values[k] = stats.OrZero(curve(at[0]))
		}
		slices.Sort(values)
		f.Band = append(f.Band, [2]float64{values[n/40], values[n-1-n/40]})
	}
}

// certain reports whether chance does not explain a turn: turn 0 is the fall of the points at the
// end, turn 1 the rise at the start.
func (a *candidate) certain(turn int) bool {
	return float64(a.byChance[turn]+1) <= chance*float64(len(a.drawn[0])+1)
}

func (c *curve) report(a *candidate) *Fit {
	f := &Fit{
		Name: a.name, Formula: a.formula, R2: 1, AICc: stats.OrZero(a.aicc), Weight: stats.OrZero(a.weight), Points: len(c.x),
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
		f.R2 = stats.OrZero(1 - c.squares(a.model, a.p, c.y)/c.meanVariance)
	}
	f.draw()
	if f.NoMax = c.refuses(a); f.NoMax == "" {
		from, to := c.highest(a.model, a.p)
		f.Max = &Maximum{estimate("", from, a.from, c.xUnit), estimate("", a.value(a.p, from), a.tops, c.yUnit)}
		f.Max.Clients.High = estimate("", to, a.to, c.xUnit).High
	}
	return f
}

// refuses returns the reason why a fitted curve has no maximum, or "" if it has one: the curve must
// be highest inside the tested range, in nearly all resamples, and clearly higher there than at
// both ends; and the points must show the maximum without any model.
func (c *curve) refuses(a *candidate) string {
	if !a.canFall {
		return fact.New("verdict.fit.rising").Text
	}
	x, to := c.highest(a.model, a.p)
	if to >= c.last() {
		return fact.New("verdict.fit.end").Text
	}
	if x <= c.first() {
		return fact.New("verdict.fit.start").Text
	}
	clients := x * c.xUnit
	if share := float64(a.inside) / float64(len(a.from)); share < surely {
		return fact.New("verdict.fit.resamples", "clients", clients, "share", math.Floor(100*share)/100).Text
	}
	top := a.value(a.p, x)
	down, up := 1-a.value(a.p, c.last())/top, 1-a.value(a.p, c.first())/top
	if down < leastDrop || up < leastDrop {
		return fact.New("verdict.fit.flat", "clients", clients, "share", max(0, min(down, up))).Text
	}
	if !a.certain(0) {
		return fact.New("verdict.fit.noise.after", "clients", clients).Text
	}
	if !a.certain(1) {
		return fact.New("verdict.fit.noise.before", "clients", clients).Text
	}
	return ""
}

// facts returns facts about the fit of the best model, and its maximum.
func (f *Fits) facts(a *candidate) []fact.Fact {
	m := f.Named(a.name)
	explained := max(0, m.R2)
	switch f.Unfit {
	case NoBetter:
		return []fact.Fact{fact.New("verdict.fit.none.constant", "points", m.Points, "model", a.name, "share", explained)}
	case Scatter:
		return []fact.Fact{fact.New("verdict.fit.none.scatter", "points", m.Points, "model", a.name, "share", explained)}
	case Misfit:
		return []fact.Fact{fact.New("verdict.fit.none.misfit", "points", m.Points, "model", a.name, "share", explained)}
	}
	best := fact.New("verdict.fit.best", "model", a.name, "points", m.Points, "weight", a.weight)
	if p := f.Poly4; p != nil && p.AICc < m.AICc {
		best = fact.New("verdict.fit.best.rival", "model", a.name, "points", m.Points, "weight", a.weight, "rival", p.Name,
			"rival_weight", p.Weight)
	}
	if m.Max == nil {
		return []fact.Fact{best, fact.New("verdict.fit.rises", "reason", m.NoMax)}
	}
	at := m.Max.Clients
	return []fact.Fact{best, fact.New("verdict.fit.maximum", "clients", at.Value, "low", math.Floor(*at.Low), "high", math.Ceil(*at.High))}
}
