package validity

import (
	"math"
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
)

// steadiness counts the steps whose steadiness is known. unclear lists the steps with too much
// variation for a decision, and bounded reports whether a step lasts until its work is done.
func steadiness(curve *steps.Curve) (n int, bounded bool, unclear []string) {
	for _, s := range curve.Steps {
		bounded = bounded || s.Bounded
		if s.Steady != nil {
			n++
		} else if s.Drift != nil {
			unclear = append(unclear, curve.At(s))
		}
	}
	return n, bounded, unclear
}

// drifts lists the steps that drifted, and the steps that became steady only after their
// measurement began. Any step may differ by chance: the bound depends on the number of judged
// steps.
func drifts(curve *steps.Curve, judged int) (drifted, warmed []fact.Fact) {
	rare := stats.Ratio(steps.MostFalse, float64(judged))
	for _, s := range curve.Steps {
		if s.Steady == nil {
			continue
		}
		if !*s.Steady && math.Abs(*s.Drift) >= steps.Unsteady && s.Change <= rare {
			drifted = append(drifted, fact.New("check.steadiness.drift", "load", curve.At(s), "change", s.Turn))
			continue
		}
		if s.SteadyPart == nil || s.Warmed > rare {
			continue
		}
		all, _, _ := curve.Yield(s)
		part := s.SteadyPart.Throughput
		if curve.Measure == steps.Rate {
			part = s.SteadyPart.Operations
		}
		if math.Abs(part-all) > steps.Otherwise*all {
			warmed = append(warmed, fact.New("check.steadiness.settled", "load", curve.At(s),
				"after", fact.As(part, curve.Show(part)), "seconds", s.SteadyPart.From, "overall", fact.As(all, curve.Show(all))))
		}
	}
	return drifted, warmed
}

// crept is the least change of a level from the first measurement to the last, as a share of its
// mean, that is reported.
const crept = 0.2

// creeping returns the change of the level through all steps, per second and from the first
// measurement to the last, as shares of the mean: a service that gets slower by 1% a second does so
// in each step, at any load, and the curve shows time as well as load. The change is judged within
// the steps, whose p values are combined (Stouffer and others, The American Soldier, volume 1,
// 1949, page 45); a change only at the beginning of steps does not continue. ok is false if the
// change is small, or not more than chance.
func creeping(curve *steps.Curve) (rate, whole float64, ok bool) {
	var z, n, late, weight float64
	var from, to time.Time
	for _, s := range curve.Steps {
		c := s.Creep
		if !c.Known {
			continue
		}
		n++
		z += math.Copysign(math.Sqrt2*math.Erfinv(1-max(c.P, 1e-12)), c.Rate)
		rate, late, weight = rate+s.Duration*c.Rate, late+s.Duration*c.Late, weight+s.Duration
		if from.IsZero() || c.From.Before(from) {
			from = c.From
		}
		if c.To.After(to) {
			to = c.To
		}
	}
	if n < 2 {
		return 0, 0, false // the drift of a single step reports it
	}
	rate, late = rate/weight, late/weight
	whole = rate * to.Sub(from).Seconds()
	p := math.Erfc(math.Abs(z) / math.Sqrt(2*n))
	return rate, whole, p <= steps.MostFalse/2 && math.Abs(whole) >= crept && late*rate > 0 && math.Abs(late) >= math.Abs(rate)/2
}

// checkSteady lists the steps whose load drifted while it should have been constant.
func checkSteady(curve *steps.Curve) Check {
	c := Check{Name: "steadiness", Status: OK}
	judged, bounded, unclear := steadiness(curve)
	drifted, warmed := drifts(curve, judged)
	again := changed(curve)
	lighter, heavier := superlinear(curve)
	switch {
	case len(curve.Steps) == 0:
		return c.Skip(fact.New("check.steadiness.no_step"))
	case judged == 0 && bounded && len(again) == 0:
		return c.Skip(fact.New("check.steadiness.bounded"))
	case len(again) > 0, lighter != nil:
	case judged+len(unclear) == 0:
		return c.unchecked(fact.New("check.steadiness.too_short"), fact.New("remedy.measure_longer"))
	case judged == 0:
		return c.unchecked(fact.New("check.steadiness.varied"), fact.New("remedy.measure_longer"))
	case len(unclear) > 0:
		c.Note(fact.New("check.steadiness.unclear", "loads", fact.List(unclear)), fact.New("remedy.measure_longer"))
	}
	if len(drifted) > 0 {
		c.addFact("check.steadiness.drifted", "drifted", len(drifted), "judged", judged)
		c.AddSome(drifted)
	}
	if len(warmed) > 0 {
		c.addFact("check.steadiness.unsettled", "unsettled", len(warmed), "judged", judged)
		c.AddSome(warmed)
	}
	if rate, whole, creeps := creeping(curve); creeps {
		c.addFact("check.steadiness.creeping", "each_second", rate, "whole", whole)
	}
	if lighter != nil {
		less, _, _ := curve.Yield(lighter)
		more, _, _ := curve.Yield(heavier)
		c.addFact("check.steadiness.superlinear", "heavier", curve.At(heavier), "factor", more/less, "lighter", curve.At(lighter))
	}
	c.AddSome(again)
	if len(c.Facts) > 0 {
		c.Status = Warn
		return c
	}
	c.addFact("check.steadiness.steady", "judged", judged, "steps", len(curve.Steps))
	return c
}
