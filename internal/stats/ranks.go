package stats

import (
	"cmp"
	"math"
	"slices"
)

// A Test is a test of a shift between two groups, or of differences from zero. Shift is in the unit of the numbers:
// positive if the second group is larger.
type Test struct {
	P     float64   // two-sided
	Shift float64   // estimate
	Range *Interval // 95% interval of the shift; nil: too few numbers for one
	Exact bool      // P is computed from all arrangements, not approximated
}

// mostExact is the largest number of values with an exact distribution of ranks; beyond it the
// normal approximation is close enough.
const mostExact = 60

// MannWhitney tests whether b tends to be larger or smaller than a (Mann and Whitney, Annals of
// Mathematical Statistics 18, 1947), and estimates the difference: the median of all differences b
// - a (Hodges and Lehmann, Annals of Mathematical Statistics 34, 1963), with the interval that the
// order statistics of these differences give (Moses; in Hollander and Wolfe, Nonparametric
// Statistical Methods, 4.3).
//
// P is exact for up to 60 numbers in all: the share of arrangements of the numbers, ties among
// them, whose rank sum is at least as far from its mean. (With ties the normal approximation claims
// too much: 3 equal numbers against 3 other equal numbers get 0.047, although no arrangement can go
// below 0.1.) Beyond it P is by the normal approximation with correction for ties and continuity.
// Both groups must be independent numbers from distributions of the same shape. ok is false if one
// is empty or not finite.
func MannWhitney(a, b []float64) (t Test, ok bool) {
	if len(a) == 0 || len(b) == 0 || !Finite(a...) || !Finite(b...) {
		return Test{}, false
	}
	ranks := doubledRanks(slices.Concat(a, b))
	sum := 0
	for _, r := range ranks[len(a):] {
		sum += r
	}
	if t.Exact = len(ranks) <= mostExact; t.Exact {
		t.P = rankSumP(ranks, len(b), sum)
	} else {
		t.P = rankSumNormal(ranks, len(a), len(b), sum)
	}
	all := differences(a, b)
	t.Shift = SortedQuantile(all, 0.5)
	if k := tailCount(len(a), len(b)); k > 0 {
		t.Range = &Interval{all[k-1], all[len(all)-k]}
	}
	return t, true
}

// differences returns all b - a, sorted.
func differences(a, b []float64) []float64 {
	all := make([]float64, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			all = append(all, y-x)
		}
	}
	slices.Sort(all)
	return all
}

// doubledRanks returns twice the rank of each number, so that the ranks of equal numbers, which
// share the mean of their ranks, are integers.
func doubledRanks(x []float64) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(x[i], x[j]) })
	ranks := make([]int, len(x))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && x[order[j]] == x[order[i]] {
			j++
		}
		for _, at := range order[i:j] {
			ranks[at] = i + j + 1 // twice the mean of i+1 ... j
		}
		i = j
	}
	return ranks
}

// rankSumP returns the share of all choices of m of the ranks whose sum is at least as far from the mean as sum is
// (the shift algorithm of Streitberg and Roehmel, 1986: choices are counted by their sum, rank by rank).
func rankSumP(ranks []int, m, sum int) float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	count := make([][]float64, m+1) // of choices of k ranks, by sum
	for k := range count {
		count[k] = make([]float64, total+1)
	}
	count[0][0] = 1
	so := 0
	for i, r := range ranks {
		so += r
		for k := min(i+1, m); k > 0; k-- {
			for s := so; s >= r; s-- {
				count[k][s] += count[k-1][s-r]
			}
		}
	}
	n := len(ranks)
	off := abs(n*sum - m*total) // n times the distance from the mean
	return shareOf(count[m], func(s int) bool { return abs(n*s-m*total) >= off })
}

// shareOf returns the share of counts whose index is far.
func shareOf(counts []float64, isFar func(int) bool) float64 {
	var all, far float64
	for s, c := range counts {
		all += c
		if isFar(s) {
			far += c
		}
	}
	return min(1, far/all)
}

// rankSumNormal approximates rankSumP by the normal distribution.
func rankSumNormal(ranks []int, n, m, sum int) float64 {
	size := float64(n + m)
	ties := 0.0
	same := map[int]float64{}
	for _, r := range ranks {
		same[r]++
	}
	for _, t := range same {
		ties += t*t*t - t
	}
	u := float64(sum)/2 - float64(m)*float64(m+1)/2
	product := float64(n) * float64(m)
	variance := product / 12 * (size + 1 - ties/(size*(size-1)))
	return normalP(math.Abs(u-product/2)-0.5, variance)
}

// normalP returns the two-sided p of a distance, corrected for continuity.
func normalP(distance, variance float64) float64 {
	if distance <= 0 || variance <= 0 {
		return 1
	}
	return math.Erfc(distance / math.Sqrt(2*variance))
}

// tailCount returns the largest k for which the k-th smallest and the k-th largest of the n*m
// differences enclose the shift in 95% of all cases; 0 if no k does, as with 3 numbers against 3.
func tailCount(n, m int) int {
	if n+m > mostExact {
		product := float64(n) * float64(m)
		return max(0, int(product/2-1.959964*math.Sqrt(product*float64(n+m+1)/12)))
	}
	// Arrangements by U, without ties: adding the i-th of the second group multiplies the generating function by
	// (1-x^(n+i))/(1-x^i).
	count := make([]float64, n*m+1)
	count[0] = 1
	for i := 1; i <= m; i++ {
		for u := n * m; u >= n+i; u-- {
			count[u] -= count[u-n-i]
		}
		for u := i; u <= n*m; u++ {
			count[u] += count[u-i]
		}
	}
	return tail(count)
}

// tail returns the largest k with P(statistic <= k-1) at most 2.5%.
func tail(count []float64) int {
	all := 0.0
	for _, c := range count {
		all += c
	}
	sum := 0.0
	for u, c := range count {
		if sum += c; sum > 0.025*all {
			return u
		}
	}
	return 0
}

func abs(x int) int { return max(x, -x) }
