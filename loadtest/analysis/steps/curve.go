package steps

import (
	"math"
	"slices"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/scenario"
	"weir/storage"
)

// A Curve has the steps of a run, or of a table, in order, and the quantity by which they are
// compared.
type Curve struct {
	Steps   []*Working
	Measure string // Throughput or Rate
	Model   scenario.Model
	Table   bool // from a table, whose loads need not be whole
	Mixed   bool // its clients have several workloads

	PageThreads int // of the built-in server, for pages that cost CPU time; 0: no such pages
}

// CurveOf returns the curve of a document. Figures that are missing in the document are zero.
func CurveOf(figures []Figures, measure string, model scenario.Model, table bool) *Curve {
	c := &Curve{Measure: measure, Model: model, Table: table}
	for f := range basics.Each(figures) {
		c.Steps = append(c.Steps, &Working{Figures: f})
	}
	return c
}

// With returns a copy of c with the given steps.
func (c *Curve) With(steps []*Working) *Curve {
	out := *c
	out.Steps = steps
	return &out
}

// Open reports whether the load was planned as arrivals per second.
func (c *Curve) Open() bool { return c.Model == scenario.OpenModel }

// OfJobs reports whether the run's clients ran jobs.
func (c *Curve) OfJobs() bool {
	for _, s := range c.Steps {
		if s.Jobs != nil {
			return true
		}
	}
	return false
}

// Yield returns the quantity by which steps are compared, with its interval.
func (c *Curve) Yield(s *Working) (mean float64, low, high *float64) {
	if c.Measure == Rate {
		return s.Operations, s.OperationsLow, s.OperationsHigh
	}
	return s.Throughput, s.ThroughputLow, s.ThroughputHigh
}

// Mean returns the quantity by which steps are compared.
func (c *Curve) Mean(s *Working) float64 {
	mean, _, _ := c.Yield(s)
	return mean
}

// Bounds returns the interval of the yield, or the mean for both bounds if there is no interval.
func (c *Curve) Bounds(s *Working) (low, high float64) {
	mean, l, h := c.Yield(s)
	if l == nil || h == nil {
		return mean, mean
	}
	return *l, *h
}

// LoadOf returns the position of a step on the curve's axis: arrivals per second in the open model, else clients.
func (c *Curve) LoadOf(s *Working) float64 {
	if c.Open() {
		return s.Rate
	}
	if c.Table { // the mean of a table's rows, which need not be whole
		return s.ActiveClients
	}
	return float64(s.Clients)
}

// Heaviest returns the index of the step with the largest load.
func (c *Curve) Heaviest() int {
	at := 0
	for i := range c.Steps {
		if c.LoadOf(c.Steps[i]) > c.LoadOf(c.Steps[at]) {
			at = i
		}
	}
	return at
}

// Lightest returns the index of the step with the smallest load.
func (c *Curve) Lightest() int {
	at := 0
	for i := range c.Steps {
		if c.LoadOf(c.Steps[i]) < c.LoadOf(c.Steps[at]) {
			at = i
		}
	}
	return at
}

// OneLoad reports whether all steps had the same load.
func (c *Curve) OneLoad() bool {
	return c.LoadOf(c.Steps[c.Lightest()]) == c.LoadOf(c.Steps[c.Heaviest()])
}

// IndexOf returns the index of the step with the given number, or -1.
func (c *Curve) IndexOf(number int) int {
	return slices.IndexFunc(c.Steps, func(s *Working) bool { return s.Step == number })
}

// Numbered returns the step of the curve with a number.
func (c *Curve) Numbered(step int) *Working {
	return c.Steps[max(0, c.IndexOf(step))]
}

// Excluded returns the steps that do not count.
func (c *Curve) Excluded() (all []*Working) {
	for _, s := range c.Steps {
		if s.Excluded != "" {
			all = append(all, s)
		}
	}
	return all
}

// Counting returns the curve of the steps that count, or c itself if all do. It is empty if too few
// steps are left for a result.
func (c *Curve) Counting() *Curve {
	if len(c.Excluded()) == 0 {
		return c
	}
	left := slices.DeleteFunc(slices.Clone(c.Steps), func(s *Working) bool { return s.Excluded != "" })
	if len(left) < 2 && len(c.Steps) > 1 {
		left = nil // a single step shows no maximum and no limit
	}
	return c.With(left)
}

// ClientsAt returns the number of clients that a step represents on a curve: the planned number, or
// the number in a table, which need not be whole.
func (c *Curve) ClientsAt(s *Working) float64 {
	if !c.Table && s.Clients > 0 && math.Abs(s.ActiveClients-float64(s.Clients)) < 0.5 {
		return float64(s.Clients)
	}
	return s.ActiveClients
}

// Points returns the steps as points for package shape.
func (c *Curve) Points() []shape.Point {
	all := make([]shape.Point, len(c.Steps))
	for i := range c.Steps {
		s := c.Steps[i]
		mean, low, high := c.Yield(s)
		all[i] = shape.Point{Load: c.LoadOf(s), Yield: mean, Low: low, High: high, Batches: s.Batches, Errors: s.Unwell()}
		if s.Latency != nil {
			all[i].Latency = s.Latency.Mean
		}
	}
	return all
}

// Counts returns the number of correct operations of all steps, and the number of operations that
// failed or had a wrong payload, also by class.
func (c *Curve) Counts() (right, bad int64, by map[storage.Class]int64) {
	by = map[storage.Class]int64{}
	for _, s := range c.Steps {
		right += max(0, s.Done-s.Wrong)
		bad += s.Bad()
		for class, n := range s.BadBy() {
			by[class] += n
		}
	}
	return right, bad, by
}
