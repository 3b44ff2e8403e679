package links

import (
	"cmp"
	"math"
	"slices"

	"weir/internal/cause"
	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
)

// Limits of the search for links that share a line.
const (
	blockMinutes   = 10
	leastSeries    = 20   // changes from one part of a minute to the next
	leastNoise     = 0.01 // standard deviation of the changes over the mean: less is no evidence of anything
	mostCandidates = 64   // the worst links of a block
	leastNegative  = -0.2 // correlation of two links that may share a line
)

// A block has the changes of the rates of all links over blockMinutes, from one part of a minute to
// the next. The sum of links that share a full line hardly changes, while each of them does: what
// one link loses another one gains.
type block struct {
	changes  map[int][]float64 // of links below their targets that are not held back on purpose; NaN: not measured
	scatters map[[2]int]scatter
	groups   [][]int // links that share a line and no site
	of       map[int]int
	begun    float64 // copies per second; see starts
	steady   bool
}

type scatter struct {
	ratio float64
	links int
}

// block returns the block of the middle of the subject's minutes. The last block has up to twice as
// many minutes.
func (s *subject) block() *block {
	all := 0
	for i := range s.links {
		all = max(all, len(s.links[i].minutes))
	}
	last := max(0, all/blockMinutes-1)
	n := min((s.span.from+s.span.to-1)/2/blockMinutes, last)
	b := s.blocks[n]
	if b == nil {
		to := (n + 1) * blockMinutes
		if n == last {
			to = max(to, all)
		}
		b = s.newBlock(n*blockMinutes, to)
		s.blocks[n] = b
	}
	return b
}

func (j *judge) newBlock(from, to int) *block {
	b := &block{changes: map[int][]float64{}, scatters: map[[2]int]scatter{}, of: map[int]int{}}
	type candidate struct {
		link  int
		ratio float64
	}
	var worst []candidate
	for i := range j.links {
		below, all, ratio := 0, 0, 0.0
		for at := from; at < to; at++ {
			m := j.judged(i, at)
			if m == nil {
				continue
			}
			if all, ratio = all+1, ratio+m.ratio(); m.below() && m.share(paced)+m.share(ceiling)+m.share(largeFile)+m.share(failing) < 0.5 {
				below++
			}
		}
		if 2*below < all || below == 0 {
			continue
		}
		if x := j.changes(i, from, to); noisy(x) {
			b.changes[i] = x
			worst = append(worst, candidate{i, ratio / float64(all)})
		}
	}
	slices.SortFunc(worst, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.ratio, b.ratio), cmp.Compare(a.link, b.link)) })
	var candidates []int
	for _, c := range worst[:min(len(worst), mostCandidates)] {
		candidates = append(candidates, c.link)
	}
	j.group(b, candidates)
	b.begun, b.steady = j.begun(from, to)
	return b
}

// changes returns the changes of the rate of a link in the minutes of the block that are below its
// target, or nil if it hardly changes. Minutes in which the target changes are left out: all links
// follow it together.
func (j *judge) changes(link, from, to int) []float64 {
	var all []float64
	before, sum, n := math.NaN(), 0.0, 0.0
	for at := from; at < to; at++ {
		m := j.judged(link, at)
		for part := range parts {
			rate := math.NaN()
			if m != nil && m.below() && m.high <= 1.01*m.low && m.part[part].seconds > 0 {
				rate = float64(m.part[part].moved / m.part[part].seconds)
				sum, n = sum+rate, n+1
			}
			all = append(all, rate-before)
			before = rate
		}
	}
	if mean := stats.Ratio(sum, n); !(variance(all) > leastNoise*leastNoise*mean*mean) {
		return nil
	}
	return all
}

// noisy reports whether a series has enough changes to be compared with others.
func noisy(x []float64) bool {
	n := 0
	for _, v := range x {
		if !math.IsNaN(v) {
			n++
		}
	}
	return n >= leastSeries && variance(x) > 0
}

func variance(x []float64) float64 {
	sum, squares, n := 0.0, 0.0, 0.0
	for _, v := range x {
		if !math.IsNaN(v) {
			sum, squares, n = sum+v, squares+v*v, n+1
		}
	}
	return stats.Ratio(squares-stats.Ratio(sum*sum, n), n)
}

// scatterOf returns the variance of the sum of the changes of links, over the sum of their
// variances: about 1 if they are independent, about 0 if they share a full line.
func (b *block) scatterOf(links []int) float64 {
	var sum []float64
	all := 0.0
	for _, i := range links {
		x := b.changes[i]
		all += variance(x)
		if sum == nil {
			sum = slices.Clone(x)
			continue
		}
		for k := range sum {
			sum[k] += x[k]
		}
	}
	if len(links) < 2 || !noisy(sum) && variance(sum) > 0 {
		return 1
	}
	return stats.Ratio(variance(sum), all)
}

