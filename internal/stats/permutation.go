package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Limits of a permutation test: it uses all arrangements as long as each group has no more than
// mostSums sums of choices, otherwise a sample drawn with a fixed seed.
const (
	mostSums  = 1 << 17 // 17 against 17
	drawn     = 19_999
	mostSigns = 17 // 131,071 choices
)

// Permutation tests whether a and b have the same mean, by the distribution of the difference of
// the means under other assignments of the same numbers to the two groups (Fisher 1935; Pitman,
// Supplement to the Journal of the Royal Statistical Society 4, 1937). Shift is that difference. P
// is twice the smaller one-sided share, and the interval holds the shifts that this test does not
// refuse at 5%, so the two never contradict each other.
//
// Up to 17 against 17 it uses all assignments, beyond that 19,999 drawn assignments and the actual
// assignment. It needs 40 assignments (4 against 4 have 70) to go below 0.05. ok is false if a
// group is empty or not finite.
func Permutation(a, b []float64) (t Test, ok bool) {
	if len(a) == 0 || len(b) == 0 || !Finite(a...) || !Finite(b...) {
		return Test{}, false
	}
	t.Shift = Mean(b) - Mean(a)
	if e, ok := newExchanges(a, b); ok {
		t.Exact = true
		e.conclude(&t)
		return t, true
	}
	t.conclude(drawExchanges(a, b), largest(a, b))
	return t, true
}

// Signs tests whether differences d, one a block, have mean zero, by the distribution of their mean
// under other signs of the same differences (Fisher, The Design of Experiments, 1935, section 21).
// Shift is the mean; P and the interval are as in Permutation. Up to 17 differences all signs are
// used. It needs six to go below 0.05. ok is false if d is empty or has numbers that are not
// finite.
func Signs(d []float64) (t Test, ok bool) {
	if len(d) == 0 || !Finite(d...) {
		return Test{}, false
	}
	t.Shift = Mean(d)
	if t.Exact = len(d) <= mostSigns; t.Exact {
		t.conclude(subsetMeans(d), largest(d))
	} else {
		t.conclude(drawnMeans(d), largest(d))
	}
	return t, true
}

// conclude fills in P and interval. Each value belongs to one other arrangement: it is the shift
// for which that arrangement would have the same difference of means as the actual arrangement; for
// larger shifts it has a larger one (Hartigan's typical values, Journal of the American Statistical
// Association 64, 1969). Values as near to zero as rounding errors of numbers of size scale are
// ties.
func (t *Test) conclude(values []float64, scale float64) {
	notAbove, notBelow := 1, 1
	for i, v := range values {
		if math.Abs(v) <= 1e-12*scale {
			v, values[i] = 0, 0
		}
		if v <= 0 {
			notAbove++
		}
		if v >= 0 {
			notBelow++
		}
	}
	n := len(values) + 1
	t.P = min(1, 2*float64(min(notAbove, notBelow))/float64(n))
	// A shift is refused if its one-sided share, 1 and the values on that side over n, is at most 2.5%.
	if k := n / 40; k > 0 {
		t.Range = &Interval{nth(values, k-1), nth(values, len(values)-k)}
	}
}

// nth returns the value that would be at place k if values were sorted; it changes their order (Hoare's find).
func nth(values []float64, k int) float64 {
	low, high := 0, len(values)-1
	for low < high {
		pivot, i, j := values[low+(high-low)/2], low, high
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j:
			high = j
		case k >= i:
			low = i
		default:
			return values[k]
		}
	}
	return values[k]
}

// largest returns the largest size of the numbers.
func largest(groups ...[]float64) float64 {
	size := 0.0
	for _, v := range slices.Concat(groups...) {
		size = max(size, math.Abs(v))
	}
	return size
}

// drawExchanges returns the values of exchanges for assignments drawn at random.
func drawExchanges(a, b []float64) []float64 {
	r := rand.New(rand.NewPCG(uint64(len(a)), uint64(len(b))))
	place := slices.Concat(a, b)
	fromB := make([]bool, len(place))
	for i := range fromB {
		fromB[i] = i >= len(a)
	}
	values := make([]float64, 0, drawn)
	for len(values) < drawn {
		for i := range len(a) { // the first places become group a: a draw without replacement
			j := i + r.IntN(len(place)-i)
			place[i], place[j] = place[j], place[i]
			fromB[i], fromB[j] = fromB[j], fromB[i]
		}
		k, shift := 0, 0.0
		for i, v := range place {
			if i < len(a) && fromB[i] {
				k++
				shift += v
			} else if i >= len(a) && !fromB[i] {
				shift -= v
			}
		}
		if k > 0 {
			values = append(values, shift/float64(k))
		}
	}
	return values
}

// subsetMeans returns the mean of each choice of at least one number.
func subsetMeans(x []float64) []float64 {
	sum := make([]float64, 1<<len(x))
	values := make([]float64, 0, len(sum))
	for set := 1; set < len(sum); set++ {
		sum[set] = sum[set&(set-1)] + x[bits.TrailingZeros(uint(set))]
		values = append(values, sum[set]/float64(bits.OnesCount(uint(set))))
	}
	return values
}

// drawnMeans works like subsetMeans for choices drawn at random.
func drawnMeans(x []float64) []float64 {
	r := rand.New(rand.NewPCG(uint64(len(x)), 0))
	values := make([]float64, 0, drawn)
	for len(values) < drawn {
		sum, k := 0.0, 0
		for _, v := range x {
			if r.Uint64()&1 == 1 {
				sum += v
				k++
			}
		}
		if k > 0 {
			values = append(values, sum/float64(k))
		}
	}
	return values
}
