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

// A Comparison is what groups of runs show beside each other. Its JSON is part of the format, see docs/results.md.
type Comparison struct {
	Version  int      `json:"version"`
	Verdicts []string `json:"verdicts"` // one sentence for each pair, or for each factor
	Status   string   `json:"status"`   // of the least valid run
	Metrics  []string `json:"metrics"`  // that were looked at; the first decides
	Groups   []Group  `json:"groups"`
	Pairs    []Pair   `json:"pairs"`   // each further group against the first
	Effects  *Effects `json:"effects"` // of a campaign's factors; nil if there are none
	Warnings []string `json:"warnings"`

	Facts []fact.Fact `json:"facts"` // of Verdicts and Warnings

	Conditions []Condition `json:"conditions"` // of scenario and machine, that are not the same in all groups
}

// A Pair is group B against group A.
type Pair struct {
	A       string      `json:"a"`
	B       string      `json:"b"`
	RunsA   int         `json:"runs_a"`
	RunsB   int         `json:"runs_b"`
	Result  string      `json:"result"` // of Overall: as Shift.Result
	Verdict string      `json:"verdict"`
	Method  string      `json:"method"`  // how that was decided
	Facts   []fact.Fact `json:"facts"`   // of Verdict and Method
	Blocks  int         `json:"blocks"`  // of one run of A and one of B, done one after the other; 0: none
	Blocked bool        `json:"blocked"` // the tests compare within blocks, since the level wanders from block to block
	Overall Shift       `json:"overall"` // first metric, mean over the common steps
	Load    string      `json:"load"`    // what steps count: clients, jobs or arrivals/s
	Steps   []StepShift `json:"steps"`   // by load
	PerRun  []Shift     `json:"per_run"` // metrics that are one number of a run
	Scatter *float64    `json:"scatter"` // standard deviation from run to run of the first metric; of ratios
	Finds   *float64    `json:"detectable"`

	pooled int // degrees of freedom of the noise of all variants, where the pair was judged by it
}

// A StepShift is one step, of the same load in both groups.
type StepShift struct {
	Clients int     `json:"clients"`
	Rate    float64 `json:"rate_per_second,omitempty"`
	Again   int     `json:"occurrence"` // 1, or more where a load is held more than once
	Metrics []Shift `json:"metrics"`
}

// Results of a Shift.
const (
	Better    = "better"
	Worse     = "worse"
	Different = "different" // of a metric that is neither good nor bad
	NotShown  = "no difference shown"
	Alone     = "only if looked at alone" // p below 0.05, but not when corrected for all that was looked at
	TooFew    = "too few runs"            // no arrangement of so few runs would be called different
	Equal     = "equal"                   // all numbers of both groups are the same
)

// A Shift is how one metric of B lies against that of A.
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
	Adjusted *float64 `json:"p_holm"` // corrected for all that was looked at; nil for the overall test
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

// Options say what to look at.
type Options struct {
	Metrics []string // names; empty: the usual ones, the first of which decides
	Factors []Factor // of a campaign, whose groups are its variants
}

// mostRuns bounds a group, so that a comparison has no million differences.
const mostRuns = 1000

// Of compares each group with the first one. An error says what makes that impossible: fewer than two groups, a group
// without runs, a metric that does not exist.
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
	c.warn(warnings(groups, loads)...)
	judged, left := moving(groups, &metrics[0], loads)
	c.warn(left...)
	for i := range groups {
		values(&groups[i], &metrics[0], judged)
	}
	for i := range groups[1:] {
		c.Pairs = append(c.Pairs, pair(&groups[0], &groups[i+1], metrics, loads, judged))
	}
	several := len(varied(opts.Factors)) > 1 // one alone is what the pairs tell
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

// decide corrects the p of the verdicts for the number of pairs, and fills in the verdict of each pair.
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

// holm corrects the p of all, nil where there is no test, by Holm's method, and calls found with each that has one.
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

// measure is what steps are compared by: the throughput, unless a run moved no payload, or all are of jobs.
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

// ofWhichJobs tells what the jobs of all runs can be compared by, "" where not all runs are of jobs, or nothing is
// known of what they did but their time.
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

// worst is the status of the least valid run.
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
