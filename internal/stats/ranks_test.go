package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Critical values of U, two-sided 5%: the largest U that is significant (Mann and Whitney's tables
// as in Siegel, Nonparametric Statistics, 1956, table K); -1 if no U is significant.
func TestMannWhitneyCriticalValues(t *testing.T) {
	for _, c := range []struct{ n, m, u int }{
		{3, 3, -1}, {3, 4, -1}, {3, 5, 0}, {4, 4, 0}, {4, 5, 1}, {5, 5, 2}, {5, 6, 3}, {6, 6, 5}, {7, 7, 8}, {8, 8, 13},
		{9, 9, 17}, {9, 10, 20}, {10, 10, 23}, {12, 12, 37}, {15, 15, 64}, {20, 20, 127},
	} {
		if got := tailCount(c.n, c.m) - 1; got != c.u {
			t.Errorf("%d against %d: critical U %d, want %d", c.n, c.m, got, c.u)
		}
		for u := max(c.u, 0); u <= c.u+1; u++ {
			a, b := withU(c.n, c.m, u)
			if test, ok := MannWhitney(a, b); !ok || (test.P <= 0.05) != (u <= c.u) {
				t.Errorf("%d against %d, U = %d: p = %v", c.n, c.m, u, test.P)
			}
		}
	}
}

// withU returns two groups without ties of which u pairs have a above b.
func withU(n, m, u int) (a, b []float64) {
	for i := range m {
		b = append(b, float64(n+m)+float64(i))
	}
	for i := range n {
		a = append(a, float64(i))
	}
	for i := n - 1; u > 0; i-- { // lift a's numbers over as many of b's as are left
		over := min(u, m)
		a[i] = float64(n+m) + float64(over) - 0.5 + float64(i)/float64(4*n)
		u -= over
	}
	return a, b
}

// Hollander and Wolfe (1973), page 69: permeability of membranes at term and
// earlier; W = 35, one-sided p = 0.1272 (R's page of wilcox.test quotes it).
func TestMannWhitneyPermeability(t *testing.T) {
	term := []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	early := []float64{1.15, 0.88, 0.90, 0.74, 1.21}
	test, ok := MannWhitney(early, term)
	if !ok || !test.Exact {
		t.Fatal(test, ok)
	}
	near(t, "p", test.P, 2*0.1272, 0.0001)
	near(t, "shift", test.Shift, 0.305, 1e-9)
	a, _ := MannWhitney(term, early)
	near(t, "the other way round", a.Shift, -test.Shift, 1e-12)
	near(t, "same p", a.P, test.P, 1e-12)
}

// The example with ties on R's pages of nonparametric estimates (Hollander,
// Wolfe and Chicken): exact p's are counted here by hand, all C(18,9) of them.
func TestMannWhitneyWithTies(t *testing.T) {
	x := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	y := []float64{0.878, 0.647, 0.598, 2.050, 1.060, 1.290, 1.060, 3.140, 1.290}
	test, _ := MannWhitney(y, x)
	near(t, "shift", test.Shift, 0.56, 0.001)
	ranks := doubledRanks(slices.Concat(y, x))
	sum := func(set uint) (s, n int) {
		for i, r := range ranks {
			if set>>i&1 == 1 {
				s, n = s+r, n+1
			}
		}
		return s, n
	}
	actual, _ := sum(0x1ff << 9)
	far, all := 0, 0
	for set := range uint(1) << 18 {
		if s, n := sum(set); n == 9 {
			all++
			if abs(s-171) >= abs(actual-171) {
				far++
			}
		}
	}
	near(t, "p", test.P, float64(far)/float64(all), 1e-12)
	equal, _ := MannWhitney([]float64{1, 1, 1}, []float64{2, 2, 2})
	near(t, "3 equal against 3 equal", equal.P, 0.1, 1e-12)
	if equal.Range != nil {
		t.Error("3 against 3 have an interval:", *equal.Range)
	}
	same, _ := MannWhitney([]float64{1, 1, 1, 1}, []float64{1, 1, 1, 1})
	near(t, "all equal", same.P, 1, 0)
}

// The normal approximation agrees with the exact values where the two are available.
func TestNormalApproximation(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	for range 200 {
		x := make([]float64, 60)
		for i := range x {
			x[i] = math.Round(20 * r.NormFloat64()) // ties
			if i >= 30 {
				x[i] += float64(r.IntN(15))
			}
		}
		ranks, sum := doubledRanks(x), 0
		for _, v := range ranks[30:] {
			sum += v
		}
		near(t, "rank sum", rankSumNormal(ranks, 30, 30, sum), rankSumP(ranks, 30, sum), 0.003)
		near(t, "signed ranks", signedP(ranks, sum, false), signedP(ranks, sum, true), 0.003)
	}
	big, _ := MannWhitney(make([]float64, 100), slices.Repeat([]float64{1}, 100))
	if big.P > 1e-20 || big.Exact {
		t.Errorf("100 against 100 quite different: %+v", big)
	}
}

// Wilcoxon's critical values, two-sided 5% (Siegel, table G, for n = 8 as
// corrected in later tables), and Hollander and Wolfe's depression data (R's page of wilcox.test):
// V = 40, one-sided p = 0.01953.
func TestSignedRank(t *testing.T) {
	for n, want := range map[int]int{5: -1, 6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 12: 13, 15: 25, 20: 52, 25: 89} {
		if got := signedTail(n) - 1; got != want {
			t.Errorf("n = %d: critical value %d, want %d", n, got, want)
		}
	}
	first := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	second := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	var d []float64
	for i := range first {
		d = append(d, first[i]-second[i])
	}
	test, ok := SignedRank(d)
	if !ok || !test.Exact {
		t.Fatal(test, ok)
	}
	near(t, "p", test.P, 2*0.01953, 0.0001)
	near(t, "shift", test.Shift, 0.46, 0.001) // Hollander and Wolfe, 3.2
	if test.Range == nil || !(test.Range.Low > 0) {
		t.Error("interval", test.Range)
	}
	zero, _ := SignedRank([]float64{0, 0, 0})
	near(t, "no differences", zero.P, 1, 0)
}

// The intervals contain the true shift in at least 95% of the cases, and exclude exactly the shifts
// that the tests refuse.
func TestIntervalsAgreeWithTests(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	const runs = 2000
	held := map[string]int{}
	for range runs {
		n, m := 4+r.IntN(5), 4+r.IntN(5)
		a, b := normal(r, n), normal(r, m)
		d := normal(r, 6+r.IntN(4))
		for name, test := range map[string]func() (Test, bool){
			"rank sum":     func() (Test, bool) { return MannWhitney(a, b) },
			"signed ranks": func() (Test, bool) { return SignedRank(d) },
			"permutation":  func() (Test, bool) { return Permutation(a, b) },
			"signs":        func() (Test, bool) { return Signs(d) },
		} {
			got, ok := test()
			if !ok || got.Range == nil {
				t.Fatal(name, got)
			}
			if got.Range.Contains(0) {
				held[name]++
			}
			if got.Range.Contains(0) != (got.P > 0.05) {
				t.Fatalf("%s: p = %v, but the interval is %v", name, got.P, *got.Range)
			}
		}
	}
	for name, n := range held {
		if share := float64(n) / runs; share < 0.945 || share > 0.985 {
			t.Errorf("%s: the interval held the truth in %.1f%%", name, 100*share)
		}
	}
}

func normal(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}
