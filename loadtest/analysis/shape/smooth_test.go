package shape

import "weir/internal/stats"

// Smooth returns the values at x of the polynomial of the given degree that is nearest to y by
// least squares. It builds the polynomials that are orthogonal over x by their recurrence
// (Forsythe, Journal of the Society for Industrial and Applied Mathematics 5, 1957), so that it
// stays exact at degrees at which powers of x would have lost all digits. x must increase strictly;
// it returns nil if x does not, or if there are no more points than the degree.
func Smooth(x, y []float64, degree int) []float64 {
	if len(x) != len(y) || degree < 0 || len(x) <= degree || !increasing(x) || !stats.Finite(y...) {
		return nil
	}
	scaled := unitSquare(x)
	if scaled == nil {
		scaled = make([]float64, len(x)) // one point
	}
	out := make([]float64, len(x))
	before, now := make([]float64, len(x)), make([]float64, len(x))
	for i := range now {
		now[i] = 1
	}
	last := 1.0 // norm of the polynomial before
	for k := 0; ; k++ {
		norm, share, center := 0.0, 0.0, 0.0
		for i, p := range now {
			norm += p * p
			share += p * (y[i] - out[i])
			center += p * p * scaled[i]
		}
		if norm == 0 {
			return out
		}
		for i, p := range now {
			out[i] += share / norm * p
		}
		if k == degree {
			return out
		}
		next := make([]float64, len(x))
		for i := range next {
			next[i] = (scaled[i] - center/norm) * now[i]
			if k > 0 {
				next[i] -= norm / last * before[i]
			}
		}
		before, now, last = now, next, norm
	}
}
