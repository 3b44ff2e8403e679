package limits

import (
	"cmp"
	"math"
	"slices"

	"weir/internal/stats"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/analysis/steps"
)

// Bounds that define where a curve levels off.
const (
	halfGrowth = 0.5  // of the growth of the load
	growthSlip = 0.05 // tolerance for noise
	leastRange = 1.25 // least factor between the loads of a curve
	roomSlip   = 1.1  // tolerance for noise in the growth that a saturated resource permits
	efficiency = 2    // largest growth with full cores, as operations cost less among many clients
	noInterval = 0.1  // half of the interval of a yield without an interval, as a share of it
)

// A ladder is the list of tested loads in ascending order; of steps with equal load it has the
// first.
type ladder struct {
	curve *steps.Curve
	res   Resources
	steps []*steps.Working
	level int  // from here on the yield grows by less than half as much as the load; -1: nowhere
	sure  bool // level exceeds the noise of the yields
	top   int  // the lightest step that gives 95% of the best yield
}

func newLadder(curve *steps.Curve, res Resources) *ladder {
	l := &ladder{curve: curve, res: res, level: -1}
	for _, s := range curve.Steps {
		if curve.LoadOf(s) > 0 {
			l.steps = append(l.steps, s)
		}
	}
	slices.SortStableFunc(l.steps, func(a, b *steps.Working) int { return cmp.Compare(curve.LoadOf(a), curve.LoadOf(b)) })
	l.steps = slices.CompactFunc(l.steps, func(a, b *steps.Working) bool { return curve.LoadOf(a) == curve.LoadOf(b) })
	if len(l.steps) == 0 {
		return l
	}
	most := 0.0
	for i := range l.steps {
		most = max(most, l.yield(i))
	}
	l.top = slices.IndexFunc(l.steps, func(s *steps.Working) bool { y, _, _ := curve.Yield(s); return y >= shape.NearBest*most })
	l.top = max(0, l.top)
	l.level, l.sure = l.levels()
	return l
}

func (l *ladder) yield(i int) float64 { y, _, _ := l.curve.Yield(l.steps[i]); return y }

func (l *ladder) load(i int) float64 { return l.curve.LoadOf(l.steps[i]) }

func (l *ladder) last() int { return len(l.steps) - 1 }

// narrow reports whether the loads are too close to each other to form a curve.
func (l *ladder) narrow() bool { return l.load(l.last()) < leastRange*l.load(0) }

// half returns half of the width of the interval of a step's yield.
func (l *ladder) half(i int) float64 {
	mean, low, high := l.curve.Yield(l.steps[i])
	if low == nil || high == nil {
		return noInterval * mean
	}
	return max(0, *high-mean) // the lower half is cut at zero
}

// exceeds compares the yield of step j with factor times the yield of step i, by the 95% interval
// of the difference: +1 if it is more, -1 if it is less, 0 if this is undecided.
func (l *ladder) exceeds(j int, factor float64, i int) int {
	difference, half := l.yield(j)-factor*l.yield(i), math.Hypot(l.half(j), factor*l.half(i))
	switch {
	case difference > half:
		return 1
	case difference <= -half:
		return -1
	}
	return 0
}

// levels returns the lightest step from which the yield grows, to every heavier step, by less than
// half as much as the load, -1 without such a step; and whether the yields' intervals confirm it.
// If the intervals confirm it for no step, levels returns the lightest step for which they
// contradict it neither there nor at a heavier step with at least the same yield.
func (l *ladder) levels() (level int, sure bool) {
	perhaps := -1
	for i := range l.steps {
		if l.load(l.last()) < leastRange*l.load(i) {
			break
		}
		most := -1 // the clearest growth beyond it
		for j := i + 1; j < len(l.steps); j++ {
			more := stats.Ratio(l.load(j), l.load(i)) - 1
			most = max(most, l.exceeds(j, 1+halfGrowth*more+growthSlip, i))
		}
		switch {
		case l.yield(i) <= 0:
		case most < 0:
			return i, true
		case most == 0 && perhaps < 0:
			perhaps = i
		case most > 0 && perhaps >= 0 && l.yield(i) >= l.yield(perhaps):
			perhaps = -1 // it clearly grows beyond: only the noise of that step hid this
		}
	}
	return perhaps, false
}

// bestAfter returns the step beyond i with the highest yield, -1 if i is the last step.
func (l *ladder) bestAfter(i int) int {
	best := -1
	for j := i + 1; j < len(l.steps); j++ {
		if best < 0 || l.yield(j) > l.yield(best) {
			best = j
		}
	}
	return best
}

// from returns the step at which the limit begins to show, without other evidence: the lightest
// step that gives nearly the best yield, if there is a heavier step.
func (l *ladder) from() int {
	if l.top < l.last() {
		return l.top
	}
	return max(0, l.level)
}

// cycle returns the mean time of an operation of step i, and of the pause and the computing that
// belong to it, in seconds. It returns zeros if no operation ended, or if jobs compute during their
// operations.
func (l *ladder) cycle(i int) (latency, think float64) {
	s := l.steps[i]
	if s.Latency == nil || s.Done == 0 || s.Jobs != nil && !s.OneByOne {
		return 0, 0
	}
	return s.Latency.Mean, stats.Ratio(s.ThinkSeconds+s.ComputeSeconds, float64(s.Done))
}

// fallen is the share of the best yield of the lighter steps below which a yield counts as fallen.
const fallen = 0.9

// fell returns the steps whose yield is clearly less than the yield of a lighter step.
func (l *ladder) fell() []bool {
	all, most := make([]bool, len(l.steps)), 0.0
	for i := range l.steps {
		all[i] = l.yield(i) < fallen*most
		most = max(most, l.yield(i))
	}
	return all
}
