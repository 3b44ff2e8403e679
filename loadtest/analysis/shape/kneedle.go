package shape

import (
	"math"
	"slices"

	"weir/internal/stats"
)

// A Kneedle finds the knees of a curve given by points: Satopaa, Albrecht, Irwin, Raghavan,
// "Finding a Kneedle in a haystack", 31st International Conference on Distributed Computing Systems
// Workshops, 2011. The zero value is for a concave, increasing curve and a sensitivity of 0, the
// lowest tolerance of noise: every local maximum of the difference curve is a knee. The paper
// advises 1.
type Kneedle struct {
	// Sensitivity is the distance, in mean distances of points, by which the difference curve must
	// fall below a local maximum for the maximum to be a knee.
	Sensitivity float64
	Convex      bool // the curve bends upward: its elbow is searched
	Decreasing  bool // the curve falls
}

// Find returns the indexes of the knees of y over x in the order in which the algorithm declares
// them: the first index is the result of the offline algorithm, the last index the final result of
// the online algorithm. x must increase strictly, and x and y must be finite and of equal length.
// Otherwise, or with fewer than three points or if all values of y are equal, there are no knees.
func (k Kneedle) Find(x, y []float64) []int {
	if len(x) != len(y) || len(x) < 3 || !increasing(x) || !stats.Finite(y...) {
		return nil
	}
	xs, ys := unitSquare(x), unitSquare(y)
	if ys == nil || xs == nil {
		return nil
	}
	mirrored := k.Convex != k.Decreasing
	if k.Convex { // turned upside down, an elbow is a knee
		for i := range ys {
			ys[i] = 1 - ys[i]
		}
	}
	if mirrored { // a curve that falls from the left rises from the right
		slices.Reverse(ys)
		slices.Reverse(xs)
		for i := range xs {
			xs[i] = 1 - xs[i]
		}
	}
	above := make([]float64, len(xs))
	for i := range xs {
		above[i] = ys[i] - xs[i]
	}
	places := k.traverse(above, 1/float64(len(xs)-1))
	for i := range places {
		if mirrored {
			places[i] = len(x) - 1 - places[i]
		}
	}
	return places
}

// traverse follows the difference curve. Each local maximum sets a threshold below itself; the
// maximum is a knee as soon as the curve falls below the threshold before it turns upward again.
// mean is the mean distance of points.
func (k Kneedle) traverse(above []float64, mean float64) (knees []int) {
	at, threshold := -1, 0.0
	for i := range len(above) - 1 {
		if isPeak(above, i) {
			at, threshold = i, above[i]-k.Sensitivity*mean
		}
		if isValley(above, i) {
			at = -1 // it rises again: wait for the next maximum
		}
		if at >= 0 && above[i+1] < threshold && !slices.Contains(knees, at) {
			knees = append(knees, at)
		}
	}
	return knees
}

// isPeak reports whether no neighbor is higher; the ends have only one neighbor.
func isPeak(y []float64, i int) bool {
	return (i == 0 || y[i] >= y[i-1]) && (i == len(y)-1 || y[i] >= y[i+1])
}

func isValley(y []float64, i int) bool {
	return (i == 0 || y[i] <= y[i-1]) && (i == len(y)-1 || y[i] <= y[i+1])
}

// unitSquare scales y to 0 to 1. It returns nil if all values are equal, or if their range is not
// finite.
func unitSquare(y []float64) []float64 {
	low, high := slices.Min(y), slices.Max(y)
	if !(high-low > 0) || math.IsInf(high-low, 0) {
		return nil
	}
	out := make([]float64, len(y))
	for i := range y {
		out[i] = (y[i] - low) / (high - low)
	}
	return out
}

func increasing(x []float64) bool {
	for i := 1; i < len(x); i++ {
		if !(x[i] > x[i-1]) {
			return false
		}
	}
	return stats.Finite(x...)
}
