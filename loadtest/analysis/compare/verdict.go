package compare

import (
	"fmt"
	"math"

	"weir/loadtest/analysis/fact"
)

// Recommended numbers of runs of each group.
const (
	fewRuns    = 5
	advisedFor = 9
)

// verdict returns the result of the overall test. pairs is the number of pairs that p is corrected for.
func (p *Pair) verdict(m *Metric, pairs int) []fact.Fact {
	o := &p.Overall
	switch {
	case o.RunsA == 0 || o.RunsB == 0:
		return []fact.Fact{fact.New("compare.no_load", "a", p.A, "b", p.B, "metric", m.titled())}
	case o.Result == TooFew:
		return append([]fact.Fact{fact.New("compare.too_few", "a", p.A, "b", p.B, "metric", m.titled())}, p.tooFew()...)
	case o.Result == Equal:
		return []fact.Fact{fact.New("compare.equal", "metric", m.titled(), "a", p.A, "b", p.B)}
	}
	all := []fact.Fact{p.shift(m)}
	if pairs > 1 {
		all = append(all, fact.New("compare.corrected", "comparisons", pairs))
	}
	if p.Finds != nil && (o.Result == NotShown || o.Result == Alone) {
		all = append(all, fact.New("compare.detectable", "scatter", *p.Scatter, "difference", *p.Finds))
	}
	return all
}

// shift returns the result of a test that could be done.
func (p *Pair) shift(m *Metric) fact.Fact {
	o := &p.Overall
	metric, low, high, sure := m.titled(), m.signed(*o.Low), m.signed(*o.High), fact.As(*o.Adjusted, equals(*o.Adjusted))
	switch change := m.change(o.Value); o.Result {
	case Better:
		return fact.New("compare.better", "a", p.A, "b", p.B, "metric", metric, "change", change, "low", low, "high", high, "p", sure)
	case Worse:
		return fact.New("compare.worse", "a", p.A, "b", p.B, "metric", metric, "change", change, "low", low, "high", high, "p", sure)
	case Different:
		return fact.New("compare.different", "a", p.A, "b", p.B, "metric", metric, "change", change, "low", low, "high", high, "p", sure)
	}
	return fact.New("compare.not_shown", "a", p.A, "b", p.B, "metric", metric, "low", low, "high", high, "p", sure)
}

// tooFew returns the reason why there is no test, and the number of runs that a test needs.
func (p *Pair) tooFew() []fact.Fact {
	advice := fact.New("compare.too_few.advice", "advised", advisedFor)
	switch n, k := p.Overall.RunsA, p.Overall.RunsB; {
	case n == 1 && k == 1:
		return []fact.Fact{fact.New("compare.too_few.single_runs"), advice}
	case n == 1 || k == 1:
		return []fact.Fact{fact.New("compare.too_few.single_run"), advice}
	default:
		return []fact.Fact{fact.New("compare.too_few.least_p", "runs_a", n, "runs_b", k, "p", leastP(n, k)), advice}
	}
}

// leastP returns the least p that a permutation test of n against k runs can have.
func leastP(n, k int) fact.Shown {
	p := min(1, 2/arrangements(n, k))
	return fact.As(p, PText(p))
}

func arrangements(n, k int) float64 {
	all := 1.0
	for i := range k {
		all = all * float64(n+k-i) / float64(i+1)
	}
	return all
}

// method returns the method of the overall test.
func (p *Pair) method(m *Metric, loads int) []fact.Fact {
	all := []fact.Fact{m.number(loads)}
	switch {
	case p.Overall.P == nil:
		return append(all, fact.New("compare.method.none"))
	case p.pooled > 0:
		return append(all, fact.New("compare.method.variants", "degrees", p.pooled))
	case p.Blocked:
		return append(all, fact.New("compare.method.blocks", "blocks", p.Blocks))
	}
	all = append(all, fact.New("compare.method.runs", "runs_a", p.Overall.RunsA, "runs_b", p.Overall.RunsB))
	if p.Blocks >= fewestBlocks {
		all = append(all, fact.New("compare.method.no_drift", "blocks", p.Blocks))
	}
	return all
}

