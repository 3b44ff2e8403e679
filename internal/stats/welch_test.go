package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/internal/tier"
)

// Student's sleep data (Biometrika 6, 1908) by R's t.test: t = -1.8608, 17.776 degrees of
// freedom, p = 0.07939, interval -3.3655 to 0.2055 of the first mean less the second.
func TestWelchSleep(t *testing.T) {
	a := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0, 2}
	b := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	got, ok := WelchTest(a, b)
	if !ok || math.Abs(got.P-0.07939) > 1e-5 || math.Abs(got.Range.Low+0.2054832) > 1e-5 || math.Abs(got.Range.High-3.3654832) > 1e-5 {
		t.Errorf("%+v %+v", got, got.Range)
	}
}

// The same data as pairs, by R: t = 4.0621, 9 degrees of freedom, p = 0.002833, interval 0.70 to 2.46.
func TestStudentSleep(t *testing.T) {
	got, ok := StudentTest([]float64{1.2, 2.4, 1.3, 1.3, 0, 1, 1.8, 0.8, 4.6, 1.4})
	if !ok || math.Abs(got.P-0.002833) > 1e-6 || math.Abs(got.Range.Low-0.7001142) > 1e-5 || math.Abs(got.Range.High-2.4598858) > 1e-5 {
		t.Errorf("%+v %+v", got, got.Range)
	}
	if _, ok := StudentTest([]float64{1}); ok {
		t.Error("one difference does not spread")
	}
	if got, _ := StudentTest([]float64{0, 0}); got.P != 1 {
		t.Errorf("%+v", got)
	}
}

func TestWelchOfLittle(t *testing.T) {
	if _, ok := WelchTest([]float64{1}, []float64{2, 3}); ok {
		t.Error("one number has no spread")
	}
	if got, ok := Cautious([]float64{1}, make([]float64, 60)); !ok || got.Range != nil {
		t.Errorf("one number against 60: %+v", got)
	}
	if _, ok := WelchTest([]float64{1, math.NaN()}, []float64{2, 3}); ok {
		t.Error("NaN has no mean")
	}
	same := []float64{5, 5, 5, 5}
	if got, _ := WelchTest(same, same); got.P != 1 || got.Range.Low != 0 {
		t.Errorf("equal: %+v", got)
	}
	if got, _ := Cautious(same, []float64{6, 6, 6, 6}); got.P > 0.05 || got.Range.Low != 1 || got.Range.High != 1 {
		t.Errorf("without spread: %+v %+v", got, got.Range)
	}
}

// Groups with the same mean are reported as different in at most about 5% of cases, even if the
// smaller group has a much larger spread (Permutation alone: up to 28%). p and interval agree.
func TestCautiousKeepsItsLevel(t *testing.T) {
	tier.Slow(t, "repeats an experiment many times")
	r := rand.New(rand.NewPCG(5, 5))
	const times = 1500
	for _, c := range []struct {
		n, m int
		a, b float64 // deviations
	}{{4, 4, 1, 1}, {5, 5, 1, 10}, {9, 9, 1, 10}, {4, 9, 1, 10}, {4, 9, 10, 1}, {4, 16, 10, 1}, {6, 12, 3, 1}, {9, 9, 1, 1}} {
		called := 0
		for range times {
			a, b := make([]float64, c.n), make([]float64, c.m)
			for i := range a {
				a[i] = c.a * r.NormFloat64()
			}
			for i := range b {
				b[i] = c.b * r.NormFloat64()
			}
			got, ok := Cautious(a, b)
			if !ok || got.Range == nil {
				t.Fatalf("%+v: no test", c)
			}
			if out := got.Range.Low > 0 || got.Range.High < 0; out != (got.P <= 0.05) && math.Abs(got.P-0.05) > 1e-9 {
				t.Fatalf("%+v: p %v beside %+v", c, got.P, got.Range)
			}
			if got.P <= 0.05 {
				called++
			}
		}
		if share := float64(called) / times; share > 0.07 {
			t.Errorf("%+v: called different in %.1f%%", c, 100*share)
		}
	}
}
