package stats

import (
	"math"
	"slices"
)

// SignedRank tests whether differences d, one a block, tend to be above or below zero (Wilcoxon,
// Biometrics Bulletin 1, 1945), and estimates their center: the median of the means of all pairs,
// each with itself as well (Walsh; Hodges and Lehmann 1963), with the interval of their order
// statistics (Tukey; in Hollander and Wolfe, Nonparametric Statistical Methods, 3.3). Zeros are
// left out of P. P is exact for up to 60 differences, ties among them, else by the normal
// approximation as in MannWhitney. It needs six differences to go below 0.05. ok is false if d is
// empty or has numbers that are not finite.
func SignedRank(d []float64) (t Test, ok bool) {
	if len(d) == 0 || !Finite(d...) {
		return Test{}, false
	}
	var sizes []float64
	var positive []bool
	for _, v := range d {
		if v != 0 {
			sizes = append(sizes, math.Abs(v))
			positive = append(positive, v > 0)
		}
	}
	ranks, sum := doubledRanks(sizes), 0
	for i, r := range ranks {
		if positive[i] {
			sum += r
		}
	}
	t.Exact = len(ranks) <= mostExact
	t.P = signedP(ranks, sum, t.Exact)
	all := walsh(d)
	t.Shift = SortedQuantile(all, 0.5)
	if k := signedTail(len(d)); k > 0 {
		t.Range = &Interval{all[k-1], all[len(all)-k]}
	}
	return t, true
}

// walsh returns the means of all pairs, each number with itself as well, sorted.
func walsh(d []float64) []float64 {
	all := make([]float64, 0, len(d)*(len(d)+1)/2)
	for i, x := range d {
		for _, y := range d[i:] {
			all = append(all, x/2+y/2)
		}
	}
	slices.Sort(all)
	return all
}

// signedP returns the share of all choices of signs whose positive ranks (all are doubled) have a sum at least as far
// from the middle.
func signedP(ranks []int, sum int, exact bool) float64 {
	total, squares := 0, 0.0
	for _, r := range ranks {
		total += r
		squares += float64(r) * float64(r)
	}
	if !exact {
		return normalP(math.Abs(float64(sum)-float64(total)/2)/2-0.5, squares/16)
	}
	return shareOf(signCounts(ranks, total), func(s int) bool { return abs(2*s-total) >= abs(2*sum-total) })
}

// signCounts counts choices of ranks by their sum.
func signCounts(ranks []int, total int) []float64 {
	count := make([]float64, total+1)
	count[0] = 1
	so := 0
	for _, r := range ranks {
		so += r
		for s := so; s >= r; s-- {
			count[s] += count[s-r]
		}
	}
	return count
}

// signedTail works like tailCount for n differences.
func signedTail(n int) int {
	size := float64(n)
	if n > mostExact {
		return max(0, int(size*(size+1)/4-1.959964*math.Sqrt(size*(size+1)*(2*size+1)/24)))
	}
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	return tail(signCounts(ranks, n*(n+1)/2))
}
