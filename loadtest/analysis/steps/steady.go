package steps

import (
	"math"
	"time"

	"weir/internal/stats"
)

// Unsteady is the drift over a measurement time, as a share of the mean, from which a step is not called steady if the drift
// is more than chance.
const Unsteady = 0.1

// Analyze a hold with this many seconds or more, MSER averages five of them (MSER-5); of shorter ones as many as
// leave it the batches that it needs.
const (
	mserSize  = 5
	longSteps = 50
)

// counted returns what a second adds to what steps are compared by.
func (t *Total) counted(x *Second) float64 {
	if t.Moved == 0 {
		return doneIn(x)
	}
	return movedIn(x)
}

// steady fills in whether the step held its level, and the part of its hold that did: the beginning is cut off where
// MSER says that it was still warming up, and what is left must have no slope.
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
		return // a drift as large could hide in it
	}
	s.Steady = &level
	if !level {
		return
	}
	// Either shows that what was cut off is another level: that it is, and that the whole hold has a trend.
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

// wide reports whether the mean of batches is known too badly to be relied on.
func wide(batches []stats.Point) bool {
	mean, v, ok := stats.BatchInterval(batches)
	return ok && (v.High-v.Low)/2 > LeastData().HalfWidth*mean
}

// turn returns by how much the last quarter of a measurement time differs from the first, as a share of the latter.
func turn(batches []stats.Point) float64 {
	n := max(1, len(batches)/4)
	return stats.Ratio(stats.Mean(means(batches[len(batches)-n:])), stats.Mean(means(batches[:n]))) - 1
}

// chance returns how likely a drift as large as that of a trend through batches is in a load that holds its level. A
// line leaves residuals that look dependent where the load has a step or a bend, which hides the slope: a test for two
// levels is asked as well, and of few batches a rank test, and whether their first ones are unlike the rest, as those of a
// service that has saved up credit are.
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

// leastPersistent is how many batches it takes to tell that neighbors resemble each other.
const leastPersistent = 10

// apart returns how likely it is that the mean of the first batches of a hold differs as much from that of the rest
// in a load that holds its level. Where to cut was chosen among half of all batches, each of which might have been
// it.
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

// MostFalse is the accepted rate of runs that are wrongly called unsteady, all steps of a run together.
const MostFalse = 0.01

// warmUp returns how many seconds of a hold to leave out at its beginning; found is false if more than half would
// have to be. By chance MSER would leave out much of one hold in ten that was level all the time; a cut beyond half
// that changes the mean little is none.
func warmUp(t *Total) (cut int, found bool) {
	x := make([]float64, 0, len(t.Seconds))
	var at []int // the second that each number begins with
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
		return 0, true // too short to tell
	}
	if mean := stats.Mean(x); !cutoff.Steady && math.Abs(stats.Mean(x[cutoff.Cut:])-mean) <= Otherwise*mean {
		return 0, true
	}
	return at[cutoff.Cut], cutoff.Steady
}

// Otherwise is by how much the mean of the steady part must differ from that of the whole hold to be worth a remark.
const Otherwise = 0.05

// A creep is how the level of one step changed while it was measured, by the second.
type creep struct {
	Known    bool
	Rate     float64 // a second, as a share of the step's mean
	Late     float64 // the same of the second half alone
	P        float64 // of rate, by chance
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
