package compare

import (
	"math"
	"slices"

	"weir/internal/stats"
)

// fewestBlocks is the least number of blocks from which a test within blocks can find a difference.
const fewestBlocks = 6

// blocks pairs runs of a with runs of b that followed each other: by their block if all runs belong
// to one campaign, otherwise by their time, if each run of one group is next to a run of the other
// group before the next pair begins.
func blocks(a, b *Group) [][2]*Run {
	if c := a.Runs[0].campaign; c != "" && ofOne(a, c) && ofOne(b, c) {
		return byNumber(a, b)
	}
	return byTime(a, b)
}

func ofOne(g *Group, campaign string) bool {
	return !slices.ContainsFunc(g.Runs, func(r *Run) bool { return r.campaign != campaign || r.Block < 1 })
}

func byNumber(a, b *Group) [][2]*Run {
	of := map[int]*Run{}
	for _, r := range b.Runs {
		of[r.Block] = r
	}
	var pairs [][2]*Run
	used := map[int]bool{}
	for _, r := range inTime(a) {
		if other := of[r.Block]; other != nil && !used[r.Block] {
			pairs = append(pairs, [2]*Run{r, other})
			used[r.Block] = true
		}
	}
	return pairs
}

func byTime(a, b *Group) [][2]*Run {
	left, right := inTime(a), inTime(b)
	if len(left) != len(right) {
		return nil
	}
	var pairs [][2]*Run
	for i := range left {
		if i > 0 && (!left[i].Start.After(right[i-1].Start) || !right[i].Start.After(left[i-1].Start)) {
			return nil
		}
		pairs = append(pairs, [2]*Run{left[i], right[i]})
	}
	return pairs
}

func inTime(g *Group) []*Run {
	return slices.SortedStableFunc(slices.Values(g.Runs), func(x, y *Run) int { return x.Start.Compare(y.Start) })
}

// wanders reports whether the level of the blocks, one number each in the order of time, moves from
// block to block by more than chance allows: neighbors resemble each other, by von Neumann's ratio
// of the mean square successive difference (Annals of Mathematical Statistics 12, 1941), with the
// moments of Young (Annals of Mathematical Statistics 12, 1941) at the one-sided 5% level.
//
// The choice of a test by this result does not change error rates: the ratio does not depend on the
// scale of the block means, and so (for normal noise) neither on the spread that the tests use nor
// on the differences within blocks (Basu, Sankhya 15, 1955).
func wanders(level []float64) bool {
	if len(level) < fewestBlocks {
		return false
	}
	n, mean := float64(len(level)), stats.Mean(level)
	var successive, all float64
	for i, v := range level {
		all += (v - mean) * (v - mean)
		if i > 0 {
			successive += (v - level[i-1]) * (v - level[i-1])
		}
	}
	if !(all > 0) {
		return false
	}
	const z = 1.645
	return 1-successive/(2*all) > z*math.Sqrt((n-2)/(n*n-1))
}

// level returns the differences within blocks, corrected for the drift between the two runs of a
// block: if A always comes first, B is affected by more of the drift. The drift is the slope of the
// blocks' levels over time, which does not depend on their differences.
func (s *samples) level() []float64 {
	middle, level := stats.Mean(s.times), stats.Mean(s.levels)
	var along, across float64
	for i, t := range s.times {
		along += (t - middle) * (t - middle)
		across += (t - middle) * (s.levels[i] - level)
	}
	if !(along > 0) {
		return s.differences
	}
	flat := slices.Clone(s.differences)
	for i := range flat {
		flat[i] -= across / along * s.gaps[i]
	}
	return flat
}
