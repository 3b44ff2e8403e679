package stats

import (
	"math"
	"slices"
)

// exchanges are all assignments of the numbers of a and b to two groups of the same sizes: in each,
// k numbers of a change places with k of b. With b shifted by s, its difference of means is that of
// the actual assignment if the exchanged numbers have the same mean, fromA/k = fromB/k - s. The
// values of exchanges are these shifts s. They are counted, not listed: for a pair of sorted lists
// of sums, one walk through the two lists counts the pairs below a limit.
type exchanges struct {
	fromA, fromB [][]float64 // sums of all choices of k numbers, sorted
	all          int         // number, without the actual assignment
	tie          float64     // differences as small as this are rounding errors
}

// newExchanges makes the sums; ok is false if there are too many.
func newExchanges(a, b []float64) (e exchanges, ok bool) {
	most := min(len(a), len(b))
	if choicesUpTo(len(a), most) > mostSums || choicesUpTo(len(b), most) > mostSums {
		return e, false
	}
	e.fromA, e.fromB = sums(a, most), sums(b, most)
	for k := 1; k <= most; k++ {
		e.all += len(e.fromA[k]) * len(e.fromB[k])
	}
	e.tie = 1e-12 * largest(a, b)
	return e, true
}

// sums returns the sums of all choices of up to most numbers, by their size.
func sums(x []float64, most int) [][]float64 {
	by := make([][]float64, most+1)
	by[0] = []float64{0}
	for _, v := range x {
		for k := most; k > 0; k-- {
			for _, s := range by[k-1] {
				by[k] = append(by[k], s+v)
			}
		}
	}
	for _, s := range by {
		slices.Sort(s)
	}
	return by
}

// choicesUpTo returns the number of choices of at most k from n, or a little more than mostSums.
func choicesUpTo(n, k int) float64 {
	all, of := 1.0, 1.0
	for i := range k {
		of *= float64(n-i) / float64(i+1)
		if all += of; all > mostSums {
			break
		}
	}
	return all
}

// atMost returns the number of values that are at most s, or within slack above it.
func (e *exchanges) atMost(s, slack float64) int {
	count := 0
	for k := 1; k < len(e.fromA); k++ {
		limit := float64(k)*s + slack
		at, b := 0, e.fromB[k]
		for _, x := range e.fromA[k] {
			for at < len(b) && b[at]-x <= limit {
				at++
			}
			count += at
		}
	}
	return count
}

// p returns twice the smaller one-sided share.
func (e *exchanges) p() float64 {
	notAbove := e.atMost(0, e.tie) + 1
	notBelow := e.all - e.atMost(0, -e.tie) + 1 // except ties of exactly -tie
	return min(1, 2*float64(min(notAbove, notBelow))/float64(e.all+1))
}

// conclude fills in P and interval of t.
func (e *exchanges) conclude(t *Test) {
	t.P = e.p()
	k := (e.all + 1) / 40
	if k == 0 {
		return
	}
	low, high := e.span()
	t.Range = &Interval{e.value(k, low, high), e.value(e.all-k+1, low, high)}
	if !Finite(t.Range.Low, t.Range.High) {
		t.Range = nil
	}
}

// span encloses all values.
func (e *exchanges) span() (low, high float64) {
	for k := 1; k < len(e.fromA); k++ {
		a, b := e.fromA[k], e.fromB[k]
		low = min(low, (b[0]-a[len(a)-1])/float64(k))
		high = max(high, (b[len(b)-1]-a[0])/float64(k))
	}
	return low, high
}

// value returns the k-th smallest value, from 1, by halving its range until nothing lies between; ties with zero are
// zero.
func (e *exchanges) value(k int, low, high float64) float64 {
	if e.atMost(low, 0) >= k {
		return low
	}
	for range 200 {
		middle := low + (high-low)/2
		if !(low < middle && middle < high) || high-low <= e.tie/16 {
			break
		}
		if e.atMost(middle, 0) >= k {
			high = middle
		} else {
			low = middle
		}
	}
	if math.Abs(high) <= 2*e.tie {
		return 0
	}
	return high
}
