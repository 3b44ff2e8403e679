package steps

import (
	"math"
	"time"

	"weir/internal/stats"
)

// Unsteady is the drift over a measurement time, as a share of the mean, from which a step counts
// as unsteady if the drift is more than chance.
const Unsteady = 0.1

// MSER averages five seconds of a hold (MSER-5) if the hold has at least longSteps seconds. In a
// shorter hold it averages as many as leave the required number of batches.
const (
	mserSize  = 5
	longSteps = 50
)

// counted returns the count of a second for the quantity by which steps are compared.
func (t *Total) counted(x *Second) float64 {
	if t.Moved == 0 {
		return doneIn(x)
	}
	return movedIn(x)
}

// steady determines whether the step held its level, and the steady part of its hold: the warm-up
// detected by MSER is cut off, and the rest must have no slope.
func (s *Working) steady(t *Total) {
	all := batches(t.Seconds, t.counted)
	trend, ok := stats.Slope(all)
	if !ok {
		return
	}
	whole := chance(trend, all)
	s.Drift, s.Change, s.Creep, s.Turn = &trend.Ratio, whole, creepOf(trend, all, t), turn(all)
	cut, found := warmUp(t)
	rest := t.Seconds[cut:]
	left := batches(rest, t.counted)
	if found && cut > 0 {
		if again, ok := stats.Slope(left); ok {
			trend, s.Change = again, chance(again, left)
		} else {
			found = false
		}
	}
	level := found && (math.Abs(trend.Ratio) < Unsteady || !certain(trend) && s.Change > MostFalse)
	if level && wide(left) {
		return // the interval could hide a drift of this size
	}
	s.Steady = &level
	if !level {
		return
	}
	// Two tests can show that the part cut off has another level: its mean differs, or the whole
	// hold has a trend.
	const tests = 2
	s.Warmed = min(1, tests*min(whole, apart(batches(t.Seconds[:cut], t.counted), left)))
	var w Stretch
	for i := range rest {
		w.add(&rest[i], 1)
	}
	p := SteadyPart{Window: w.figure(), Batches: len(left)}
	for i := range t.Seconds[:cut] {
		p.From += t.Seconds[i].Seconds
	}
	if t.Moved > 0 {
		p.Low, p.High = interval(batches(rest, movedIn))
	}
	s.SteadyPart = &p
}

// wide reports whether the mean of batches is too uncertain to be used.
func wide(batches []stats.Point) bool {
	mean, v, ok := stats.BatchInterval(batches)
	return ok && (v.High-v.Low)/2 > LeastData().HalfWidth*mean
}

// turn returns the difference between the last and the first quarter of a measurement time, as a
// share of the first.
func turn(batches []stats.Point) float64 {
	n := max(1, len(batches)/4)
	return stats.Ratio(stats.Mean(means(batches[len(batches)-n:])), stats.Mean(means(batches[:n]))) - 1
}

// chance returns the probability of a drift as large as the given trend through batches in a load
// that holds its level. If the load has a step or a bend, the residuals of a line look dependent,
// which hides the slope. Therefore a test for two levels is included; for few batches also a rank
// test, and a test whether their first batches differ from the rest, as with a service that has
// accumulated credit.
func chance(trend stats.Trend, batches []stats.Point) float64 {
	x := means(batches)
	if len(batches) >= leastPersistent {
		if trend.Correlation >= persistent {
			return 0
		}
		const tests = 2
		return min(1, tests*min(trend.P, stats.Shift(x)))
	}
	const tests = 4
	p := min(trend.P, stats.MannKendall(x), stats.Shift(x))
	for cut := range len(batches) / 2 {
		p = min(p, apart(batches[:cut+1], batches[cut+1:]))
	}
	return min(1, tests*p)
}

// leastPersistent is the number of batches required to detect that neighbors resemble each other.
const leastPersistent = 10

// apart returns the probability that the mean of the first batches of a hold differs as much from
// the mean of the rest in a load that holds its level. The cut was chosen among half of all
// batches, each of which was a possible cut.
func apart(first, rest []stats.Point) float64 {
	n, m := float64(len(first)), float64(len(rest))
	if n < 1 || m < 2 {
		return 1
	}
	off := math.Abs(stats.Mean(means(first)) - stats.Mean(means(rest)))
	spread := stats.Deviation(means(rest)) * math.Sqrt(1/n+1/m)
	if spread <= 0 {
		return map[bool]float64{true: 1}[off <= 0]
	}
	return min(1, stats.StudentP(off/spread, m-1)*(n+m)/2)
}

// MostFalse is the accepted rate of runs that are wrongly called unsteady, over all steps of a run.
const MostFalse = 0.01

// warmUp returns the number of seconds to cut off from the start of a hold; found is false if more
// than half would have to be cut off. By chance MSER would cut off a large part of one in ten holds
// that were level all the time; a cut beyond half that hardly changes the mean is ignored.
func warmUp(t *Total) (cut int, found bool) {
	x := make([]float64, 0, len(t.Seconds))
	var at []int // the first second of each number in x
	series := make([]stats.Point, 0, 2)
	for i := range t.Seconds {
		sec := &t.Seconds[i]
		if len(series) == 0 {
			at = append(at, i)
		}
		series = append(series, stats.Point{Value: stats.Ratio(t.counted(sec), sec.Seconds), Weight: sec.Seconds})
		if joined := stats.Batch(series, 1, 0); joined[0].Weight >= LeastPiece {
			x, series = append(x, joined[0].Value), series[:0]
		}
	}
	size := 1
	if len(x) >= longSteps {
		size = mserSize
	}
	cutoff, ok := stats.MSER(x, size)
	if !ok {
		return 0, true // too short for a decision
	}
	if mean := stats.Mean(x); !cutoff.Steady && math.Abs(stats.Mean(x[cutoff.Cut:])-mean) <= Otherwise*mean {
		return 0, true
	}
	return at[cutoff.Cut], cutoff.Steady
}

// Otherwise is the minimum difference between the means of the steady part and of the whole hold
// that is reported.
const Otherwise = 0.05

// A creep is the change of the level of one step during its measurement, per second.
type creep struct {
	Known    bool
	Rate     float64 // per second, as a share of the step's mean
	Late     float64 // the same for the second half alone
	P        float64 // probability of Rate by chance
	From, To time.Time
}

func creepOf(trend stats.Trend, all []stats.Point, t *Total) creep {
	second := all[len(all)-max(stats.LeastSlope, len(all)/2):]
	late, ok := stats.Slope(second)
	span := 0.0
	for _, p := range second {
		span += p.Weight
	}
	return creep{ok, trend.Ratio / t.Span, stats.Ratio(late.Ratio, span), trend.P, t.Seconds[0].Start, t.Seconds[len(t.Seconds)-1].End()}
}
