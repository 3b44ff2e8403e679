package validity

import (
	"fmt"
	"math"
	"strings"
	"time"

	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/steps"
)

// steadiness counts the steps whose steadiness is known; unclear are those with too much variation for a decision, and
// bounded reports whether a step lasts until its work is done.
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

// drifts lists the steps that drifted, and those that settled after their measurement began. Each step may be unlike by
// chance: so many are judged.
func drifts(curve *steps.Curve, judged int) (drifted, warmed []string) {
	rare := stats.Ratio(steps.MostFalse, float64(judged))
	for _, s := range curve.Steps {
		if s.Steady == nil {
			continue
		}
		if !*s.Steady && math.Abs(*s.Drift) >= steps.Unsteady && s.Change <= rare {
			drifted = append(drifted, fmt.Sprintf("%s %+.0f%%", curve.At(s), 100*s.Turn))
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
			warmed = append(warmed, fmt.Sprintf("%s: %s after the first %s, %s overall", curve.At(s), curve.Show(part),
				unit.Seconds(s.SteadyPart.From), curve.Show(all)))
		}
	}
	return drifted, warmed
}

// crept is how much a level must have changed from the first measurement to the last, as a share of its mean, to be worth a remark.
const crept = 0.2

// creeping returns by how much the level changed through all steps, a second and from the first measurement to the last, as
// shares of the mean: a service that gets slower by 1% a second does so in each step, whatever the load, and the curve shows time
// as well as load. It is judged within the steps, whose p values are combined (Stouffer and others, The American Soldier,
// volume 1, 1949, page 45); what changes only at their beginning does not go on. ok is false if that is no more than chance, or little.
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
		return 0, 0, false // of one step, its drift says it
	}
	rate, late = rate/weight, late/weight
	whole = rate * to.Sub(from).Seconds()
	p := math.Erfc(math.Abs(z) / math.Sqrt(2*n))
	return rate, whole, p <= steps.MostFalse/2 && math.Abs(whole) >= crept && late*rate > 0 && math.Abs(late) >= math.Abs(rate)/2
}

// checkSteady lists the steps whose load drifted while it should have held.
func checkSteady(curve *steps.Curve) Check {
	c := Check{Name: "steadiness", Status: OK}
	judged, bounded, unclear := steadiness(curve)
	drifted, warmed := drifts(curve, judged)
	again := changed(curve)
	lighter, heavier := superlinear(curve)
	switch {
	case len(curve.Steps) == 0:
		return c.Skip("no step counts")
	case judged == 0 && bounded && len(again) == 0:
		return c.Skip("each step lasts until its last job is done, so fewer jobs run towards its end")
	}
	switch longer := "measure longer (load.duration)"; {
	case len(again) > 0, lighter != nil:
	case judged+len(unclear) == 0:
		return c.unchecked("no step was measured for the 5 s that a slope needs", longer)
	case judged == 0:
		return c.unchecked("the throughput varied too much to tell whether it was steady", longer)
	case len(unclear) > 0:
		c.Note("whether the throughput was steady at "+strings.Join(basics.Head(unclear, 4), ", ")+": it varied too much", longer)
	}
	c.Detail = fmt.Sprintf("no significant drift in %d of %d steps that could be tested", judged, len(curve.Steps))
	rate, whole, creeps := creeping(curve)
	if len(drifted)+len(warmed)+len(again) > 0 || creeps || lighter != nil {
		c.Status, c.Detail = Warn, ""
	}
	if len(drifted) > 0 {
		c.addDetail("%d of %d steps drifted during the measurement: %s; use a longer warm-up or measurement", len(drifted), judged,
			strings.Join(basics.Head(drifted, 4), ", "))
	}
	if len(warmed) > 0 {
		c.addDetail("%d of %d steps had not settled when their measurement began (%s): use a longer warm-up", len(warmed), judged,
			strings.Join(basics.Head(warmed, 3), "; "))
	}
	if creeps {
		c.addDetail("the throughput changed by %+.2g%% a second through all steps, which is %+.0f%% from the first measurement to the last: "+
			"the curve shows time as well as load; repeat it with the loads in another order", 100*rate, 100*whole)
	}
	if lighter != nil {
		less, _, _ := curve.Yield(lighter)
		more, _, _ := curve.Yield(heavier)
		c.addDetail("%s had %s times the throughput of %s, measured before: more clients do not explain that, but a cache that filled up, "+
			"or a service that warmed up, does; measure %s again", curve.At(heavier), unit.Significant(more/less), curve.At(lighter),
			curve.At(lighter))
	}
	if len(again) > 0 {
		c.addDetail("loads gave another result when they were held again: %s", strings.Join(basics.Head(again, 4), ", "))
	}
	return c
}