// number returns the way in which one number is computed from a run.
func (m *Metric) number(loads int) fact.Fact {
	switch {
	case m.PerRun():
		return fact.New("compare.method.whole_run", "metric", m.titled())
	case m.Plain:
		return fact.New("compare.method.mean", "metric", m.titled(), "steps", loads)
	}
	return fact.New("compare.method.geometric_mean", "metric", m.titled(), "steps", loads)
}

// Ratios of large and more, and of least and less, are written as multiples: percentages of several
// hundred, or of nearly minus one hundred, are hard to read.
const (
	large = 2
	least = 0.01
)

// way returns the direction of a shift in words.
func (m *Metric) way(v float64) string {
	switch {
	case !m.Plain && (v >= large || v <= least):
		return " as high"
	case m.up(v) < 0:
		return " lower"
	}
	return " higher"
}

// Change returns a shift in words: "5.2% higher", "0.1% points lower", "92 x as high".
func (m *Metric) Change(v float64) string {
	if m.up(v) == 0 {
		return "no higher"
	}
	return m.size(v) + m.way(v)
}

// Signed returns a shift for tables and intervals: "+5.2%", "-0.3%", "92 x"; of differences of shares, in points.
func (m *Metric) Signed(v float64) string {
	if m.way(v) == " as high" {
		return m.size(v)
	}
	sign := "+"
	if m.up(v) < 0 {
		sign = "-"
	}
	return sign + m.size(v)
}

// titled returns the metric for facts.
func (m *Metric) titled() fact.Shown { return fact.As(m.Name, m.Title) }

// change returns a shift for facts.
func (m *Metric) change(v float64) fact.Shown { return fact.As(v, m.Change(v)) }

// signed returns the end of an interval of a shift for facts.
func (m *Metric) signed(v float64) fact.Shown { return fact.As(v, m.Signed(v)) }

// up returns a value above zero if the shift v is upward.
func (m *Metric) up(v float64) float64 {
	if m.Plain {
		return v
	}
	return v - 1
}

// size returns the size of a shift, without its sign.
func (m *Metric) size(v float64) string {
	switch {
	case m.Plain:
		return percent(math.Abs(v)) + " points"
	case v >= large:
		return multiple(v) + " x"
	case v <= least:
		return "1/" + multiple(1/v) + " x"
	}
	return percent(math.Abs(v - 1))
}

// multiple formats a ratio of 2 or more: with one decimal below 10, and as a power of ten beyond a
// million.
func multiple(v float64) string {
	switch {
	case v < 9.95:
		return fmt.Sprintf("%.1f", v)
	case v < 1e6:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.0e", v)
}

// percent formats a share with one decimal; with two decimals below a tenth of a percent, without
// decimals from 100% on.
func percent(v float64) string {
	switch {
	case v != 0 && v < 0.001:
		return fmt.Sprintf("%.2f%%", 100*v)
	case v >= 1:
		return fmt.Sprintf("%.0f%%", 100*v)
	}
	return fmt.Sprintf("%.1f%%", 100*v)
}

// PText formats a p with its significant digits.
func PText(p float64) string {
	switch {
	case p < 0.0001:
		return "<0.0001"
	case p < 0.01:
		return fmt.Sprintf("%.4f", p)
	}
	return fmt.Sprintf("%.2f", p)
}

// equals formats p for a sentence: "= 0.03", "< 0.0001".
func equals(p float64) string {
	if text := PText(p); text[0] == '<' {
		return "< " + text[1:]
	}
	return "= " + PText(p)
}

// Regressed reports whether B is worse than A by more than limit beyond doubt: the whole 95%
// interval of the overall figure lies beyond it. limit is a share (0.05: 5%); for a metric that is
// a difference, limit is the difference itself. Regressed returns an error if that cannot be
// judged: too few runs, or a metric without a better direction.
func (p *Pair) Regressed(limit float64) (bool, error) {
	o := &p.Overall
	m := MetricOf(o.Metric)
	if m == nil || m.Better == Neither {
		return false, fmt.Errorf("%s has no better direction: gate on another metric", o.Metric)
	}
	if o.Low == nil {
		return false, fmt.Errorf("%s against %s cannot be judged: %s", p.B, p.A, fact.Sentences(p.tooFew()))
	}
	low, high := m.up(*o.Low), m.up(*o.High)
	if m.Better == Higher {
		return high < -limit, nil
	}
	return low > limit, nil
}
