package validity

import (
	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/scenario"
)

// checkEnough checks whether there is enough data to rely on: too little data at the best step,
// which is the result, causes a warning.
func (d *Evidence) checkEnough(curve *steps.Curve, best int) Check {
	c := Check{Name: "enough data", Status: OK}
	switch {
	case d.Run.Record:
		return c.Skip(fact.New("check.enough.record"))
	case best < 0:
		return c.Skip(fact.New("check.enough.no_result"))
	}
	s := curve.Steps[best]
	if lacks := d.lacks(curve, s); len(lacks) > 0 {
		c.addFact("check.enough.too_little", "load", curve.At(s), "seconds", s.Duration)
		c.Add(lacks...)
		c.worsen(Warn, d.unreliable(s))
		return c
	}
	c.addFact("check.enough.best_step", "operations", s.Done, "batches", s.Batches)
	var others []string
	for i := range curve.Steps {
		if curve.Steps[i].Excluded == "" && len(d.few(curve.Steps[i])) > 0 {
			others = append(others, curve.At(curve.Steps[i]))
		}
	}
	if len(others) > 0 {
		c.Note(fact.New("check.enough.others", "loads", fact.List(others)), longer(s))
	}
	return c
}

// unreliable returns the effect of too little data at the best step.
func (d *Evidence) unreliable(s *steps.Working) fact.Fact {
	switch {
	case d.Unclear && s.Bounded:
		return fact.New("effect.no_peak_jobs")
	case d.Unclear:
		return fact.New("effect.no_peak")
	case s.Bounded:
		return fact.New("effect.another_result_jobs")
	}
	return fact.New("effect.another_result")
}

// longer returns the way to get more data.
func longer(s *steps.Working) fact.Fact {
	if s.Bounded {
		return fact.New("remedy.more_jobs")
	}
	return fact.New("remedy.measure_longer")
}

// lacks lists the data of which the best step has less than LeastData requires.
func (d *Evidence) lacks(curve *steps.Curve, s *steps.Working) []fact.Fact {
	all := d.few(s)
	mean, _, _ := curve.Yield(s)
	low, high := curve.Bounds(s)
	if half, most := stats.Ratio(high-low, 2*mean), steps.LeastData().HalfWidth; half > most {
		all = append(all, fact.New("check.enough.wide_interval", "share", half, "most", most))
	}
	return all
}

// few lists the data that a step has too little of.
func (d *Evidence) few(s *steps.Working) (all []fact.Fact) {
	least := steps.LeastData()
	each := stats.Ratio(float64(s.Done), s.ActiveClients)
	switch {
	case s.Done < least.Operations:
		all = append(all, fact.New("check.enough.few_operations", "operations", s.Done, "least", least.Operations))
	case d.Run.Plan.Model != scenario.OpenModel && !s.Bounded && each < least.EachClient:
		all = append(all, fact.New("check.enough.few_per_client", "operations", each, "least", least.EachClient))
	}
	if s.Batches < least.Batches {
		all = append(all, fact.New("check.enough.few_batches", "batches", s.Batches, "least", least.Batches))
	}
	return all
}

// mostPaused is the share of the clients' time in pauses after errors from which a step shows those
// pauses rather than the service.
const mostPaused = 0.02

// mostPausedStep returns the step with the largest share of pauses after errors, nil if no step
// counts.
func mostPausedStep(curve *steps.Curve) *steps.Working {
	return stepWithMost(curve, func(s *steps.Working) float64 { return s.PausedShare })
}

// stepWithMost returns the step with the largest share among the steps that count, nil if no step
// counts.
func stepWithMost(curve *steps.Curve, share func(*steps.Working) float64) *steps.Working {
	var most *steps.Working
	for _, s := range curve.Steps {
		if s.Excluded == "" && (most == nil || share(s) > share(most)) {
			most = s
		}
	}
	return most
}

// checkErrorPauses judges the share of the clients' time that went into pauses after failed tasks.
func (d *Evidence) checkErrorPauses(curve *steps.Curve) Check {
	c := Check{Name: "error pauses", Status: OK}
	s := mostPausedStep(curve)
	switch {
	case d.Run.Plan.Model == scenario.OpenModel:
		return c.Skip(fact.New("check.pauses.open_model"))
	case s == nil:
		return c.Skip(fact.New("check.pauses.all_excluded"))
	case s.PausedShare <= 0:
		c.addFact("check.pauses.none")
	default:
		c.addFact("check.pauses.most", "share", s.PausedShare, "load", curve.At(s), "seconds", s.Paused)
		if s.PausedShare > mostPaused {
			c.Status = Warn
		}
	}
	return c
}

// Pauses returns the facts of the verdict on pauses of clients: after errors, and on request of the
// service (Retry-After), if they matter.
func Pauses(curve *steps.Curve) (all []fact.Fact) {
	if s := mostPausedStep(curve); s != nil && s.PausedShare > mostPaused {
		all = append(all, fact.New("pauses.after_errors", "load", curve.At(s), "share", s.PausedShare))
	}
	s := stepWithMost(curve, func(s *steps.Working) float64 { return s.AskedShare })
	if s != nil && s.AskedShare > mostPaused {
		all = append(all, fact.New("pauses.on_request", "load", curve.At(s), "share", s.AskedShare))
	}
	return all
}