// siteScatter returns the scatter of the links below their targets at a site, and their number.
func (b *block) siteScatter(e *end) (ratio float64, links int) {
	id := [2]int{e.site, e.role}
	known, ok := b.scatters[id]
	if !ok {
		var members []int
		for _, i := range e.all {
			if b.changes[i] != nil {
				members = append(members, i)
			}
		}
		known = scatter{b.scatterOf(members), len(members)}
		b.scatters[id] = known
	}
	return known.ratio, known.links
}

// others reports whether a link without a site in common is below its target as well: it may share
// the line.
func (b *block) others(j *judge, link int) bool {
	l := &j.links[link]
	for i := range b.changes {
		if o := &j.links[i]; o.source != l.source && o.dest != l.dest {
			return true
		}
	}
	return false
}

// group finds groups of links whose sum hardly changes. It begins with the two links of the most
// negative correlation and adds links while that reduces the scatter.
func (j *judge) group(b *block, candidates []int) {
	for len(candidates) >= 2 {
		pair, least := []int(nil), leastNegative
		for i, x := range candidates {
			for _, y := range candidates[i+1:] {
				if r := correlation(b.changes[x], b.changes[y]); r < least {
					pair, least = []int{x, y}, r
				}
			}
		}
		if pair == nil {
			return
		}
		group := b.grow(pair, candidates)
		if b.scatterOf(group) < flat && !j.sameSite(group) {
			slices.Sort(group)
			for _, i := range group {
				b.of[i] = len(b.groups)
			}
			b.groups = append(b.groups, group)
		}
		candidates = slices.DeleteFunc(candidates, func(i int) bool { return slices.Contains(group, i) })
	}
}

func (b *block) grow(group, candidates []int) []int {
	for now := b.scatterOf(group); ; {
		best, least := -1, now*0.9
		for _, i := range candidates {
			if slices.Contains(group, i) {
				continue
			}
			if x := b.scatterOf(append(slices.Clone(group), i)); x < least {
				best, least = i, x
			}
		}
		if best < 0 {
			return group
		}
		group, now = append(slices.Clone(group), best), least
	}
}

// sameSite reports whether all links of a group have the same source or the same destination.
func (j *judge) sameSite(group []int) bool {
	source, dest := true, true
	for _, i := range group {
		source = source && j.links[i].source == j.links[group[0]].source
		dest = dest && j.links[i].dest == j.links[group[0]].dest
	}
	return source || dest
}

func correlation(x, y []float64) float64 {
	var n, a, b, aa, bb, ab float64
	for i := range x {
		if u, v := x[i], y[i]; !math.IsNaN(u) && !math.IsNaN(v) {
			n, a, b, aa, bb, ab = n+1, a+u, b+v, aa+u*u, bb+v*v, ab+u*v
		}
	}
	if n < leastSeries {
		return 0
	}
	return stats.Ratio(ab/n-a*b/n/n, math.Sqrt((aa/n-a*a/n/n)*(bb/n-b*b/n/n)))
}

// shared adds the evidence of a line that several links share.
func (s *subject) shared() {
	b := s.block()
	g, found := b.of[s.index]
	if !found {
		return
	}
	n, ratio := len(b.groups[g]), b.scatterOf(b.groups[g])
	s.line.Cause.group = g
	s.line.For(cause.Strong+cause.Weak, Trunk, func() fact.Fact {
		return fact.New("challenge.because.trunk", "links", n, "share", ratio)
	})
}

// begun returns the number of copies per second that ended over the block. steady is whether it was
// about the same in each minute, while copies of all links waited at the service.
func (j *judge) begun(from, to int) (rate float64, steady bool) {
	var rates []float64
	for at := from; at < to; at++ {
		ended, seconds, waiting, all := 0.0, 0.0, 0, 0
		for i := range j.links {
			if m := j.judged(i, at); m != nil {
				all++
				ended += float64(m.done + m.failed)
				seconds = max(seconds, float64(m.seconds))
				if m.mean(m.queued) >= 0.5 {
					waiting++
				}
			}
		}
		if all > 0 && 2*waiting > all {
			rates = append(rates, stats.Ratio(ended, seconds))
		}
	}
	if len(rates) < 3 {
		return 0, false
	}
	mean := stats.Mean(rates)
	return mean, mean > 0 && stats.Deviation(rates) < 0.05*mean
}

// starts returns the number of copies per second that the service begins, if that is its limit.
func (b *block) starts() (rate float64, ok bool) { return b.begun, b.steady }
