package analysis

import "math"

// ratio returns a/b, and 0 where that is no finite number.
func ratio(a, b float64) float64 {
	if r := a / b; b != 0 && !math.IsNaN(r) && !math.IsInf(r, 0) {
		return r
	}
	return 0
}

// An observation is a mean rate over some seconds.
type observation struct{ rate, seconds float64 }

// Bounds of batching: pieces shorter than leastPiece join their neighbor; no
// more than mostBatches means are kept, since batches of some length are
// nearly independent where single seconds are not (Schmeiser, Operations
// Research 30, 1982, finds 10 to 30 enough).
const (
	leastPiece   = 0.5
	mostBatches  = 20
	leastBatches = 3
)

// batches joins the seconds of a step to at most mostBatches observations of
// about the same length. value is what is counted in a second.
func batches(seconds []second, value func(*second) float64) []observation {
	span := 0.0
	for i := range seconds {
		span += seconds[i].seconds
	}
	least := max(leastPiece, span/(mostBatches+0.5))
	var all []observation
	var sum, length float64
	for i := range seconds {
		sum += value(&seconds[i])
		length += seconds[i].seconds
		if length >= least {
			all = append(all, observation{ratio(sum, length), length})
			sum, length = 0, 0
		}
	}
	if n := len(all); n > 0 && length > 0 {
		last := &all[n-1]
		last.rate = ratio(last.rate*last.seconds+sum, last.seconds+length)
		last.seconds += length
	}
	return all
}

// interval returns the 95% confidence interval of the mean rate, weighted by
// the observations' lengths, by Student's t; ok is false below leastBatches.
func interval(obs []observation) (low, high float64, ok bool) {
	if len(obs) < leastBatches {
		return 0, 0, false
	}
	var mean, weight, spread float64
	for _, o := range obs {
		mean += o.rate * o.seconds
		weight += o.seconds
	}
	mean = ratio(mean, weight)
	for _, o := range obs {
		spread += o.seconds * (o.rate - mean) * (o.rate - mean)
	}
	degrees := len(obs) - 1
	half := student(degrees) * math.Sqrt(ratio(spread, float64(degrees)*weight))
	return max(0, mean-half), mean + half, true
}

// student returns the 97.5% point of Student's t distribution: tabled to 30
// degrees of freedom, beyond them by Fisher's expansion (within 0.0002).
func student(degrees int) float64 {
	table := [...]float64{
		12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
		2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
	}
	if degrees < 1 {
		return math.Inf(1)
	}
	if degrees <= len(table) {
		return table[degrees-1]
	}
	const z = 1.959964
	return z + (z*z*z+z)/(4*float64(degrees)) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*float64(degrees)*float64(degrees))
}

// drift fits a line through the observations and returns by how much it
// changes over their whole time, as a share of the mean, and whether that is
// more than chance at the 5% level; ok is false below 5 observations.
func drift(obs []observation) (share float64, certain, ok bool) {
	if len(obs) < 5 {
		return 0, false, false
	}
	var t, n, tm, xm, sxx, sxy, syy float64
	middle := make([]float64, len(obs))
	for i, o := range obs {
		middle[i] = t + o.seconds/2
		t += o.seconds
		tm += middle[i]
		xm += o.rate
		n++
	}
	tm, xm = tm/n, xm/n
	for i, o := range obs {
		sxx += (middle[i] - tm) * (middle[i] - tm)
		sxy += (middle[i] - tm) * (o.rate - xm)
		syy += (o.rate - xm) * (o.rate - xm)
	}
	slope := ratio(sxy, sxx)
	left := max(0, syy-slope*sxy)
	deviation := math.Sqrt(ratio(left, (n-2)*sxx))
	return ratio(slope*t, xm), math.Abs(slope) > student(len(obs)-2)*deviation, true
}
