package stats

import "math"

// WelchTest tests whether a and b have the same mean without taking their spreads for
// the same (Welch, Biometrika 34, 1947): Shift is the difference of the means, the
// degrees of freedom are Satterthwaite's. ok is false if a group has fewer than two
// numbers, or not finite ones. If neither group spreads, P is 0, or 1 if they are equal.
func WelchTest(a, b []float64) (t Test, ok bool) {
	if len(a) < 2 || len(b) < 2 || !Finite(a...) || !Finite(b...) {
		return Test{}, false
	}
	n, m := float64(len(a)), float64(len(b))
	va, vb := Squares(a)/(n-1)/n, Squares(b)/(m-1)/m
	t.Shift = Mean(b) - Mean(a)
	size := math.Sqrt(va + vb)
	if tie := 1e-12 * largest(a, b); size <= tie { // rounding errors are no spread
		t.Range = &Interval{t.Shift, t.Shift}
		if math.Abs(t.Shift) <= tie {
			t.P = 1
		}
		return t, true
	}
	degrees := (va + vb) * (va + vb) / (va*va/(n-1) + vb*vb/(m-1))
	if math.IsNaN(degrees) { // squares of squares that are too small for a number
		degrees = n + m - 2
	}
	half := Student(degrees) * size
	t.P = StudentP(t.Shift/size, degrees)
	t.Range = &Interval{t.Shift - half, t.Shift + half}
	return t, true
}

// StudentTest tests whether differences d have mean zero (Student, Biometrika 6, 1908).
// Shift is their mean. ok is false if there are fewer than two, or not finite ones. If
// they do not spread, P is 0, or 1 if they are zero.
func StudentTest(d []float64) (t Test, ok bool) {
	if len(d) < 2 || !Finite(d...) {
		return Test{}, false
	}
	n := float64(len(d))
	t.Shift = Mean(d)
	size := math.Sqrt(Squares(d) / (n - 1) / n)
	if tie := 1e-12 * largest(d); size <= tie {
		t.Range = &Interval{t.Shift, t.Shift}
		if t.Shift == 0 {
			t.P = 1
		}
		return t, true
	}
	half := Student(n-1) * size
	t.P = StudentP(t.Shift/size, n-1)
	t.Range = &Interval{t.Shift - half, t.Shift + half}
	return t, true
}

// Cautious tests whether a and b have the same mean by Permutation and by Welch:
// P is the larger one, and the interval holds both, so the two never contradict each
// other. Permutation alone calls groups of the same mean different in up to a quarter
// of cases where the smaller group spreads more; Welch alone relies on normal numbers.
// There is no interval if one of the two has none.
func Cautious(a, b []float64) (t Test, ok bool) {
	if t, ok = Permutation(a, b); !ok || t.Range == nil {
		return t, ok
	}
	w, ok := WelchTest(a, b)
	if !ok {
		t.Range = nil
		return t, true
	}
	t.P = max(t.P, w.P)
	t.Range = &Interval{min(t.Range.Low, w.Range.Low), max(t.Range.High, w.Range.High)}
	return t, true
}
