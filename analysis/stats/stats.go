// Package stats holds the statistics that analysis stands on: means with
// intervals, truncation, trends and tests, on plain slices of numbers.
//
// All functions are pure: they leave their arguments as they are, and the same
// arguments give the same result, also where random permutations are drawn.
// What cannot be said from too few numbers, or from numbers that are not
// finite, is not said: ok is false then, and nothing panics.
package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// An Interval is a 95% confidence interval; both ends belong to it.
type Interval struct{ Low, High float64 }

// Contains says whether x lies in v.
func (v Interval) Contains(x float64) bool { return v.Low <= x && x <= v.High }

// Mean returns the arithmetic mean of x, NaN if x is empty.
func Mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// Deviation returns the standard deviation of x (n-1 in the denominator), NaN
// below two numbers.
func Deviation(x []float64) float64 {
	if len(x) < 2 {
		return math.NaN()
	}
	mean, sum := Mean(x), 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(x)-1))
}

// MeanInterval returns the 95% interval of the mean of independent numbers by
// Student's t; ok is false below two.
func MeanInterval(x []float64) (v Interval, ok bool) {
	if len(x) < 2 || !finite(x) {
		return Interval{}, false
	}
	mean := Mean(x)
	half := Student(len(x)-1) * Deviation(x) / math.Sqrt(float64(len(x)))
	return Interval{mean - half, mean + half}, true
}

// Quantile returns the q-quantile of x, 0 <= q <= 1, by linear interpolation
// between order statistics (type 7 of Hyndman and Fan, The American
// Statistician 50, 1996); NaN if x is empty.
func Quantile(x []float64, q float64) float64 {
	if len(x) == 0 || math.IsNaN(q) {
		return math.NaN()
	}
	return sortedQuantile(slices.Sorted(slices.Values(x)), q)
}

func sortedQuantile(s []float64, q float64) float64 {
	at := min(max(q, 0), 1) * float64(len(s)-1)
	i := int(at)
	if i+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}

// Student returns the 97.5% point of Student's t distribution; half the width
// of a 95% interval in standard errors. It is infinite below one degree.
func Student(degrees int) float64 { return studentPoint(float64(degrees)) }

func studentPoint(degrees float64) float64 {
	if !(degrees >= 1) {
		return math.Inf(1)
	}
	return distuv.StudentsT{Sigma: 1, Nu: degrees}.Quantile(0.975)
}

// StudentP returns the two-sided p of t with degrees of freedom (they need not
// be whole), NaN where that makes no sense.
func StudentP(t, degrees float64) float64 {
	if !(degrees > 0) || math.IsNaN(t) {
		return math.NaN()
	}
	return min(1, 2*distuv.StudentsT{Sigma: 1, Nu: degrees}.CDF(-math.Abs(t)))
}

// FisherP returns P(F >= f) for Fisher's F with a and b degrees of freedom.
func FisherP(f, a, b float64) float64 {
	if !(a > 0) || !(b > 0) || math.IsNaN(f) {
		return math.NaN()
	}
	if f <= 0 {
		return 1
	}
	if math.IsInf(f, 1) {
		return 0
	}
	return distuv.F{D1: a, D2: b}.Survival(f)
}

// Lag1 returns the autocorrelation of lag 1: how much neighbors in a series
// resemble each other, -1 to 1. It is 0 for series that are constant or
// shorter than three.
func Lag1(x []float64) float64 {
	if len(x) < 3 || !finite(x) {
		return 0
	}
	mean := Mean(x)
	var near, all float64
	for i, v := range x {
		all += (v - mean) * (v - mean)
		if i > 0 {
			near += (v - mean) * (x[i-1] - mean)
		}
	}
	if all == 0 {
		return 0
	}
	return near / all
}

func finite(x []float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}
