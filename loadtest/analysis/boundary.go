package analysis

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/scenario"
)

// boundaries finds the loads at which each of the conditions holds. Without conditions it uses the
// default conditions, as far as their quantities were measured.
func (f *conclusion) boundaries(conditions []string) []Boundary {
	out := []Boundary{}
	asked := len(conditions) > 0
	if !asked {
		conditions = scenario.DefaultBoundaries(f.c.OfJobs())
	}
	for _, text := range conditions {
		b := Boundary{Condition: text}
		condition, err := scenario.ParseBoundary(text)
		if err != nil {
			b.Detail = err.Error()
		} else if known := f.seek(&b, condition); !known && !asked {
			continue
		}
		out = append(out, b)
	}
	return out
}

// seek fills in b. It returns false if no step has the quantity.
func (f *conclusion) seek(b *Boundary, c scenario.Boundary) (known bool) {
	var loads, values []float64
	lightest, estimated := -1, false
	for i := range f.c.Steps {
		if c.Measure.Name == jobMean {
			_, guess, _ := f.c.Steps[i].MeanJob()
			estimated = estimated || guess
		}
		v, ok := f.boundaryValue(f.c.Steps[i], c.Measure.Name)
		if !ok {
			v = math.NaN()
		}
		loads, values = append(loads, f.c.LoadOf(f.c.Steps[i])), append(values, v)
		if ok && (lightest < 0 || loads[i] < loads[lightest]) {
			lightest = i
		}
	}
	if lightest < 0 {
		b.Unmeasured = true
		b.state([]fact.Fact{fact.New("verdict.boundary.unmeasured", "quantity", c.Measure.Name)}, nil)
		return false
	}
	b.Limit = c.Value
	var notes []fact.Fact
	first := c.Measure.Format(values[lightest])
	if c.Single {
		b.Limit = stats.OrZero(c.Value * values[lightest])
		notes = append(notes, fact.New("verdict.boundary.limit", "limit", c.Measure.Format(b.Limit), "factor", c.Value, "value", first,
			"load", f.c.At(f.c.Steps[lightest])))
	}
	if estimated {
		notes = append(notes, fact.New("verdict.boundary.estimated"))
	}
	r := shape.Within(loads, values, shape.Limit{Sign: c.Sign, Value: b.Limit})
	b.From, b.To, b.Next, b.Crossing, b.Again, b.Above = r.From, r.To, r.Broken, r.Crossing, r.Again, r.To != nil && !r.Lightest
	b.state(f.rangeFacts(&r, first, loads[lightest]), notes)
	return true
}

// state sets the facts of the range of loads and the notes on it.
func (b *Boundary) state(loads, notes []fact.Fact) {
	b.Facts = slices.Concat(loads, notes)
	b.Detail = strings.Join(append([]string{strings.Join(fact.Texts(loads), ", ")}, fact.Texts(notes)...), "; ")
}

// jobMean is the quantity that is estimated if it was not measured.
const jobMean = "job_mean"

// boundaryValue returns the value of a measure in a step.
func (f *conclusion) boundaryValue(s *steps.Working, measure string) (value float64, known bool) {
	switch {
	case f.c.Table && measure == "error_ratio":
		return s.ErrorRatio, s.ErrorRatioGiven
	case f.c.Table && measure == "latency_mean" && s.Latency != nil:
		return s.Latency.Mean, true
	case f.c.Table && strings.Contains(measure, "_p") || f.c.Table && strings.HasSuffix(measure, "_max"): // a table has means only
		return 0, false
	case measure == jobMean: // estimated if no job ended: at such loads it matters most
		v, _, ok := s.MeanJob()
		return v, ok
	case measure != scenario.Efficiency:
		v := figureOf(s, measure)
		return v.value, v.known
	}
	each := func(s *steps.Working) float64 {
		mean, _, _ := f.c.Yield(s)
		return stats.Ratio(mean, s.ActiveClients)
	}
	lightest := f.c.Lightest()
	if one := each(f.c.Steps[lightest]); one > 0 && s.ActiveClients > 0 {
		return each(s) / one, true
	}
	return 0, false
}

// rangeFacts returns the loads at which a condition holds.
func (f *conclusion) rangeFacts(r *shape.Range, first string, lightest float64) (all []fact.Fact) {
	switch {
	case r.To == nil:
		return []fact.Fact{fact.New("verdict.boundary.never", "value", first, "load", f.loadText(lightest))}
	case *r.To > *r.From:
		all = append(all, fact.New("verdict.boundary.range", "from", bare(*r.From), "to", f.loadText(*r.To)))
	default:
		all = append(all, fact.New("verdict.boundary.single", "load", f.loadText(*r.From)))
	}
	if !r.Lightest {
		all = append(all, fact.New("verdict.boundary.below", "value", first, "load", f.loadText(lightest)))
	}
	switch {
	case r.Broken == nil:
		return append(all, fact.New("verdict.boundary.heaviest"))
	case r.Crossing != nil && *r.Crossing > *r.To && *r.Crossing < *r.Broken:
		all = append(all, fact.New("verdict.boundary.crossed", "load", f.loadText(*r.Broken), "crossing", bare(*r.Crossing)))
	default:
		all = append(all, fact.New("verdict.boundary.broken", "load", f.loadText(*r.Broken)))
	}
	if r.Again != nil {
		all = append(all, fact.New("verdict.boundary.again", "load", f.loadText(*r.Again)))
	}
	return all
}

// loadText formats a load in the same way as the curve's At formats the load of a step.
func (f *conclusion) loadText(load float64) string {
	switch {
	case f.c.Open():
		return bare(load) + " arrivals/s"
	case load == 1:
		return f.c.Count(1)
	}
	return bare(load) + " " + f.c.Load()
}

// bare formats whole numbers with all their digits and other loads with four digits, as further
// digits are uncertain.
func bare(load float64) string {
	if load == math.Trunc(load) && math.Abs(load) < 1e9 {
		return strconv.FormatFloat(load, 'f', -1, 64)
	}
	return strconv.FormatFloat(load, 'g', 4, 64)
}
