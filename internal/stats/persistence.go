package stats

import "math"

// Limits of Persistence.
const (
	seldom          = 1.645 // standard errors that a correlation must have: it is seen in 5% of independent series
	mostPersistence = 0.8
	leastShare      = 0.4 // of a correlation that short series show in the mean
)

// Persistence returns the correlation of neighboring batch means, pooled over the series of one run, each of which
// has its own level and spread; 0 unless it is more than chance. Short series show too little of it: with rho the
// correlation, the estimate from n numbers is rho - (1+4 rho)/n in the mean (Marriott and Pope, Biometrika 41, 1954),
// which is calculated back.
func Persistence(series [][]float64) float64 {
	var sum, n, count float64
	for _, x := range series {
		if len(x) >= LeastBatches && Finite(x...) && Squares(x) > 0 {
			sum += float64(len(x)) * Lag1(x)
			n += float64(len(x))
			count++
		}
	}
	if count == 0 {
		return 0
	}
	short := count / n // one over the mean length
	r := sum/n + short
	if r*math.Sqrt(n) < seldom {
		return 0
	}
	return min(r/max(leastShare, 1-4*short), mostPersistence)
}

// Widening returns by which factor the interval of the mean of n batch means, calculated as if they were independent,
// is too narrow if neighbors have the correlation rho: with t = 1 + 2 sum (1-k/n) rho^k, the variance of the mean is
// t/n times that of a batch, which the spread of the batches shows only (n-t)/(n-1) of.
func Widening(rho float64, n int) float64 {
	if !(rho > 0) || n < 2 {
		return 1
	}
	t, power := 1.0, 1.0
	for k := 1; k < n; k++ {
		power *= rho
		t += 2 * (1 - float64(k)/float64(n)) * power
	}
	t = min(t, 0.75*float64(n))
	return math.Sqrt(t * float64(n-1) / (float64(n) - t))
}
