package fit

import (
	"math"
	"math/rand/v2"
	"slices"

	"weir/internal/stats"
)

// The size of the bootstrap. Curves of very many points get fewer resamples, which limits the
// computing time.
const (
	usualResamples = 1000
	leastResamples = 200
	mostResamples  = 100000
	mostDraws      = 1000000
	mostKept       = 200 // resampled curves that a Fit keeps
)

// bootstrap fits every candidate to resamples of its own curve: its values plus newly drawn noise.
// It also counts how often the same noise on a flat curve turns as much as the points.
func (c *curve) bootstrap(all []*candidate, o Options) {
	n := len(c.x)
	resamples := o.Resamples
	if resamples <= 0 {
		resamples = usualResamples
	}
	resamples = min(resamples, mostResamples, max(leastResamples, mostDraws/n))
	r := rand.New(rand.NewPCG(o.Seed, 0x77656972))
	seen := c.turns(c.y)
	y, noise := make([]float64, n), make([]float64, n)
	d := newDraw(r, n)
	for range resamples {
		c.draw(d)
		for _, a := range all {
			c.noise(a, d, noise)
			for k, by := range c.turns(noise) {
				if by >= seen[k] {
					a.byChance[k]++
				}
			}
			for i := range y {
				y[i] = a.fitted[i] + noise[i]
			}
			c.record(a, y)
		}
	}
}

// A draw holds the random numbers of one resample, which are the same for all candidates.
type draw struct {
	r       *rand.Rand
	unit    []float64 // by point: with a variance of 1
	picks   []int     // by point: index of the residual that it gets
	squares []float64 // of normal numbers, summed: chi-squared of 0, 1, 2, ... degrees of freedom
	normal  float64
}

const summed = 30 // degrees of freedom up to which squares are summed

func newDraw(r *rand.Rand, n int) *draw {
	return &draw{r: r, unit: make([]float64, n), picks: make([]int, n), squares: make([]float64, summed+1)}
}

func (c *curve) draw(d *draw) {
	for i := range d.unit {
		if c.se == nil {
			d.picks[i] = d.r.IntN(len(d.picks))
			continue
		}
		own := c.deviations[i]
		if len(own) == 0 {
			d.unit[i] = d.r.NormFloat64()
			continue
		}
		d.unit[i] = 0
		for range own {
			d.unit[i] += own[d.r.IntN(len(own))]
		}
	}
	for i := range summed {
		z := d.r.NormFloat64()
		d.squares[i+1] = d.squares[i] + z*z
	}
	d.normal = d.r.NormFloat64()
}

// chi returns the draw from the chi-squared distribution with the given degrees of freedom. Above
// 30 it uses Wilson and Hilferty's approximation (PNAS 17, 1931).
func (d *draw) chi(degrees int) float64 {
	if degrees <= summed {
		return max(d.squares[degrees], 1e-6)
	}
	k := float64(degrees)
	return k * math.Pow(1-2/(9*k)+d.normal*math.Sqrt(2/(9*k)), 3)
}

// noise fills in the candidate's noise. If spreads are known, it is a resample of each step's
// batches (normal if a step has no batches); residuals beyond that are scatter between steps, as a
// share of the yield. Otherwise it is a resample of the residuals. The size of noise that is
// derived from residuals is drawn as well, since few points determine it badly. As a result, the
// intervals have the width of Student's distribution.
func (c *curve) noise(a *candidate, d *draw, noise []float64) {
	size := a.noise / d.chi(a.free)
	if c.se == nil {
		for i, from := range d.picks {
			noise[i] = math.Sqrt(size) * a.shape[i] * a.standard[from]
		}
		return
	}
	between := max(0, size-1) * a.perShare
	for i, unit := range d.unit {
		noise[i] = unit * math.Sqrt(c.se[i]*c.se[i]+between*a.shape[i]*a.shape[i])
	}
}

// record fits the candidate to a resample and stores its parameters and its maximum.
func (c *curve) record(a *candidate, y []float64) {
	p := a.solve(y, a.p)
	if len(a.kept) < mostKept {
		a.kept = append(a.kept, slices.Clone(p))
	}
	for i, v := range a.natural(p) {
		a.drawn[i] = append(a.drawn[i], v)
		if a.open != nil && a.open(p, i) {
			a.unbound[i]++
		}
	}
	if a.peak == nil {
		return
	}
	from, to := c.highest(a.model, p)
	a.from, a.to, a.tops = append(a.from, from), append(a.to, to), append(a.tops, a.value(p, from))
	if c.within(from) && c.within(to) {
		a.inside++
	}
}

// highest returns the range of loads at which a model's curve is highest, limited to the tested
// range.
func (c *curve) highest(m *model, p []float64) (from, to float64) {
	from, to = m.peak(p)
	return min(max(from, c.first()), c.last()), min(max(to, c.first()), c.last())
}

// within reports whether a load lies inside the tested range.
func (c *curve) within(x float64) bool { return x > c.first() && x < c.last() }

// estimate returns a value with the 95% interval of its resamples, widened to include the value.
// scale converts the value and the interval to the points' units.
func estimate(name string, value float64, drawn []float64, scale float64) Estimate {
	slices.Sort(drawn)
	low, high := min(value, stats.SortedQuantile(drawn, 0.025))*scale, max(value, stats.SortedQuantile(drawn, 0.975))*scale
	return Estimate{Name: name, Value: value * scale, Low: &low, High: &high}
}
