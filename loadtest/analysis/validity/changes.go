package validity

import (
	"math"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/analysis/steps"
)

// Least improvements of clients in a heavier step for a remark: as a factor beyond the intervals of
// both steps, and in seconds of each operation. Competition between clients slows them down; the
// gain from cores that other clients keep awake is smaller.
const (
	superlinearGrowth = 1.5
	superlinearGain   = 1e-3
)

// superlinear returns the first step whose throughput is too small in relation to the throughput of
// a heavier step that was measured later; nil without such a step.
func superlinear(curve *steps.Curve) (lighter, heavier *steps.Working) {
	if curve.Open() || curve.OfJobs() || curve.Mixed {
		return nil, nil
	}
	for _, a := range curve.Steps {
		for _, b := range curve.Steps {
			if a.Excluded == "" && b.Excluded == "" && b.Step > a.Step && b.ActiveClients > a.ActiveClients && outgrows(curve, a, b) {
				return a, b
			}
		}
	}
	return nil, nil
}

func outgrows(curve *steps.Curve, a, b *steps.Working) bool {
	x, _, highest := curve.Yield(a)
	y, lowest, _ := curve.Yield(b)
	if highest == nil || lowest == nil || b.Operations <= 0 || a.Errors+a.Retried+a.Waits > a.Done/100 || a.Unavailable > 0 ||
		stats.Ratio(a.ActiveClients, a.Operations)-stats.Ratio(b.ActiveClients, b.Operations) < superlinearGain {
		return false
	}
	expected := superlinearGrowth * b.ActiveClients / a.ActiveClients
	return y-expected*x > math.Hypot(y-*lowest, expected*(*highest-x))
}

// changed lists the loads that certainly gave another result when they were held again, unless the
// difference is a hysteresis.
func changed(curve *steps.Curve) (all []fact.Fact) {
	if len(shape.Hysteresis(curve.Points())) > 0 {
		return nil
	}
	for _, r := range shape.Repeated(curve.Points()) {
		if r.Certain && math.Abs(r.Change) >= steps.Unsteady {
			all = append(all, fact.New("check.steadiness.repeated", "load", curve.At(curve.Steps[r.Up]), "change", r.Change,
				"step", curve.Steps[r.Down].Step, "first", curve.Steps[r.Up].Step))
		}
	}
	return all
}
