package stats

import (
	"cmp"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Uneven returns the ratio of the largest of k parts to the mean of all parts when n things are
// dealt over the parts at random, each to any part with the same chance: its expectation, and the
// bound that it exceeds in one case of twenty. The two results are 1 for one part and for n = 0.
//
// Up to 200 things it is exact. Beyond, the parts are taken as independent binomial numbers: P(largest <= m) is
// F(m)^k with the distribution F of one part. The expectation's distance from 1 is stretched by sqrt(k/(k-1)), since
// parts whose sum is given deviate against each other. A simulation differs by less than 3%.
func Uneven(k int, n float64) (mean, high float64) {
	if k < 2 || !(n >= 1) {
		return 1, 1
	}
	n = math.Round(n)
	middle := n / float64(k)
	sd := math.Sqrt(middle * (1 - 1/float64(k)))
	step := math.Max(1, math.Floor(sd/50))
	from, largest, stretch := math.Floor(math.Max(0, middle-12*sd)), largestPart(k, n, middle, sd), 1.0
	if n > fewDealt {
		stretch = math.Sqrt(float64(k) / float64(k-1))
	}
	sum := from
	for m := from; m < n && m <= middle+12*sd+12; m += step {
		below := largest(m)
		sum += (1 - below) * step
		if high == 0 && below >= 0.95 {
			high = m
		}
	}
	high = cmp.Or(high, n)
	mean = math.Max(1, 1+(sum/middle-1)*stretch)
	return mean, math.Max(mean, high/middle)
}

// fewDealt is the largest number of things for which all ways to deal them are summed up, and
// manyDealt the least number for which the normal distribution replaces the binomial distribution.
const (
	fewDealt  = 200
	manyDealt = 1e5
)

// largestPart returns the chance that the largest part is at most m.
func largestPart(k int, n, middle, sd float64) func(m float64) float64 {
	switch {
	case n <= fewDealt:
		return func(m float64) float64 { return noneAbove(k, int(n), int(m)) }
	case n < manyDealt:
		one := distuv.Binomial{N: n, P: 1 / float64(k)}
		return func(m float64) float64 { return math.Pow(one.CDF(m), float64(k)) }
	}
	return func(m float64) float64 {
		return math.Pow(distuv.UnitNormal.CDF((m+0.5-middle)/sd), float64(k))
	}
}

// noneAbove returns the chance that no part gets more than m of n things: the coefficient of x^n in
// (sum of x^j/j! for j up to m)^k, times n!/k^n. The powers are scaled as Poisson numbers with the
// mean n/k, so that no power overflows.
func noneAbove(k, n, m int) float64 {
	rate := float64(n) / float64(k)
	one := make([]float64, n+1)
	for j := range min(m, n) + 1 {
		one[j] = math.Exp(float64(j)*math.Log(rate) - rate - lnFactorial(j))
	}
	all := make([]float64, n+1)
	all[0] = 1
	for left := k; left > 0; left >>= 1 {
		if left&1 == 1 {
			all = product(all, one)
		}
		one = product(one, one)
	}
	whole := math.Exp(float64(n)*math.Log(float64(n)) - float64(n) - lnFactorial(n))
	return math.Min(1, all[n]/whole)
}

func lnFactorial(n int) float64 {
	v, _ := math.Lgamma(float64(n + 1))
	return v
}

// product multiplies two polynomials up to their common length.
func product(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i, x := range a {
		if x == 0 {
			continue
		}
		for j := range len(a) - i {
			out[i+j] += x * b[j]
		}
	}
	return out
}
