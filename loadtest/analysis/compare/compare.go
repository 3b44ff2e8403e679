package compare

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"weir/internal/stats"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/fact"
)

// Version is the version of the format of a Comparison's JSON.
const Version = 1

// A Comparison is the result of comparing groups of runs. Its JSON is part of the format, see
// docs/results.md.
type Comparison struct {
	Version  int      `json:"version"`
	Verdicts []string `json:"verdicts"` // one sentence for each pair, or for each factor
	Status   string   `json:"status"`   // of the least valid run
	Metrics  []string `json:"metrics"`  // the compared metrics; the first decides
	Groups   []Group  `json:"groups"`
	Pairs    []Pair   `json:"pairs"`   // each further group compared with the first
	Effects  *Effects `json:"effects"` // of a campaign's factors; nil without factors
	Warnings []string `json:"warnings"`

	Facts []fact.Fact `json:"facts"` // of Verdicts and Warnings

	Conditions []Condition `json:"conditions"` // of scenario and machine, if groups differ
}

// A Pair compares group B with group A.
type Pair struct {
	A       string      `json:"a"`
	B       string      `json:"b"`
	RunsA   int         `json:"runs_a"`
	RunsB   int         `json:"runs_b"`
	Result  string      `json:"result"` // of Overall: as Shift.Result
	Verdict string      `json:"verdict"`
	Method  string      `json:"method"`  // of the decision
	Facts   []fact.Fact `json:"facts"`   // of Verdict and Method
	Blocks  int         `json:"blocks"`  // pairs of consecutive runs of A and B; 0: no blocks
	Blocked bool        `json:"blocked"` // tests compare within blocks, as levels move
	Overall Shift       `json:"overall"` // first metric, mean over the common steps
	Load    string      `json:"load"`    // unit of the loads: clients, jobs, arrivals/s or stages
	Steps   []StepShift `json:"steps"`   // by load
	PerRun  []Shift     `json:"per_run"` // metrics that are one number of a run
	Scatter *float64    `json:"scatter"` // standard deviation from run to run of the first metric; of ratios
	Finds   *float64    `json:"detectable"`

	pooled int // degrees of freedom of the noise of all variants, if the pair was judged by it
}

// A StepShift compares the step of one load in the two groups.
type StepShift struct {
	Clients int     `json:"clients"`
	Rate    float64 `json:"rate_per_second,omitempty"`
	Again   int     `json:"occurrence"` // 1, or more if a load is held more than once; number of the stage
	Metrics []Shift `json:"metrics"`
}

// Results of a Shift.
const (
	Better    = "better"
	Worse     = "worse"
	Different = "different" // of a metric that is neither good nor bad
	NotShown  = "no difference shown"
	Alone     = "only if looked at alone" // p below 0.05, but not after correction for all tested numbers
	TooFew    = "too few runs"            // no arrangement of so few runs would be called different
	Equal     = "equal"                   // all numbers of the two groups are the same
)

// A Shift is the difference of one metric between B and A.
type Shift struct {
	Metric   string   `json:"metric"`
	Kind     string   `json:"kind"` // ratio: B/A; difference: B-A
	A        float64  `json:"a"`    // median of A's runs; overall: mean, geometric for ratios
	B        float64  `json:"b"`    // in base units
	RunsA    int      `json:"runs_a"`
	RunsB    int      `json:"runs_b"`
	Value    float64  `json:"value"`  // ratio or difference
	Low      *float64 `json:"low"`    // 95% interval; nil: too few runs
	High     *float64 `json:"high"`   //
	P        *float64 `json:"p"`      // nil: too few runs
	Adjusted *float64 `json:"p_holm"` // corrected for all tested numbers; nil: overall test
	Result   string   `json:"result"` // Better, Worse, ...
	ALow     *float64 `json:"a_low"`  // of a single run: 95% interval within it
	AHigh    *float64 `json:"a_high"` //
	BLow     *float64 `json:"b_low"`  //
	BHigh    *float64 `json:"b_high"` //
}

// Kinds of a Shift.
const (
	Ratio      = "ratio"
	Difference = "difference"
)

// Options select the compared metrics.
type Options struct {
	Metrics []string    // names; empty: the usual metrics, the first of which decides
	Factors []Factor    // of a campaign, whose groups are its variants
	LeftOut []fact.Fact // warnings of runs that are not in the groups
}

// mostRuns limits the size of a group, so that a comparison does not have millions of differences.
const mostRuns = 1000

