package validity

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/unit"
	"weir/link"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/analysis/steps"
	"weir/storage"
)

// Availability finds the outages of the run and excludes the steps that they touch, and those in which nearly all
// operations failed, from the curve.
func Availability(d *steps.Run, curve *steps.Curve) []Outage {
	found := []Outage{}
	if !d.Record {
		found = append(found, withoutBursts(d, curve, outages(d))...)
	}
	planned := plannedOutages(d)
	for _, s := range curve.Steps {
		var reason string
		for o := range basics.Each(found) {
			lost := heldWithin(d, s.Step, o.From, o.To)
			s.Unavailable += lost
			recurring := o.Kind == OutageStalled && stallsLike(found, o) >= repeatedStalls || planned
			if lost > outageShare*s.Duration && !recurring && reason == "" || lost > 0 && o.lost && !planned {
				reason = o.Text()
			}
		}
		if wrong := s.BadBy()[storage.Checksummed]; reason == "" && wrong >= leastWrong &&
			float64(wrong) >= shape.MostErrors*float64(wrong+s.Verified) {
			reason = fmt.Sprintf("%d of %d checked payloads were wrong", wrong, wrong+s.Verified)
		}
		if reason == "" && !planned && s.Done+s.Errors > 0 && s.ErrorRatio >= shape.MostErrors {
			reason = fmt.Sprintf("%s of its operations failed (%s)", unit.Percent(s.ErrorRatio), steps.Classes(s.BadBy()))
		}
		s.Excluded = reason
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

// withoutBursts leaves out the stalls of steps in which the service works in bursts, as one does that grants bytes
// anew each second, and has the steps say so.
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

// inBursts reports whether operations ended in a small part of each second only, so many that by chance they would be
// spread over it.
func inBursts(t *steps.Total) bool {
	n, active, seconds := 0, 0.0, 0.0
	for s := range basics.Each(t.Seconds) {
		if s.Done >= leastExpected && !s.LastDone.IsZero() {
			n, active, seconds = n+1, active+s.LastDone.Sub(s.FirstDone).Seconds(), seconds+s.Seconds
		}
	}
	return n >= leastBursts && active < burstShare*seconds
}

// plannedOutages reports whether the plan itself cuts a link: what comes of that is what the run is to show.
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

// checkAvailability asks whether the service answered all the time.
func (d *Evidence) checkAvailability(curve *steps.Curve) Check {
	c := Check{Name: "availability", Status: OK}
	if len(curve.Steps) == 0 {
		return c.Skip("no step was measured")
	}
	var texts []string
	for i := range d.Outages {
		texts = append(texts, d.Outages[i].Text())
	}
	n := len(curve.Excluded())
	switch {
	case n > 0 && d.Left == 0 || slices.ContainsFunc(d.Outages, func(o Outage) bool { return o.lost && o.Class == storage.Refused }):
		c.Status = Fail
	case n > 0:
		c.Status = Warn
	case len(texts) > 0:
		c.worsen(Warn, "all steps count: they lost little of their measurement, or the service always stalls, or the plan cuts a link")
	default:
		c.Detail = fmt.Sprintf("operations succeeded at all times: there was no %s without a success", unit.Seconds(leastOutage))
		if at, longest := bursts(curve); longest > 0 {
			c.Detail = fmt.Sprintf("the service works in bursts (%s): no operation is completed for up to %s", at, unit.Seconds(longest))
		}
		return c
	}
	if n > 0 {
		texts = append(basics.Head(texts, 3), Exclusions(curve))
	}
	c.Detail = strings.Join(basics.Head(texts, 4), "; ")
	return c
}

// bursts names the loads at which the service works in bursts, and returns how long it takes from one to the next at
// most, 0 if there are none.
func bursts(curve *steps.Curve) (at string, longest float64) {
	var loads []string
	for _, s := range curve.Steps {
		if s.Burst > 0 {
			loads, longest = append(loads, curve.At(s)), max(longest, s.Burst)
		}
	}
	return strings.Join(basics.Head(loads, 3), ", "), longest
}

// Exclusions names the steps that do not count by their loads.
func Exclusions(curve *steps.Curve) string {
	var loads []string
	for _, s := range curve.Excluded() {
		loads = append(loads, curve.At(s))
	}
	if len(loads) == 1 {
		return "the step with " + loads[0] + " is excluded"
	}
	return fmt.Sprintf("%d of %d steps are excluded (%s)", len(loads), len(curve.Steps), strings.Join(basics.Head(loads, 3), ", "))
}
