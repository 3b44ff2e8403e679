package analysis

import (
	"fmt"
	"math"
	"strings"
	"time"

	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis/shape"
)

// unsteady is the drift over a measurement time, as a share of the mean, from which a step is not called steady if the drift
// is more than chance.
const unsteady = 0.1

// Analyze a hold with this many seconds or more, MSER averages five of them (MSER-5); of shorter ones as many as
// leave it the batches that it needs.
const (
	mserSize  = 5
	longSteps = 50
)

// counted returns what a second adds to what steps are compared by.
func (t *total) counted(x *second) float64 {
	if t.Moved == 0 {
		return doneIn(x)
	}
	return movedIn(x)
}

// steady fills in whether the step held its level, and the part of its hold that did: the beginning is cut off where
// MSER says that it was still warming up, and what is left must have no slope.
func (s *Step) steady(t *total) {
	all := batches(t.seconds, t.counted)
	trend, ok := stats.Slope(all)
	if !ok {
		return
	}
	whole := chance(trend, all)
	s.Drift, s.change, s.creep, s.turn = &trend.Ratio, whole, creepOf(trend, all, t), turn(all)
	cut, found := warmUp(t)
	rest := t.seconds[cut:]
	left := batches(rest, t.counted)
	if found && cut > 0 {
		if again, ok := stats.Slope(left); ok {
			trend, s.change = again, chance(again, left)
		} else {
			found = false
		}
	}
	level := found && (math.Abs(trend.Ratio) < unsteady || !certain(trend) && s.change > mostFalse)
	if level && wide(left) {
		return // a drift as large could hide in it
	}
	s.Steady = &level
	if !level {
		return
	}
	// Either shows that what was cut off is another level: that it is, and that the whole hold has a trend.
	const tests = 2
	s.warmed = min(1, tests*min(whole, apart(batches(t.seconds[:cut], t.counted), left)))
	var w window
	for i := range rest {
		w.add(&rest[i], 1)
	}
	p := SteadyPart{Window: w.figure(), Batches: len(left)}
	for i := range t.seconds[:cut] {
		p.From += t.seconds[i].seconds
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
	return ratio(stats.Mean(means(batches[len(batches)-n:])), stats.Mean(means(batches[:n]))) - 1
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

// mostFalse is how often a run may be called unsteady that is not, all its steps together.
const mostFalse = 0.01

// warmUp returns how many seconds of a hold to leave out at its beginning; found is false if more than half would
// have to be. By chance MSER would leave out much of one hold in ten that was level all the time; a cut beyond half
// that changes the mean little is none.
func warmUp(t *total) (cut int, found bool) {
	x := make([]float64, 0, len(t.seconds))
	var at []int // the second that each number begins with
	series := make([]stats.Point, 0, 2)
	for i := range t.seconds {
		sec := &t.seconds[i]
		if len(series) == 0 {
			at = append(at, i)
		}
		series = append(series, stats.Point{Value: ratio(t.counted(sec), sec.seconds), Weight: sec.seconds})
		if joined := stats.Batch(series, 1, 0); joined[0].Weight >= leastPiece {
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
	if mean := stats.Mean(x); !cutoff.Steady && math.Abs(stats.Mean(x[cutoff.Cut:])-mean) <= otherwise*mean {
		return 0, true
	}
	return at[cutoff.Cut], cutoff.Steady
}

// otherwise is by how much the mean of the steady part must differ from that of the whole hold to be worth a remark.
const otherwise = 0.05

// steadiness counts the steps whose steadiness is known; unclear are those that varied too much to tell, and bounded
// says that a step goes on until its work is done.
func (f *Findings) steadiness() (n int, bounded bool, unclear []string) {
	for s := range each(f.Curve) {
		bounded = bounded || s.bounded
		if s.Steady != nil {
			n++
		} else if s.Drift != nil {
			unclear = append(unclear, f.at(s))
		}
	}
	return n, bounded, unclear
}

// drifts lists the steps that drifted, and those that settled after their measurement began. Each step may be unlike by
// chance: so many are judged.
func (f *Findings) drifts(judged int) (drifted, warmed []string) {
	rare := ratio(mostFalse, float64(judged))
	for s := range each(f.Curve) {
		if s.Steady == nil {
			continue
		}
		if !*s.Steady && math.Abs(*s.Drift) >= unsteady && s.change <= rare {
			drifted = append(drifted, fmt.Sprintf("%s %+.0f%%", f.at(s), 100*s.turn))
			continue
		}
		if s.SteadyPart == nil || s.warmed > rare {
			continue
		}
		all, _, _ := f.yield(s)
		part := s.SteadyPart.Throughput
		if f.Measure == Rate {
			part = s.SteadyPart.Operations
		}
		if math.Abs(part-all) > otherwise*all {
			warmed = append(warmed, fmt.Sprintf("%s: %s after the first %s, %s overall", f.at(s), f.show(part),
				unit.Seconds(s.SteadyPart.From), f.show(all)))
		}
	}
	return drifted, warmed
}

// A creep is how the level of one step changed while it was measured, by the second.
type creep struct {
	known    bool
	rate     float64 // a second, as a share of the step's mean
	late     float64 // the same of the second half alone
	p        float64 // of rate, by chance
	from, to time.Time
}

func creepOf(trend stats.Trend, all []stats.Point, t *total) creep {
	second := all[len(all)-max(stats.LeastSlope, len(all)/2):]
	late, ok := stats.Slope(second)
	span := 0.0
	for _, p := range second {
		span += p.Weight
	}
	return creep{ok, trend.Ratio / t.span, ratio(late.Ratio, span), trend.P, t.seconds[0].start, t.seconds[len(t.seconds)-1].end()}
}

// crept is how much a level must have changed from the first measurement to the last, as a share of its mean, to be worth a remark.
const crept = 0.2

// creeping returns by how much the level changed through all steps, a second and from the first measurement to the last, as
// shares of the mean: a service that gets slower by 1% a second does so in each step, whatever the load, and the curve shows time
// as well as load. It is judged within the steps, whose p values are combined (Stouffer and others, The American Soldier,
// volume 1, 1949, page 45); what changes only at their beginning does not go on. ok is false if that is no more than chance, or little.
func (f *Findings) creeping() (rate, whole float64, ok bool) {
	var z, n, late, weight float64
	var from, to time.Time
	for s := range each(f.Curve) {
		c := s.creep
		if !c.known {
			continue
		}
		n++
		z += math.Copysign(math.Sqrt2*math.Erfinv(1-max(c.p, 1e-12)), c.rate)
		rate, late, weight = rate+s.Duration*c.rate, late+s.Duration*c.late, weight+s.Duration
		if from.IsZero() || c.from.Before(from) {
			from = c.from
		}
		if c.to.After(to) {
			to = c.to
		}
	}
	if n < 2 {
		return 0, 0, false // of one step, its drift says it
	}
	rate, late = rate/weight, late/weight
	whole = rate * to.Sub(from).Seconds()
	p := math.Erfc(math.Abs(z) / math.Sqrt(2*n))
	return rate, whole, p <= mostFalse/2 && math.Abs(whole) >= crept && late*rate > 0 && math.Abs(late) >= math.Abs(rate)/2
}

// checkSteady lists the steps whose load drifted while it should have held.
func checkSteady(f *Findings) Check {
	c := Check{Name: "steadiness", Status: OK}
	judged, bounded, unclear := f.steadiness()
	drifted, warmed := f.drifts(judged)
	again := f.changed()
	lighter, heavier := f.superlinear()
	switch {
	case len(f.Curve) == 0:
		return c.skip("no step counts")
	case judged == 0 && bounded && len(again) == 0:
		return c.skip("each step lasts until its last job is done, so fewer jobs run towards its end")
	}
	switch longer := "measure longer (load.duration)"; {
	case len(again) > 0, lighter != nil:
	case judged+len(unclear) == 0:
		return c.unchecked("no step was measured for the 5 s that a slope needs", longer)
	case judged == 0:
		return c.unchecked("the throughput varied too much to tell whether it was steady", longer)
	case len(unclear) > 0:
		c.note("whether the throughput was steady at "+strings.Join(head(unclear, 4), ", ")+": it varied too much", longer)
	}
	c.Detail = fmt.Sprintf("no significant drift in %d of %d steps that could be tested", judged, len(f.Curve))
	rate, whole, creeps := f.creeping()
	if len(drifted)+len(warmed)+len(again) > 0 || creeps || lighter != nil {
		c.Status, c.Detail = Warn, ""
	}
	if len(drifted) > 0 {
		c.addDetail("%d of %d steps drifted during the measurement: %s; use a longer warm-up or measurement", len(drifted), judged,
			strings.Join(head(drifted, 4), ", "))
	}
	if len(warmed) > 0 {
		c.addDetail("%d of %d steps had not settled when their measurement began (%s): use a longer warm-up", len(warmed), judged,
			strings.Join(head(warmed, 3), "; "))
	}
	if creeps {
		c.addDetail("the throughput changed by %+.2g%% a second through all steps, which is %+.0f%% from the first measurement to the last: "+
			"the curve shows time as well as load; repeat it with the loads in another order", 100*rate, 100*whole)
	}
	if lighter != nil {
		less, _, _ := f.yield(lighter)
		more, _, _ := f.yield(heavier)
		c.addDetail("%s had %s times the throughput of %s, measured before: more clients do not explain that, but a cache that filled up, "+
			"or a service that warmed up, does; measure %s again", f.at(heavier), unit.Significant(more/less), f.at(lighter), f.at(lighter))
	}
	if len(again) > 0 {
		c.addDetail("loads gave another result when they were held again: %s", strings.Join(head(again, 4), ", "))
	}
	return c
}

// How much faster clients must be in a heavier step for a remark: as a factor beyond the intervals of both steps, and in seconds of each
// operation. What clients cost each other slows them down; what they gain from cores that others keep awake is less.
const (
	superlinearGrowth = 1.5
	superlinearGain   = 1e-3
)

// superlinear returns the first step whose throughput is too small for that of a heavier one that was measured later; nil if there is none.
func (f *Findings) superlinear() (lighter, heavier *Step) {
	if f.Open() || f.OfJobs() || len(f.Populations) > 0 {
		return nil, nil
	}
	for a := range each(f.Curve) {
		for b := range each(f.Curve) {
			if a.Excluded == "" && b.Excluded == "" && b.Step > a.Step && b.ActiveClients > a.ActiveClients && f.outgrows(a, b) {
				return a, b
			}
		}
	}
	return nil, nil
}

func (f *Findings) outgrows(a, b *Step) bool {
	x, _, highest := f.yield(a)
	y, lowest, _ := f.yield(b)
	if highest == nil || lowest == nil || b.Operations <= 0 || a.Errors+a.Retried+a.Waits > a.Done/100 || a.Unavailable > 0 ||
		ratio(a.ActiveClients, a.Operations)-ratio(b.ActiveClients, b.Operations) < superlinearGain {
		return false
	}
	expected := superlinearGrowth * b.ActiveClients / a.ActiveClients
	return y-expected*x > math.Hypot(y-*lowest, expected*(*highest-x))
}

// changed lists the loads that certainly gave another result when they were held again, unless that is hysteresis.
func (f *Findings) changed() (all []string) {
	if len(f.Hysteresis) > 0 {
		return nil
	}
	for _, r := range shape.Repeated(f.points()) {
		if r.Certain && math.Abs(r.Change) >= unsteady {
			all = append(all, fmt.Sprintf("%s %+.0f%% in step %d after step %d", f.at(&f.Curve[r.Up]), 100*r.Change, f.Curve[r.Down].Step,
				f.Curve[r.Up].Step))
		}
	}
	return all
}
