// Package stats holds the statistics that analysis stands on: means with intervals, truncation, trends and tests, on
// plain slices of numbers.
//
// All functions are pure: they leave their arguments unchanged, and the same arguments give the
// same result, also if random permutations are drawn. Too few numbers, or numbers that are not
// finite, give no result: ok is false then, and no function panics.
package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// An Interval is a 95% confidence interval; both ends belong to it.
type Interval struct{ Low, High float64 }

// Contains reports whether x lies in v.
func (v Interval) Contains(x float64) bool { return v.Low <= x && x <= v.High }

// Mean returns the arithmetic mean of x, NaN if x is empty.
func Mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// Deviation returns the standard deviation of x (n-1 in the denominator), NaN below two numbers.
func Deviation(x []float64) float64 {
	if len(x) < 2 {
		return math.NaN()
	}
	return math.Sqrt(Squares(x) / float64(len(x)-1))
}

// Squares returns the sum of the squared distances of x from its mean.
func Squares(x []float64) float64 {
	mean, sum := Mean(x), 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return sum
}

// MeanInterval returns the 95% interval of the mean of independent numbers by Student's t; ok is false below two.
func MeanInterval(x []float64) (v Interval, ok bool) {
	if len(x) < 2 || !Finite(x...) {
		return Interval{}, false
	}
	mean := Mean(x)
	half := Student(float64(len(x)-1)) * Deviation(x) / math.Sqrt(float64(len(x)))
	return Interval{mean - half, mean + half}, true
}

// Quantile returns the q-quantile of x, 0 <= q <= 1, by linear interpolation between order statistics (type 7 of
// Hyndman and Fan, The American Statistician 50, 1996); NaN if x is empty.
func Quantile(x []float64, q float64) float64 {
	if len(x) == 0 || math.IsNaN(q) {
		return math.NaN()
	}
	return SortedQuantile(slices.Sorted(slices.Values(x)), q)
}

// SortedQuantile works like Quantile for a nonempty sorted slice.
func SortedQuantile(sorted []float64, q float64) float64 {
	at := min(max(q, 0), 1) * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Student returns the 97.5% point of Student's t distribution; half the width of a 95% interval in standard errors.
// Degrees of freedom need not be whole; it is infinite below one, and that of the normal distribution where they are.
func Student(degrees float64) float64 { return studentPoint(0.975, degrees) }

func studentPoint(share, degrees float64) float64 {
	if !(degrees >= 1) {
		return math.Inf(1)
	}
	if degrees > 1e6 {
		return distuv.UnitNormal.Quantile(share)
	}
	return distuv.StudentsT{Sigma: 1, Nu: degrees}.Quantile(share)
}

// An Error is the standard error of a mean, and its degrees of freedom (at least one; infinite: it is known exactly).
type Error struct{ Size, Degrees float64 }

// Welch returns half of the 95% interval of the difference of two means with these errors (Welch,
// Biometrika 34, 1947, with Satterthwaite's degrees of freedom). For the given number of pairs that
// are compared at once it is wide enough for all differences to lie in their intervals in 95% of
// cases (Bonferroni).
func Welch(a, b Error, pairs int) float64 {
	x, y := a.Size*a.Size, b.Size*b.Size
	both := x + y
	if both == 0 {
		return 0
	}
	degrees := both * both / (x*x/a.Degrees + y*y/b.Degrees)
	if math.IsNaN(degrees) { // squares of squares that are too small for a number
		degrees = math.Inf(1)
	}
	return studentPoint(1-0.025/float64(pairs), max(1, degrees)) * math.Sqrt(both)
}

// StudentP returns the two-sided p of t with degrees of freedom (they need not be integers), NaN
// for invalid arguments.
func StudentP(t, degrees float64) float64 {
	if !(degrees > 0) || math.IsNaN(t) {
		return math.NaN()
	}
	return min(1, 2*distuv.StudentsT{Sigma: 1, Nu: degrees}.CDF(-math.Abs(t)))
}

// FisherP returns the chance that a ratio of two mean squares with these degrees of freedom is f or
// more where both estimate the same variance; 1 for invalid arguments.
func FisherP(f, above, below float64) float64 {
	if !(above > 0 && below > 0) || math.IsNaN(f) || f <= 0 {
		return 1
	}
	if math.IsInf(f, 1) {
		return 0
	}
	return distuv.F{D1: above, D2: below}.Survival(f)
}

// Lag1 returns the autocorrelation of lag 1: the degree to which neighbors in a series resemble
// each other, -1 to 1. It is 0 for series that are constant or shorter than three.
func Lag1(x []float64) float64 {
	if len(x) < 3 || !Finite(x...) {
		return 0
	}
	mean, all, near := Mean(x), Squares(x), 0.0
	for i := 1; i < len(x); i++ {
		near += (x[i] - mean) * (x[i-1] - mean)
	}
	if all == 0 {
		return 0
	}
	return near / all
}

// Finite reports whether all of x are numbers.
func Finite(x ...float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// Ratio returns a/b, and 0 if that is not a finite number.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return OrZero(a / b)
}

// OrZero returns x, and 0 if x is not a finite number: JSON has no text for the others.
func OrZero(x float64) float64 {
	if Finite(x) {
		return x
	}
	return 0
}
