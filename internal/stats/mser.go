package stats

import "math"

// Limits of MSER: fewer batches than leastMSER are not sufficient, and the last few batches alone
// are left out as a steady part, since a handful of numbers can be alike by chance.
const (
	leastMSER = 10
	lastMSER  = 5
)

// A Truncation is the result of MSER for the beginning of a series.
type Truncation struct {
	Cut    int  // numbers to leave out at the beginning
	Steady bool // false: the least is in the second half, so the series was still warming up; Cut is still set
}

// MSER finds the length of the beginning of a series to leave out because it was still warming up:
// batches of the given size (5: MSER-5) are averaged to Z, and the cut d minimizes
//
//	1/(k-d)^2 * sum over i > d of (Z_i - mean of these)^2
//
// which is the squared standard error of the mean of the remaining batches, as if batches were
// independent White, Cobb and Spratt, Winter Simulation Conference 2000). A cut beyond half the
// series indicates that the series is too short; the last five batches are not candidates (Hoad,
// Robinson and Davies, Journal of the Operational Research Society 61, 2010). Numbers that do not
// fill a last batch are ignored. ok is false below ten batches.
func MSER(x []float64, size int) (t Truncation, ok bool) {
	if size < 1 || len(x)/size < leastMSER || !Finite(x...) {
		return Truncation{}, false
	}
	k := len(x) / size
	least, at := math.Inf(1), 0
	// From the end, so that mean and sum of squares of the rest grow by one batch at a time (Welford, Technometrics
	// 4, 1962).
	var mean, squares float64
	for d := k - 1; d >= 0; d-- {
		left := float64(k - d)
		z := Mean(x[d*size : (d+1)*size])
		off := z - mean
		mean += off / left
		squares += off * (z - mean)
		if s := squares / (left * left); d <= k-lastMSER && s <= least {
			least, at = s, d
		}
	}
	return Truncation{Cut: at * size, Steady: 2*at <= k}, true
}
