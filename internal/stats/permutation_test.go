package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Darwin's maize, as Fisher (The Design of Experiments, section 21) tests it: of
// 32,768 choices of signs 863 give a sum of 314 or more.
func TestSignsDarwin(t *testing.T) {
	d := []float64{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48}
	test, ok := Signs(d)
	if !ok || !test.Exact {
		t.Fatal(test, ok)
	}
	near(t, "p", test.P, 2*863.0/32768, 1e-12)
	near(t, "mean", test.Shift, 314.0/15, 1e-12)
}

// The mice of Efron and Tibshirani (An Introduction to the Bootstrap, table 2.1
// and section 15.2): 1000 drawn permutations gave 0.132, one-sided; the exact
// share is counted here from the definition.
func TestPermutationMice(t *testing.T) {
	control := []float64{52, 104, 146, 10, 51, 30, 40, 27, 46}
	treated := []float64{94, 197, 16, 38, 99, 141, 23}
	test, ok := Permutation(control, treated)
	if !ok || !test.Exact {
		t.Fatal(test, ok)
	}
	near(t, "shift", test.Shift, 30.63, 0.01)
	near(t, "p", test.P, 2*0.132, 2*2*0.011)
	all := slices.Concat(control, treated)
	up, n := 0, 0
	for set := range uint(1) << 16 {
		sum, k := 0.0, 0
		for i, v := range all {
			if set>>i&1 == 1 {
				sum, k = sum+v, k+1
			}
		}
		if k == 7 {
			n++
			if sum >= 608 { // the sum of the treated
				up++
			}
		}
	}
	near(t, "p by definition", test.P, 2*float64(up)/float64(n), 1e-12)
}

// The interval equals the interval by listing all assignments: a shift of b is refused if at most
// 2.5% of them, including the actual assignment, have a difference of means as far to its side.
func TestPermutationIntervalByListing(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	for range 200 {
		a, b := normal(r, 3+r.IntN(4)), normal(r, 5+r.IntN(2))
		got, ok := Permutation(a, b)
		if !ok || got.Range == nil {
			t.Fatal(got)
		}
		share := func(shift float64) (up, down float64) {
			all := slices.Clone(a)
			for _, v := range b {
				all = append(all, v-shift)
			}
			actual, n := Mean(all[len(a):])*float64(len(b)), 0.0
			for set := range uint(1) << len(all) {
				sum, k := 0.0, 0
				for i, v := range all {
					if set>>i&1 == 1 {
						sum, k = sum+v, k+1
					}
				}
				if k == len(b) {
					n++
					if sum >= actual-1e-9 {
						up++
					}
					if sum <= actual+1e-9 {
						down++
					}
				}
			}
			return up / n, down / n
		}
		const step = 1e-6
		if below, _ := share(got.Range.Low - step); below > 0.025 {
			t.Fatalf("%v is not refused: %v", got.Range.Low-step, below)
		}
		if inside, _ := share(got.Range.Low + step); inside <= 0.025 {
			t.Fatalf("%v is refused: %v", got.Range.Low+step, inside)
		}
		if _, above := share(got.Range.High + step); above > 0.025 {
			t.Fatalf("%v is not refused: %v", got.Range.High+step, above)
		}
		if _, inside := share(got.Range.High - step); inside <= 0.025 {
			t.Fatalf("%v is refused: %v", got.Range.High-step, inside)
		}
	}
}

// Drawn permutations agree with all of them, and are the same each time.
func TestDrawnPermutations(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 5 {
		a, b := normal(r, 9), normal(r, 9)
		for i := range b {
			b[i]++
		}
		exact, _ := Permutation(a, b)
		var guess Test
		guess.conclude(drawExchanges(a, b), largest(a, b))
		near(t, "p", guess.P, exact.P, 0.02)
		near(t, "low", guess.Range.Low, exact.Range.Low, 0.06)
		near(t, "high", guess.Range.High, exact.Range.High, 0.06)
		d := normal(r, 12)
		signs, _ := Signs(d)
		guess.conclude(drawnMeans(d), largest(d))
		near(t, "p of signs", guess.P, signs.P, 0.02)
	}
	a, b := normal(r, 30), normal(r, 25)
	one, _ := Permutation(a, b)
	two, _ := Permutation(a, b)
	if one.P != two.P || *one.Range != *two.Range || one.Exact {
		t.Error("not the same twice:", one, two)
	}
	long, _ := Signs(normal(r, 40))
	if long.Exact || long.P <= 0 {
		t.Error(long)
	}
}

func TestNth(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 500 {
		x := make([]float64, 1+r.IntN(40))
		for i := range x {
			x[i] = float64(r.IntN(12))
		}
		sorted := slices.Sorted(slices.Values(x))
		k := r.IntN(len(x))
		if got := nth(x, k); got != sorted[k] {
			t.Fatalf("%v at %d of %v", got, k, sorted)
		}
	}
}

// No function panics or claims a result on invalid samples.
func TestHostileNumbers(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, x := range [][]float64{nil, {}, {1}, {nan}, {inf, 1}, {0, 0, 0, 0, 0, 0}, {-1, 1e308, -1e308, 1e308, 1e308, 1e308},
		{5e-324, 0, 0, 0, 0, 0, 0}, {nan, nan, nan, nan, nan, nan, nan}} {
		for _, y := range [][]float64{nil, {2}, {inf}, {3, 3, 3, 3, 3}} {
			for name, test := range map[string]func(a, b []float64) (Test, bool){
				"rank sum": MannWhitney, "permutation": Permutation,
				"signs":        func(a, _ []float64) (Test, bool) { return Signs(a) },
				"signed ranks": func(a, _ []float64) (Test, bool) { return SignedRank(a) },
			} {
				if got, ok := test(x, y); ok && !(got.P >= 0 && got.P <= 1) {
					t.Errorf("%s of %v and %v: %+v", name, x, y, got)
				}
			}
		}
		MSER(slices.Repeat(x, 20), 5)
		MSER(x, 0)
		if tr, ok := Slope(points(x)); ok && !(tr.P >= 0 && tr.P <= 1) {
			t.Errorf("slope of %v: %+v", x, tr)
		}
		BatchInterval(Batch(points(x), 0, -1))
		MeanInterval(x)
		Quantile(x, nan)
		Holm(x)
		Lag1(x)
	}
}

func BenchmarkPermutation9(b *testing.B) {
	r := rand.New(rand.NewPCG(9, 9))
	x, y := normal(r, 9), normal(r, 9)
	for b.Loop() {
		Permutation(x, y)
	}
}

func BenchmarkMannWhitney9(b *testing.B) {
	r := rand.New(rand.NewPCG(9, 9))
	x, y := normal(r, 9), normal(r, 9)
	for b.Loop() {
		MannWhitney(x, y)
	}
}
