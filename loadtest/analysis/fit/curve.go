package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"weir/internal/stats"
)

// Limits of valid points and curves.
const (
	mostPoints = 10000
	largest    = 1e30
	smallest   = 1e-30
	// leastError is the minimum of a point's standard error, as a share of the median of all
	// points: batches that happen to be equal, or few batches that are close, must not make one
	// point outweigh all others.
	leastError = 0.5
	// leastThink is the share of all clients that must pause for the think time to matter.
	leastThink = 0.02
	exact      = 1e-9 // of the largest yield: residuals below it are rounding errors
)

// A curve holds the points for the models: sorted by clients, both axes scaled to at most 1, so
// that sums of high powers stay in range.
type curve struct {
	x, y, w      []float64 // w is 1/variance if spreads are known, else 1
	se           []float64 // scaled standard errors; nil: not known
	deviations   [][]float64
	order        []int // index of each point in the input
	xUnit, yUnit float64
	think        float64 // clients that pause per yield, both scaled
	distinct     int     // different numbers of clients
	meanVariance float64 // of y about its weighted mean, weighted sum
}

func newCurve(points []Point, o Options) (*curve, error) {
	if err := check(points, o); err != nil {
		return nil, err
	}
	c := &curve{order: make([]int, len(points))}
	for i, p := range points {
		c.order[i] = i
		c.xUnit, c.yUnit = max(c.xUnit, p.Clients), max(c.yUnit, p.Yield)
	}
	if c.yUnit == 0 {
		return nil, fmt.Errorf("all %d points have a yield of 0: there is nothing to fit", len(points))
	}
	slices.SortStableFunc(c.order, func(a, b int) int { return cmp.Compare(points[a].Clients, points[b].Clients) })
	for i, at := range c.order {
		p := points[at]
		c.x, c.y = append(c.x, p.Clients/c.xUnit), append(c.y, p.Yield/c.yUnit)
		if i == 0 || c.x[i] > c.x[i-1] {
			c.distinct++
		}
	}
	c.weigh(points)
	c.think = o.Think * c.yUnit / c.xUnit
	if o.Think == 0 {
		c.think = c.pauses(points)
	}
	var mean, sum float64
	for i, y := range c.y {
		mean, sum = mean+c.w[i]*y, sum+c.w[i]
	}
	mean /= sum
	for i, y := range c.y {
		c.meanVariance += c.w[i] * (y - mean) * (y - mean)
	}
	return c, nil
}

// check returns an error for points that cannot be measurements.
func check(points []Point, o Options) error {
	if len(points) == 0 {
		return fmt.Errorf("no points: there is nothing to fit")
	}
	if len(points) > mostPoints {
		return fmt.Errorf("%d points are too many, at most %d: a curve has one point a step", len(points), mostPoints)
	}
	if math.IsNaN(o.Think) || o.Think < 0 || o.Think > largest {
		return fmt.Errorf("a think time of %v: it must be a number that is not negative", o.Think)
	}
	for i, p := range points {
		if !(p.Clients >= smallest && p.Clients <= largest) {
			return fmt.Errorf("point %d: %v clients: it must be a positive number", i+1, p.Clients)
		}
		for _, v := range []struct {
			what  string
			value float64
		}{{"yield", p.Yield}, {"standard error", p.Error}, {"number of busy clients", p.Busy}} {
			if !(v.value == 0 || v.value >= smallest && v.value <= largest) {
				return fmt.Errorf("point %d (%v clients): a %s of %v: it must be a number that is not negative", i+1, p.Clients, v.what, v.value)
			}
		}
		for j, b := range p.Batches {
			if !(math.Abs(b) <= largest) {
				return fmt.Errorf("point %d (%v clients): batch %d is %v: it must be a number", i+1, p.Clients, j+1, b)
			}
		}
	}
	return nil
}

// weigh sets the weights. Points without a spread, or with a spread of 0, get the median spread of
// the others; if no point has a spread, all points have the same weight.
func (c *curve) weigh(points []Point) {
	n := len(c.x)
	c.w, c.deviations = make([]float64, n), make([][]float64, n)
	se := make([]float64, n)
	var known []float64
	for i, at := range c.order {
		c.w[i] = 1
		se[i], c.deviations[i] = spread(points[at])
		se[i] /= c.yUnit
		if se[i] > 0 {
			known = append(known, se[i])
		}
	}
	if len(known) == 0 {
		return
	}
	slices.Sort(known)
	floor := max(leastError*known[len(known)/2], exact)
	for i := range se {
		if se[i] == 0 {
			se[i] = known[len(known)/2]
		}
		se[i] = max(se[i], floor)
		c.w[i] = 1 / (se[i] * se[i])
	}
	c.se = se
}

// spread returns the standard error of a point and its batches' deviations from their mean, scaled
// so that the sum of a resample of them has variance 1. It returns no deviations if there are too
// few batches or all are equal.
func spread(p Point) (se float64, deviations []float64) {
	n := float64(len(p.Batches))
	if n < stats.LeastBatches {
		return p.Error, nil
	}
	mean, squares := 0.0, 0.0
	for _, b := range p.Batches {
		mean += b / n // sums of the largest numbers stay finite
	}
	for _, b := range p.Batches {
		squares += (b - mean) * (b - mean)
	}
	if se = p.Error; se == 0 {
		se = math.Sqrt(squares / (n - 1) / n)
	}
	if squares <= exact*exact*mean*mean {
		return p.Error, nil
	}
	deviations = make([]float64, len(p.Batches))
	for i, b := range p.Batches {
		deviations[i] = (b - mean) / math.Sqrt(squares)
	}
	return se, deviations
}

// pauses returns the number of clients that pause per unit of yield, both scaled, by Little's law
// from the points with a known number of busy clients.
func (c *curve) pauses(points []Point) float64 {
	var all, paused, yield float64
	for _, p := range points {
		if p.Busy > 0 {
			all += p.Clients / c.xUnit
			paused += (p.Clients - p.Busy) / c.xUnit
			yield += p.Yield / c.yUnit
		}
	}
	if yield == 0 || paused < leastThink*all {
		return 0
	}
	return paused / yield
}

// squares returns the weighted sum of the squared residuals of a model.
func (c *curve) squares(m *model, p, y []float64) float64 {
	sum := 0.0
	for i, x := range c.x {
		r := y[i] - m.value(p, x)
		sum += c.w[i] * r * r
	}
	return sum
}
