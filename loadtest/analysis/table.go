package analysis

import (
	"fmt"
	"math"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/steps"
	given "weir/loadtest/analysis/table"
	"weir/loadtest/analysis/validity"
	"weir/loadtest/scenario"
)

// FromTable is the Source of findings on a table.
const FromTable = "table"

// Sources of the points of a curve.
const (
	PointsOfRows         = "rows"         // each row; the rows of one load are joined
	PointsOfSteps        = "steps"        // each step while all clients were active: its second and third quarter
	PointsOfSubintervals = "subintervals" // each quarter of each step
)

// TableOptions are the settings of an analysis of a table.
type TableOptions struct {
	Points     string   // one of PointsOf...; "": steps if the table has times and steps, else rows
	Boundaries []string // conditions, as in a scenario; nil: the default conditions
}

// mostTablePoints is the maximum number of points of a curve of a table.
const mostTablePoints = 2000

// AnalyzeTable analyzes a table of measurements of another program, as Analyze analyzes a run. A
// check for which the table has no data is skipped. The error names the data that the table lacks
// for the requested points.
func AnalyzeTable(t *given.Table, o TableOptions) (*Findings, error) {
	f := &Findings{
		Version: FindingsVersion, Source: FromTable, Name: t.Name, Model: "closed", Measure: steps.Throughput,
		Warnings: []string{}, WarningFacts: []fact.Fact{},
		Outages: []validity.Outage{}, Phases: []steps.Phase{},
		Columns: t.Columns, Kinds: []steps.Part{}, Servers: []steps.Part{}, Thresholds: []Judgment{},
		Subintervals: []steps.Subinterval{}, Hysteresis: []Hysteresis{}, Boundaries: []Boundary{}, Bottleneck: []limits.Bottleneck{},
	}
	if t.Open {
		f.Model = scenario.OpenModel
	}
	r := reader{Table: t}
	if !t.Has(given.Throughput) {
		f.Measure = steps.Rate
	}
	if r.seconds = r.spans(); r.seconds != nil {
		f.Subintervals = r.subintervals()
	}
	c, err := r.curve(f, o.Points)
	if err != nil {
		return nil, err
	}
	g := &conclusion{Findings: f, c: c}
	g.understand()
	f.Boundaries = g.boundaries(o.Boundaries)
	f.Validity = r.validity(c)
	g.conclude()
	f.Curve = steps.Document(c.Steps)
	r.warn(f)
	return f, nil
}

// A reader computes points from the rows of a table.
type reader struct {
	*given.Table
	seconds []float64 // that each row represents; nil: the table has no times
}

// curve returns the curve of the points.
func (r *reader) curve(f *Findings, points string) (*steps.Curve, error) {
	c := &steps.Curve{Measure: f.Measure, Model: f.Model, Table: true}
	if points == "" {
		points = PointsOfRows
		if r.seconds != nil && r.Has(given.Step) {
			points = PointsOfSteps
		}
	}
	switch points {
	case PointsOfRows:
		for i, rows := range r.repetitions() {
			c.Steps = append(c.Steps, r.point(i+1, rows))
		}
	case PointsOfSteps, PointsOfSubintervals:
		if r.seconds == nil {
			return nil, fmt.Errorf("%s: points of %s need a column of times, and a column of steps if there is more than one step", r.Name, points)
		}
		c.Steps = r.quarters(f.Subintervals, points)
	default:
		return nil, fmt.Errorf("points of %q: use %s, %s or %s", points, PointsOfRows, PointsOfSteps, PointsOfSubintervals)
	}
	if len(c.Steps) > mostTablePoints {
		return nil, fmt.Errorf("%s: %d points are too many for a curve, at most %d: name the column of steps and a column of times", r.Name,
			len(c.Steps), mostTablePoints)
	}
	return c, nil
}

// repetitions groups rows with the same load, in the order of the table. If loads rise and then
// fall again, the groups of the two directions are separate, unless one direction has a load twice.
func (r *reader) repetitions() [][]int {
	var runs [][]int // of neighbors with the same load
	turns, rising := 0, true
	for i := range r.Len() {
		x := r.Value(given.Clients, i).X
		if n := len(runs); n > 0 {
			last := r.Value(given.Clients, runs[n-1][0]).X
			if x == last {
				runs[n-1] = append(runs[n-1], i)
				continue
			}
			if (x > last) != rising {
				turns++
				rising = !rising
			}
		}
		runs = append(runs, []int{i})
	}
	if turns <= 1 && rising == (turns == 0) {
		return runs
	}
	place := map[float64]int{}
	var all [][]int
	for i := range r.Len() {
		x := r.Value(given.Clients, i).X
		at, ok := place[x]
		if !ok {
			at = len(all)
			place[x] = at
			all = append(all, nil)
		}
		all[at] = append(all[at], i)
	}
	return all
}

