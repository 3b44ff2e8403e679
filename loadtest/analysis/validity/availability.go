package validity

import (
	"slices"
	"time"

	"weir/link"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/analysis/steps"
	"weir/storage"
)

// Availability finds the outages of the run. It excludes from the curve the steps that overlap with
// outages, and the steps in which nearly all operations failed.
func Availability(d *steps.Run, curve *steps.Curve) []Outage {
	found := []Outage{}
	if !d.Record {
		found = append(found, withoutBursts(d, curve, outages(d))...)
	}
	planned := plannedOutages(d)
	for _, s := range curve.Steps {
		var reason fact.Fact
		for o := range basics.Each(found) {
			lost := heldWithin(d, s.Step, o.From, o.To)
			s.Unavailable += lost
			recurring := o.Kind == OutageStalled && stallsLike(found, o) >= repeatedStalls || planned
			if lost > outageShare*s.Duration && !recurring && reason.Code == "" || lost > 0 && o.lost && !planned {
				reason = o.Fact()
			}
		}
		if wrong := s.BadBy()[storage.Checksummed]; reason.Code == "" && wrong >= leastWrong &&
			float64(wrong) >= shape.MostErrors*float64(wrong+s.Verified) {
			reason = fact.New("excluded.payloads", "wrong", wrong, "checked", wrong+s.Verified)
		}
		if reason.Code == "" && !planned && s.Done+s.Errors > 0 && s.ErrorRatio >= shape.MostErrors {
			reason = fact.New("excluded.errors", "share", s.ErrorRatio, "classes", steps.Classes(s.BadBy()))
		}
		if s.Excluded = reason.Text; reason.Code != "" {
			s.ExcludedFact = &reason
		}
	}
	return found
}

// stallsLike counts the stalls without failures that last at least half as long as o.
func stallsLike(all []Outage, o *Outage) (n int) {
	for other := range basics.Each(all) {
		if other.Kind == OutageStalled && other.Seconds >= o.Seconds/2 {
			n++
		}
	}
	return n
}

// withoutBursts removes the stalls of steps in which the service works in bursts, such as a service
// that grants bytes each second, and records the bursts in the steps.
func withoutBursts(d *steps.Run, curve *steps.Curve, all []Outage) []Outage {
	return slices.DeleteFunc(all, func(o Outage) bool {
		i := curve.IndexOf(o.Step)
		if o.Kind != OutageStalled || o.Seconds > longestBurst || i < 0 || !inBursts(d.Steps[o.Step]) {
			return false
		}
		curve.Steps[i].Burst = max(curve.Steps[i].Burst, o.Seconds)
		return true
	})
}

// inBursts reports whether operations ended only in a small part of each second, although there
// were so many that random times would spread over the second.
func inBursts(t *steps.Total) bool {
	n, active, seconds := 0, 0.0, 0.0
	for s := range basics.Each(t.Seconds) {
		if s.Done >= leastExpected && !s.LastDone.IsZero() {
			n, active, seconds = n+1, active+s.LastDone.Sub(s.FirstDone).Seconds(), seconds+s.Seconds
		}
	}
	return n >= leastBursts && active < burstShare*seconds
}

// plannedOutages reports whether the plan itself cuts a link: the effect of such a cut is the
// subject of the run.
func plannedOutages(d *steps.Run) bool {
	return slices.ContainsFunc(d.Plan.Links, func(l link.Named) bool { return len(l.Spec.Outages) > 0 })
}

// heldWithin returns how many seconds of a step's measurement time lie between from and to.
func heldWithin(d *steps.Run, step int, from, to time.Time) (sum float64) {
	for x := range basics.Each(d.Steps[step].Seconds) {
		sum += basics.SecondsShared(x.Start, x.End(), from, to)
	}
	return sum
}

// checkAvailability checks whether the service responded all the time.
func (d *Evidence) checkAvailability(curve *steps.Curve) Check {
	c := Check{Name: "availability", Status: OK}
	if len(curve.Steps) == 0 {
		return c.Skip(fact.New("check.availability.no_step"))
	}
	var found []fact.Fact
	for i := range d.Outages {
		found = append(found, d.Outages[i].Fact())
	}
	c.AddSome(found)
	n := len(curve.Excluded())
	switch {
	case n > 0 && d.Left == 0 || slices.ContainsFunc(d.Outages, func(o Outage) bool { return o.lost && o.Class == storage.Refused }):
		c.Status = Fail
	case n > 0:
		c.Status = Warn
	case len(found) > 0:
		c.worsen(Warn, fact.New("effect.none_excluded"))
	default:
		c.noOutage(curve)
	}
	if n > 0 {
		c.Add(Exclusions(curve))
	}
	return c
}

// noOutage adds that operations succeeded at all times, or the bursts in which the service works.
func (c *Check) noOutage(curve *steps.Curve) {
	var loads []string
	longest := 0.0
	for _, s := range curve.Steps {
		if s.Burst > 0 {
			loads, longest = append(loads, curve.At(s)), max(longest, s.Burst)
		}
	}
	if longest > 0 {
		c.addFact("check.availability.bursts", "loads", fact.List(loads), "seconds", longest)
		return
	}
	c.addFact("check.availability.always", "seconds", leastOutage)
}

// Exclusions returns the fact that lists the loads of the steps that do not count.
func Exclusions(curve *steps.Curve) fact.Fact {
	var loads []string
	for _, s := range curve.Excluded() {
		loads = append(loads, curve.At(s))
	}
	if len(loads) == 1 {
		return fact.New("excluded.step", "load", loads[0])
	}
	return fact.New("excluded.steps", "excluded", len(loads), "steps", len(curve.Steps), "loads", fact.List(loads))
}
