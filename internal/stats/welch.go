package stats

import "math"

// WelchTest tests whether a and b have the same mean without taking their spreads for the same
// (Welch, Biometrika 34, 1947): Shift is the difference of the means, the degrees of freedom are
// Satterthwaite's. ok is false if a group has fewer than two numbers, or numbers that are not
// finite. If neither group spreads, P is 0, or 1 if they are equal.
func WelchTest(a, b []float64) (t Test, ok bool) {
	if len(a) < 2 || len(b) < 2 || !Finite(a...) || !Finite(b...) {
		return Test{}, false
	}
	n, m := float64(len(a)), float64(len(b))
	va, vb := Squares(a)/(n-1)/n, Squares(b)/(m-1)/m
	degrees := (va + vb) * (va + vb) / (va*va/(n-1) + vb*vb/(m-1))
	if math.IsNaN(degrees) { // squares of squares that are too small for a number
		degrees = n + m - 2
	}
	return studentTest(Mean(b)-Mean(a), math.Sqrt(va+vb), degrees, 1e-12*largest(a, b)), true
}

// StudentTest tests whether differences d have mean zero (Student, Biometrika 6, 1908). Shift is
// their mean. ok is false if there are fewer than two differences, or if a difference is not
// finite. If they do not spread, P is 0, or 1 if they are zero.
func StudentTest(d []float64) (t Test, ok bool) {
	if len(d) < 2 || !Finite(d...) {
		return Test{}, false
	}
	n := float64(len(d))
	return studentTest(Mean(d), math.Sqrt(Squares(d)/(n-1)/n), n-1, 1e-12*largest(d)), true
}

// studentTest tests a shift with a standard error; values of at most tie are rounding errors.
func studentTest(shift, size, degrees, tie float64) Test {
	t := Test{Shift: shift}
	if size <= tie {
		t.Range = &Interval{shift, shift}
		if math.Abs(shift) <= tie {
			t.P = 1
		}
		return t
	}
	half := Student(degrees) * size
	t.P = StudentP(shift/size, degrees)
	t.Range = &Interval{shift - half, shift + half}
	return t
}

// Cautious tests whether a and b have the same mean by Permutation and by Welch: P is the larger of
// the two, and the interval holds the two intervals, so P and interval never contradict each other.
// Permutation alone calls groups of the same mean different in up to a quarter of cases if the
// smaller group spreads more; Welch alone relies on normal numbers. There is no interval if one of
// the tests has no interval.
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
