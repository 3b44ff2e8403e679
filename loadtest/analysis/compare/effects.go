package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"weir/loadtest/analysis/fact"
)

// A Factor is a key that a campaign varies, with its levels; the first level is the reference for
// the others.
type Factor struct {
	Key    string   `json:"key"`
	Levels []string `json:"levels"`
}

// Effects are the effects of the factors of a campaign on one number per run, the first metric.
type Effects struct {
	Metric       string      `json:"metric"`
	Runs         int         `json:"runs"`    // with the number
	Blocks       int         `json:"blocks"`  // 1: changes in time are not separated
	Degrees      int         `json:"degrees"` // of freedom of the noise; 0: no test
	Scatter      *float64    `json:"scatter"` // standard deviation from run to run, without blocks and factors
	Detail       string      `json:"detail"`
	Facts        []fact.Fact `json:"facts"`        // of Detail
	Main         []Effect    `json:"main"`         // of each level of each factor, over all levels of others
	Interactions []Effect    `json:"interactions"` // of two factors together, the significant first
}

// An Effect is the change that one level causes in comparison with the first level. With another
// factor it is the change of this effect if the other factor has another level: a ratio of ratios,
// or a difference of differences.
type Effect struct {
	Factor   string   `json:"factor"`
	Level    string   `json:"level"`
	Against  string   `json:"against"` // the first level
	With     *Setting `json:"with"`    // interactions only
	Kind     string   `json:"kind"`    // Ratio or Difference
	Value    float64  `json:"value"`
	Low      *float64 `json:"low"` // 95% interval; nil: no test
	High     *float64 `json:"high"`
	P        *float64 `json:"p"`
	Adjusted *float64 `json:"p_holm"` // over all main effects, or all interactions
	Result   string   `json:"result"`
}

// A Setting is a level of another factor.
type Setting struct {
	Factor  string `json:"factor"`
	Level   string `json:"level"`
	Against string `json:"against"`
}

// effects fits the yield of each variant, and the deviation of each block that all variants share.
// Effects are contrasts of the variants: for each combination of the other factors the variants
// that differ only in this factor, averaged over all combinations that have the two variants
// (Fisher, The Design of Experiments, 1935, chapter 6; Yates 1937). Noise is the residual after
// variants and blocks.
func effects(groups []Group, factors []Factor, m *Metric, loads []load) *Effects {
	e := &Effects{Metric: m.Name, Main: []Effect{}, Interactions: []Effect{}}
	d := newDesign(groups, m, loads)
	e.Runs, e.Blocks = len(d.y), d.blocks
	fit, ok := d.fit()
	if !ok {
		e.explain(fact.New("compare.effect.no_runs"))
		return e
	}
	e.Degrees = fit.degrees
	if e.Degrees > 0 {
		e.explain(fact.New("compare.effect.method", "runs", e.Runs, "blocks", e.Blocks, "degrees", e.Degrees))
	} else {
		e.explain(fact.New("compare.effect.no_noise", "runs", e.Runs))
	}
	if e.Degrees > 0 && !m.Plain {
		e.Scatter = new(math.Expm1(fit.deviation))
	}
	factors = varied(factors)
	for i, f := range factors {
		for _, level := range f.Levels[1:] {
			x := Effect{Factor: f.Key, Level: level, Against: f.Levels[0]}
			if fit.estimate(&x, d.contrast(f, level, nil, ""), m) {
				e.Main = append(e.Main, x)
			}
			for _, g := range factors[i+1:] {
				for _, other := range g.Levels[1:] {
					x := Effect{Factor: f.Key, Level: level, Against: f.Levels[0], With: &Setting{g.Key, other, g.Levels[0]}}
					if fit.estimate(&x, d.contrast(f, level, &g, other), m) {
						e.Interactions = append(e.Interactions, x)
					}
				}
			}
		}
	}
	settle(e.Main, m)
	settle(e.Interactions, m)
	slices.SortStableFunc(e.Interactions, func(x, y Effect) int {
		if x.P == nil || y.P == nil {
			return 0
		}
		return cmp.Compare(*x.P, *y.P)
	})
	return e
}

// explain fills in the method of calculation of the effects.
func (e *Effects) explain(how fact.Fact) { e.Detail, e.Facts = how.Text, []fact.Fact{how} }

// varied returns the factors that have levels to compare.
func varied(factors []Factor) []Factor {
	return slices.DeleteFunc(slices.Clone(factors), func(f Factor) bool { return len(f.Levels) < 2 })
}

// settle corrects the p of all effects by Holm's method, and fills in the results.
func settle(all []Effect, m *Metric) {
	holm(all, func(x *Effect) *float64 { return x.P }, func(x *Effect, p float64) {
		x.Adjusted = &p
		s := Shift{Kind: x.Kind, Value: x.Value, P: x.P, Result: NotShown}
		s.decide(m, p)
		if x.Result = s.Result; x.With != nil && (s.Result == Better || s.Result == Worse) {
			x.Result = Different // whether an effect depends on another is neither good nor bad
		}
	})
}

// variantKey returns a key that is unique for the levels of a variant.
func variantKey(levels map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(levels)) {
		fmt.Fprintf(&b, "%q=%q ", key, levels[key])
	}
	return b.String()
}

// verdicts returns the effect of each level, and the interactions that are significant.
func (e *Effects) verdicts(m *Metric) []fact.Fact {
	var all []fact.Fact
	for i := range e.Main {
		all = append(all, e.Main[i].verdict(m))
	}
	for i := range e.Interactions {
		if x := &e.Interactions[i]; x.Result == Different {
			all = append(all, fact.New("compare.effect.depends", "factor", x.Factor, "level", orNone(x.Level), "with", x.With.Factor,
				"with_level", orNone(x.With.Level), "with_against", orNone(x.With.Against), "metric", m.titled(), "change", m.change(x.Value),
				"low", m.signed(*x.Low), "high", m.signed(*x.High)))
		}
	}
	return all
}

// verdict returns the effect of a level in comparison with the first level.
func (x *Effect) verdict(m *Metric) fact.Fact {
	level, against, metric := orNone(x.Level), orNone(x.Against), m.titled()
	if x.Low == nil {
		return fact.New("compare.effect.too_few", "factor", x.Factor, "level", level, "against", against, "metric", metric)
	}
	change, low, high := m.change(x.Value), m.signed(*x.Low), m.signed(*x.High)
	switch x.Result {
	case Better:
		return fact.New("compare.effect.better", "factor", x.Factor, "level", level, "against", against, "metric", metric, "change", change,
			"low", low, "high", high)
	case Worse:
		return fact.New("compare.effect.worse", "factor", x.Factor, "level", level, "against", against, "metric", metric, "change", change,
			"low", low, "high", high)
	case Different:
		return fact.New("compare.effect.different", "factor", x.Factor, "level", level, "against", against, "metric", metric,
			"change", change, "low", low, "high", high)
	}
	return fact.New("compare.effect.not_shown", "factor", x.Factor, "level", level, "against", against, "metric", metric, "low", low,
		"high", high)
}

// orNone returns a value for facts, with the text "none" if it is empty.
func orNone(s string) fact.Shown { return fact.As(s, cmp.Or(s, "none")) }