// Of compares each group with the first group. It returns an error if that is impossible: fewer
// than two groups, a group without runs, a metric that does not exist.
func Of(groups []Group, opts Options) (*Comparison, error) {
	if len(groups) < 2 {
		return nil, fmt.Errorf("there is only one group of runs: a comparison needs two")
	}
	for _, g := range groups {
		if len(g.Runs) == 0 {
			return nil, fmt.Errorf("%s has no run that can be compared", g.Name)
		}
		if len(g.Runs) > mostRuns {
			return nil, fmt.Errorf("%s has %d runs: at most %d can be compared", g.Name, len(g.Runs), mostRuns)
		}
	}
	names := opts.Metrics
	if len(names) == 0 {
		names = usual(measure(groups))
	}
	metrics, err := choose(names)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Version: Version, Groups: groups, Status: worst(groups), Pairs: []Pair{}, Verdicts: []string{}, Metrics: []string{},
		Warnings: []string{}, Facts: []fact.Fact{}, Conditions: conditions(groups)}
	for _, m := range metrics {
		c.Metrics = append(c.Metrics, m.Name)
	}
	loads := common(groups)
	if len(loads) == 0 && !metrics[0].PerRun() {
		return nil, fmt.Errorf("the runs have no step in common: %s; compare metrics of whole runs: --metric peak,optimum,knee", held(groups))
	}
	c.warn(opts.LeftOut...)
	c.warn(warnings(groups, loads)...)
	judged, left := moving(groups, &metrics[0], loads)
	c.warn(left...)
	for i := range groups {
		values(&groups[i], &metrics[0], judged)
	}
	for i := range groups[1:] {
		c.Pairs = append(c.Pairs, pair(&groups[0], &groups[i+1], metrics, loads, judged))
	}
	several := len(varied(opts.Factors)) > 1 // the effect of a single factor is in the pairs
	if several {
		c.pool(&metrics[0], judged)
	}
	c.decide(&metrics[0], len(judged))
	if several {
		c.Effects = effects(groups, opts.Factors, &metrics[0], judged)
		told := c.Effects.verdicts(&metrics[0])
		c.Verdicts, c.Facts = slices.Concat(fact.Texts(told), c.Verdicts), append(c.Facts, told...)
	}
	return c, nil
}

// warn adds warnings.
func (c *Comparison) warn(all ...fact.Fact) {
	c.Warnings, c.Facts = append(c.Warnings, fact.Texts(all)...), append(c.Facts, all...)
}

// decide corrects the p of the verdicts for the number of pairs, and fills in the verdict of each
// pair.
func (c *Comparison) decide(m *Metric, loads int) {
	holm(c.Pairs, func(p *Pair) *float64 { return p.Overall.P }, func(p *Pair, v float64) {
		p.Overall.Adjusted = &v
		p.Overall.decide(m, v)
		p.Result = p.Overall.Result
	})
	for i := range c.Pairs {
		p := &c.Pairs[i]
		verdict, method := p.verdict(m, len(c.Pairs)), p.method(m, loads)
		p.Verdict, p.Method = fact.Sentences(verdict), strings.Join(fact.Texts(method), "; ")
		p.Facts = slices.Concat(verdict, method)
		c.Verdicts, c.Facts = append(c.Verdicts, p.Verdict), append(c.Facts, verdict...)
		if n, hopeless := p.looks(); hopeless {
			c.warn(fact.New("compare.many_figures", "a", p.A, "b", p.B, "figures", n))
		}
	}
}

// holm corrects the p of all elements, nil for elements without a test, by Holm's method, and calls
// found for each element with a test.
func holm[T any](all []T, p func(*T) *float64, found func(x *T, adjusted float64)) {
	raw := make([]float64, len(all))
	for i := range all {
		if raw[i] = math.NaN(); p(&all[i]) != nil {
			raw[i] = *p(&all[i])
		}
	}
	for i, v := range stats.Holm(raw) {
		if !math.IsNaN(v) {
			found(&all[i], v)
		}
	}
}

// measure returns the quantity by which steps are compared: the throughput, unless a run moved no
// payload, or all runs are of jobs.
func measure(groups []Group) string {
	if how := ofWhichJobs(groups); how != "" {
		return how
	}
	for r := range eachRun(groups) {
		if r.Found.Measure == analysis.Rate {
			return analysis.Rate
		}
	}
	return analysis.Throughput
}

// ofWhichJobs returns the quantity by which the jobs of all runs can be compared, "" if not all
// runs are of jobs, or if only the time of the jobs is known.
func ofWhichJobs(groups []Group) string {
	computed, read := true, true
	for r := range eachRun(groups) {
		for i := range r.Found.Curve {
			s := &r.Found.Curve[i]
			computed = computed && s.ClusterThroughput != nil
			read = read && s.Jobs != nil && s.EventRate > 0
		}
	}
	switch {
	case computed:
		return ofCPU
	case read:
		return ofEvents
	}
	return ""
}

// worst returns the status of the least valid run.
func worst(groups []Group) string {
	status := analysis.Valid
	for r := range eachRun(groups) {
		if r.Status == analysis.Invalid || status == analysis.Valid {
			status = r.Status
		}
	}
	return status
}

// JSON writes c; its keys are part of the format.
func (c *Comparison) JSON(w io.Writer) error { return analysis.JSON(w, c) }
