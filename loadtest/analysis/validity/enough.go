package validity

import (
	"fmt"
	"strings"

	"weir/internal/say"
	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/scenario"
)

// checkEnough asks whether there is enough data to rely on: at the best step, which the result is, too little warns.
func (d *Evidence) checkEnough(curve *steps.Curve, best int) Check {
	c := Check{Name: "enough data", Status: OK}
	switch {
	case d.Run.Record:
		return c.Skip("a record of transfers has the result of each file")
	case best < 0:
		return c.Skip("no step has a result")
	}
	s := curve.Steps[best]
	if lacks := d.lacks(curve, s); len(lacks) > 0 {
		c.Detail = fmt.Sprintf("the best step (%s, measured for %s) has %s", curve.At(s), unit.Seconds(s.Duration), strings.Join(lacks, ", "))
		effect := "another run may give another result"
		if d.Unclear {
			effect = "no peak can be named"
		}
		c.worsen(Warn, "%s: %s", effect, longer(s))
		return c
	}
	c.Detail = fmt.Sprintf("the best step has %s and %s", say.Plural(int(s.Done), "operation"), say.Plural(s.Batches, "batch mean"))
	var others []string
	for i := range curve.Steps {
		if curve.Steps[i].Excluded == "" && len(d.few(curve.Steps[i])) > 0 {
			others = append(others, curve.At(curve.Steps[i]))
		}
	}
	if len(others) > 0 {
		c.Note("how much the best step differs from steps with too little data: "+strings.Join(basics.Head(others, 4), ", "), longer(s))
	}
	return c
}

// longer says how to get more data.
func longer(s *steps.Working) string {
	if s.Bounded {
		return "have each client do more jobs (load.jobs)"
	}
	return "measure longer (load.duration)"
}

// lacks says what the best step has less of than LeastData asks for.
func (d *Evidence) lacks(curve *steps.Curve, s *steps.Working) []string {
	all := d.few(s)
	mean, _, _ := curve.Yield(s)
	low, high := curve.Bounds(s)
	if half, most := stats.Ratio(high-low, 2*mean), steps.LeastData().HalfWidth; half > most {
		all = append(all, fmt.Sprintf("an interval of +-%.0f%% (%.0f%% at most)", 100*half, 100*most))
	}
	return all
}

// few says what a step has too few of.
func (d *Evidence) few(s *steps.Working) (all []string) {
	least := steps.LeastData()
	each := stats.Ratio(float64(s.Done), s.ActiveClients)
	switch {
	case s.Done < least.Operations:
		all = append(all, fmt.Sprintf("%s (at least %d needed)", say.Plural(int(s.Done), "operation"), least.Operations))
	case d.Run.Plan.Model != scenario.OpenModel && !s.Bounded && each < least.EachClient:
		all = append(all, fmt.Sprintf("%.2g operations per client (at least %g needed)", each, least.EachClient))
	}
	if s.Batches < least.Batches {
		all = append(all, fmt.Sprintf("%s (at least %d needed)", say.Plural(s.Batches, "batch mean"), least.Batches))
	}
	return all
}

// mostPaused is the share of the clients' time in pauses after errors from which on a step shows those pauses rather
// than the service.
const mostPaused = 0.02

// mostPausedStep returns the step, of those that count, with the largest share of pauses after errors; nil if there
// is none.
func mostPausedStep(curve *steps.Curve) *steps.Working {
	return stepWithMost(curve, func(s *steps.Working) float64 { return s.PausedShare })
}

// stepWithMost returns the step, of those that count, with the largest share; nil if there is none.
func stepWithMost(curve *steps.Curve, share func(*steps.Working) float64) *steps.Working {
	var most *steps.Working
	for _, s := range curve.Steps {
		if s.Excluded == "" && (most == nil || share(s) > share(most)) {
			most = s
		}
	}
	return most
}

// checkErrorPauses asks how much of the clients' time went into pauses after failed tasks.
func (d *Evidence) checkErrorPauses(curve *steps.Curve) Check {
	c := Check{Name: "error pauses", Status: OK}
	s := mostPausedStep(curve)
	switch {
	case d.Run.Plan.Model == scenario.OpenModel:
		c.Status, c.Detail = Skipped, "clients do not pause after errors in the open model"
	case s == nil:
		c.Status, c.Detail = Skipped, "all steps are excluded"
	case s.PausedShare <= 0:
		c.Detail = "no client paused after errors"
	default:
		c.Detail = fmt.Sprintf("clients paused after errors for at most %s of their time (%s), %s in total",
			unit.Percent(s.PausedShare), curve.At(s),
			unit.Seconds(s.Paused))
		if s.PausedShare > mostPaused {
			c.Status = Warn
		}
	}
	return c
}

// PauseText returns the clause of the verdict on pauses, "" if they do not matter.
func PauseText(curve *steps.Curve) string {
	s := mostPausedStep(curve)
	if s == nil || s.PausedShare <= mostPaused {
		return ""
	}
	return fmt.Sprintf("At %s clients spent %s of their time in pauses after errors: that step shows less than the service can give.",
		curve.At(s), unit.Percent(s.PausedShare))
}

// AskedText returns the clause of the verdict on pauses for Retry-After, "" if they hardly matter.
func AskedText(curve *steps.Curve) string {
	s := stepWithMost(curve, func(s *steps.Working) float64 { return s.AskedShare })
	if s == nil || s.AskedShare <= mostPaused {
		return ""
	}
	return fmt.Sprintf("At %s clients paused for %s of their time because the service asked them to (429 or 503 with Retry-After).",
		curve.At(s), unit.Percent(s.AskedShare))
}
