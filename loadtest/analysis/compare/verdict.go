package compare

import (
	"fmt"
	"math"

	"weir/internal/say"
	"weir/internal/unit"
)

// Recommended numbers of runs of each group.
const (
	fewRuns    = 5
	advisedFor = 9
)

// sentence says what the overall test showed, beside those of other pairs.
func (p *Pair) sentence(m *Metric, pairs int) string {
	o := &p.Overall
	if o.RunsA == 0 || o.RunsB == 0 {
		return fmt.Sprintf("%s and %s cannot be compared by %s: there is no load at which all runs have it.", p.A, p.B, m.Title)
	}
	switch o.Result {
	case TooFew:
		return fmt.Sprintf("There are too few runs to tell whether %s and %s differ in %s: %s.", p.A, p.B, m.Title, p.tooFew())
	case Equal:
		return fmt.Sprintf("%s is the same in all runs of %s and %s.", m.Title, p.A, p.B)
	}
	sure := "p " + equals(*o.Adjusted)
	if pairs > 1 {
		sure += fmt.Sprintf(" corrected for %d comparisons", pairs)
	}
	if o.Result == NotShown || o.Result == Alone {
		text := fmt.Sprintf("No difference in %s is shown between %s and %s: the 95%% interval of %s is %s, %s.", m.Title, p.A, p.B, p.B,
			m.Span(*o.Low, *o.High), sure)
		if p.Finds != nil {
			text += fmt.Sprintf(" Runs scatter by %s: a difference of %s would have been found in nine of ten cases.", unit.Percent(*p.Scatter),
				unit.Percent(*p.Finds))
		}
		return text
	}
	return fmt.Sprintf("%s is %s %s: its %s is %s (95%% interval: %s), %s.", p.B, than(o.Result), p.A, m.Title, m.Change(o.Value),
		m.Span(*o.Low, *o.High), sure)
}

// tooFew says why there is no test, and what it takes.
func (p *Pair) tooFew() string {
	n, k := p.Overall.RunsA, p.Overall.RunsB
	why := fmt.Sprintf("with %d against %d runs no p can be below %s", n, k, PText(min(1, 2/arrangements(n, k))))
	switch {
	case n == 1 && k == 1:
		why = "one run of each does not show how much runs of the same group differ"
	case n == 1 || k == 1:
		why = "a single run does not show how much runs of the same group differ"
	}
	return fmt.Sprintf("%s. At least 4 runs of each are needed; %d are recommended, which detect a difference of 5%% if runs scatter by 3%%",
		why, advisedFor)
}

// than is a result in a sentence: "better than", "different from".
func than(result string) string {
	if result == Different {
		return result + " from"
	}
	return result + " than"
}

func arrangements(n, k int) float64 {
	all := 1.0
	for i := range k {
		all = all * float64(n+k-i) / float64(i+1)
	}
	return all
}

// method says how the overall test was done.
func (p *Pair) method(m *Metric, loads int) string {
	number := "one number a run: its " + m.Title
	if !m.PerRun() {
		kind := "geometric mean"
		if m.Plain {
			kind = "mean"
		}
		number = fmt.Sprintf("one number a run: the %s of its %s over %d %s", kind, m.Title, loads,
			say.Either(loads, "common step", "common steps"))
	}
	switch {
	case p.Overall.P == nil:
		return number + "; no test"
	case p.pooled > 0:
		return fmt.Sprintf("%s; Student's tests with the noise of all variants (%d degrees of freedom) and with the noise of the pair, "+
			"which has too few runs for a permutation test", number, p.pooled)
	case p.Blocked:
		return fmt.Sprintf("%s; permutation test within %d blocks, since the level drifted from block to block", number, p.Blocks)
	case p.Blocks >= fewestBlocks:
		return fmt.Sprintf("%s; permutation test and Welch's test of the means, %d runs against %d; the level of the %d blocks did not drift",
			number, p.Overall.RunsA, p.Overall.RunsB, p.Blocks)
	}
	return fmt.Sprintf("%s; permutation test and Welch's test of the means, %d runs against %d", number, p.Overall.RunsA, p.Overall.RunsB)
}

// Ratios of large and more, and of least and less, are written as multiples: a percentage of hundreds, or of nearly
// hundred, is hard to read.
const (
	large = 2
	least = 0.01
)

// way tells in which words a shift is said.
func (m *Metric) way(v float64) string {
	switch {
	case !m.Plain && (v >= large || v <= least):
		return " as high"
	case m.up(v) < 0:
		return " lower"
	}
	return " higher"
}

// Change says a shift in words: "5.2% higher", "0.1 points lower", "92 x as high".
func (m *Metric) Change(v float64) string {
	if m.up(v) == 0 {
		return "no higher"
	}
	return m.size(v) + m.way(v)
}

// Span says an interval of a shift in words: "3.1% to 7.4% higher".
func (m *Metric) Span(low, high float64) string {
	a, b := m.up(low), m.up(high)
	switch {
	case a == 0 && b == 0:
		return "none"
	case a != 0 && b != 0 && m.way(low) == m.way(high):
		if a < 0 && b < 0 && m.way(low) == " lower" {
			low, high = high, low
		}
		return fmt.Sprintf("%s to %s", m.size(low), m.Change(high))
	}
	return fmt.Sprintf("%s to %s", m.Change(low), m.Change(high))
}

// Signed says a shift for tables: "+5.2%", "-0.3%", "92 x"; of differences of shares, in points.
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

// up is above zero if the shift v is upward.
func (m *Metric) up(v float64) float64 {
	if m.Plain {
		return v
	}
	return v - 1
}

// size is how large a shift is, without its sign.
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

// multiple is a ratio of 2 or more: with one decimal below 10, and as a power of ten beyond a million.
func multiple(v float64) string {
	switch {
	case v < 9.95:
		return fmt.Sprintf("%.1f", v)
	case v < 1e6:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.0e", v)
}

// percent is a share with one decimal; two below a tenth of a percent, none from 100% on.
func percent(v float64) string {
	switch {
	case v != 0 && v < 0.001:
		return fmt.Sprintf("%.2f%%", 100*v)
	case v >= 1:
		return fmt.Sprintf("%.0f%%", 100*v)
	}
	return fmt.Sprintf("%.1f%%", 100*v)
}

// PText is a p with as many digits as mean anything.
func PText(p float64) string {
	switch {
	case p < 0.0001:
		return "<0.0001"
	case p < 0.01:
		return fmt.Sprintf("%.4f", p)
	}
	return fmt.Sprintf("%.2f", p)
}

// equals is p in a sentence: "= 0.03", "< 0.0001".
func equals(p float64) string {
	if text := PText(p); text[0] == '<' {
		return "< " + text[1:]
	}
	return "= " + PText(p)
}

// Regressed says whether B is worse than A by more than limit beyond doubt: the whole 95% interval of the overall
// figure lies beyond it. limit is a share (0.05: 5%), of a metric that is a difference, the difference itself. An
// error says why that cannot be judged: too few runs, or a metric that has no worse.
func (p *Pair) Regressed(limit float64) (bool, error) {
	o := &p.Overall
	m := MetricOf(o.Metric)
	if m == nil || m.Better == Neither {
		return false, fmt.Errorf("%s has no better direction: gate on another metric", o.Metric)
	}
	if o.Low == nil {
		return false, fmt.Errorf("%s against %s cannot be judged: %s", p.B, p.A, p.tooFew())
	}
	low, high := m.up(*o.Low), m.up(*o.High)
	if m.Better == Higher {
		return high < -limit, nil
	}
	return low > limit, nil
}
