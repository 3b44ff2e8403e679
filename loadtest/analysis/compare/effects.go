package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"weir/internal/say"
)

// A Factor is a key that a campaign varies, with its levels; the first is what others are compared with.
type Factor struct {
	Key    string   `json:"key"`
	Levels []string `json:"levels"`
}

// Effects is what the factors of a campaign do to one number a run, the first metric.
type Effects struct {
	Metric       string   `json:"metric"`
	Runs         int      `json:"runs"`    // that have the number
	Blocks       int      `json:"blocks"`  // 1: changes in time are not separated
	Degrees      int      `json:"degrees"` // of freedom of the noise; 0: no test
	Scatter      *float64 `json:"scatter"` // standard deviation from run to run, without blocks and factors
	Detail       string   `json:"detail"`
	Main         []Effect `json:"main"`         // of each level of each factor, over all levels of the others
	Interactions []Effect `json:"interactions"` // of two factors together, the notable first
}

// An Effect is what one level does instead of the first one. With another factor it is how much that changes where
// the other has another level: a ratio of ratios, or a difference of differences.
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

// effects fits what each variant gives, besides what each block adds to all of them, and takes effects as contrasts
// of the variants: for each combination of the other factors the variants that differ in this one alone, averaged
// over all combinations that have both (Fisher, The Design of Experiments, 1935, chapter 6; Yates 1937). Noise is
// what variants and blocks leave over.
func effects(groups []Group, factors []Factor, m *Metric, loads []load) *Effects {
	e := &Effects{Metric: m.Name, Main: []Effect{}, Interactions: []Effect{}}
	d := newDesign(groups, m, loads)
	e.Runs, e.Blocks = len(d.y), d.blocks
	fit, ok := d.fit()
	if !ok {
		e.Detail = "too few runs for effects of factors"
		return e
	}
	e.Degrees = fit.degrees
	e.Detail = fmt.Sprintf("%d runs in %d %s; noise from the residuals after variants and blocks, %d degrees of freedom", e.Runs, e.Blocks,
		say.Either(e.Blocks, "block", "blocks"), e.Degrees)
	if e.Degrees > 0 && !m.Plain {
		e.Scatter = new(math.Expm1(fit.deviation))
	} else if e.Degrees == 0 {
		e.Detail = fmt.Sprintf("%d runs without repetitions: there is no noise to compare effects with; repeat the campaign (repeat: 5)", e.Runs)
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

// varied returns the factors that have levels to compare.
func varied(factors []Factor) []Factor {
	return slices.DeleteFunc(slices.Clone(factors), func(f Factor) bool { return len(f.Levels) < 2 })
}

// settle corrects the p of all effects by Holm's method, and decides.
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

// variantKey tells variants apart by their levels.
func variantKey(levels map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(levels)) {
		fmt.Fprintf(&b, "%q=%q ", key, levels[key])
	}
	return b.String()
}

// sentences says what each factor does.
func (e *Effects) sentences(m *Metric) []string {
	var all []string
	for i := range e.Main {
		x := &e.Main[i]
		head := fmt.Sprintf("%s %s instead of %s", x.Factor, quote(x.Level), quote(x.Against))
		switch {
		case x.Low == nil:
			all = append(all, fmt.Sprintf("%s: there are too few runs to find its effect on %s; repeat the campaign.", head, m.Title))
		case x.Result == NotShown || x.Result == Alone:
			all = append(all, fmt.Sprintf("%s: no difference in %s is shown (95%% interval: %s).", head, m.Title, m.Span(*x.Low, *x.High)))
		default:
			all = append(all, fmt.Sprintf("%s is %s: its %s is %s (95%% interval: %s).", head, x.Result, m.Title, m.Change(x.Value),
				m.Span(*x.Low, *x.High)))
		}
	}
	for i := range e.Interactions {
		if x := &e.Interactions[i]; x.Result == Different {
			all = append(all, fmt.Sprintf("The effect of %s %s depends on %s: with %s instead of %s its effect on %s is %s (95%% interval: %s).",
				x.Factor, quote(x.Level), x.With.Factor, quote(x.With.Level), quote(x.With.Against), m.Title, m.Change(x.Value),
				m.Span(*x.Low, *x.High)))
		}
	}
	return all
}