// point joins rows into one point of the curve.
func (r *reader) point(number int, rows []int) *steps.Working {
	s := &steps.Working{Figures: &steps.Figures{Step: number, ActiveClients: r.mean(given.Clients, rows),
		Hosts: []hosts.HostFigure{}, Resources: []steps.ResourceUsage{}}}
	s.Clients = int(math.Round(s.ActiveClients))
	if r.Has(given.Throughput) {
		s.Throughput = r.mean(given.Throughput, rows)
		s.PerClient = stats.Ratio(s.Throughput, s.ActiveClients)
	}
	latency := r.mean(given.Latency, rows)
	if latency > 0 {
		s.Latency = &steps.Quantiles{Count: int64(len(rows)), Mean: latency}
	}
	yields := r.yields(rows)
	if s.Operations = r.mean(given.Rate, rows); !r.Has(given.Rate) && !r.Has(given.Throughput) && latency > 0 {
		s.Operations = s.ActiveClients / latency
	}
	if r.Open {
		s.Rate, s.ActiveClients, s.Clients, s.PerClient = s.ActiveClients, s.Operations*latency, 0, 0
	}
	s.PerClientRate = stats.Ratio(s.Operations, s.ActiveClients)
	if r.Has(given.Rate) && latency > 0 && s.ActiveClients > 0 && !r.Open {
		law := s.Operations * latency / s.ActiveClients
		s.Little = &law
	}
	r.errors(s, rows)
	for _, i := range rows {
		if r.seconds != nil {
			s.Duration += r.seconds[i]
		}
	}
	r.spread(s, yields)
	return s
}

// yields returns the values by which points are compared, for each row with a known value.
func (r *reader) yields(rows []int) []float64 {
	var out []float64
	for _, i := range rows {
		v := r.Value(given.Throughput, i)
		if !r.Has(given.Throughput) {
			v = r.Value(given.Rate, i)
		}
		if latency := r.Value(given.Latency, i); !r.Has(given.Throughput) && !r.Has(given.Rate) && latency.Known && latency.X > 0 {
			v = given.Value{X: r.Value(given.Clients, i).X / latency.X, Known: true}
		}
		if v.Known {
			out = append(out, v.X)
		}
	}
	return out
}

// spread computes the interval of a point from the yields of its rows. The yields of a series are
// joined to batches first, as the seconds of a hold are.
func (r *reader) spread(s *steps.Working, yields []float64) {
	if r.seconds != nil {
		yields = joined(yields, steps.MostBatches)
	}
	s.Batches = len(yields)
	v, ok := stats.MeanInterval(yields)
	if !ok || len(yields) < stats.LeastBatches {
		return
	}
	s.Means = yields
	low, high := max(0, v.Low), v.High
	if r.Has(given.Throughput) {
		s.ThroughputLow, s.ThroughputHigh = &low, &high
		return
	}
	s.OperationsLow, s.OperationsHigh = &low, &high
}

// joined returns means of neighbors, at most the number most.
func joined(x []float64, most int) []float64 {
	if len(x) <= most {
		return x
	}
	out := make([]float64, most)
	for i := range out {
		out[i] = stats.Mean(x[i*len(x)/most : (i+1)*len(x)/most])
	}
	return out
}

// mean returns the mean of the known values of a column, weighted by the time that each row
// represents; 0 without known values.
func (r *reader) mean(k given.Kind, rows []int) float64 {
	var sum, weight float64
	for _, i := range rows {
		if v := r.Value(k, i); v.Known {
			w := 1.0
			if r.seconds != nil {
				w = r.seconds[i]
			}
			sum, weight = sum+w*v.X, weight+w
		}
	}
	return stats.Ratio(sum, weight)
}

// errors fills in the numbers of failed and completed operations, and the error ratio.
func (r *reader) errors(s *steps.Working, rows []int) {
	counted := func(k given.Kind) (n int64) {
		for _, i := range rows {
			if v := r.Value(k, i); v.Known && v.X < 1<<53 {
				n += int64(v.X)
			}
		}
		return n
	}
	s.Errors, s.Done = counted(given.Errors), counted(given.Done)
	switch {
	case r.Has(given.ErrorRatio):
		s.ErrorRatio, s.ErrorRatioGiven = r.mean(given.ErrorRatio, rows), true
	case r.Has(given.Errors) && s.Done+s.Errors > 0 && r.Has(given.Done):
		s.ErrorRatio, s.ErrorRatioGiven = stats.Ratio(float64(s.Errors), float64(s.Done+s.Errors)), true
	}
}

// warn adds to f the assumptions, and the data that the table lacks.
func (r *reader) warn(f *Findings) {
	f.addWarnings(r.Notes...)
	if !r.Has(given.Throughput) && !r.Has(given.Rate) {
		f.addFact("warning.rate_from_latency")
	}
	if r.Has(given.Errors) && !r.Has(given.Done) && !r.Has(given.ErrorRatio) {
		f.addFact("warning.no_error_ratio")
	}
	r.warnIdle(f)
	if f.Fits != nil && len(f.Fits.Lacking) > 0 {
		f.addFact("warning.model_not_fitted", "reasons", f.Fits.Lacking)
	}
}
