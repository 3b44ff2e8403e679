package fit

import (
	"math"
	"math/big"
	"testing"

	"weir/internal/require"
)

// seed returns the table that a report of 2017 printed, clients and Gbit/s: four subintervals each
// of batches of 1000 to 5000 jobs.
func seed() []Point {
	var all []Point
	for _, p := range [][2]float64{
		{269.667, 18.4091}, {564.05, 24.4837}, {808.64, 19.2264}, {918.111, 27.3855}, {969.9, 24.9335}, {1000, 24.0919}, {1249.95, 28.2273},
		{1256.95, 28.0392}, {1726, 27.7564}, {1992.36, 29.756}, {2000, 28.1362}, {2244.44, 30.0901}, {2271.9, 29.9971}, {2884.05, 28.9132},
		{2995.68, 27.0332}, {3777.95, 23.9858}, {3999.6, 23.13}, {4617.17, 26.0991}, {4707.32, 22.4782}, {5000, 17.6206},
	} {
		all = append(all, Point{Clients: p[0], Yield: p[1]})
	}
	return all
}

// The report of 2017 states: "the maximum average total throughput was found to be approximately 29
// Gbit/s occurring when there were 2161 active jobs".
func TestPolynomialFindsThePublishedMaximum(t *testing.T) {
	f, err := Of(seed(), Options{})
	require.NoError(t, err)
	m := f.Poly4.Max
	if m == nil {
		t.Fatalf("no maximum: %s", f.Poly4.NoMax)
	}
	near(t, "clients", m.Clients.Value, 2160.5153, 1e-7)
	near(t, "Gbit/s", m.Yield.Value, 29.006478, 1e-7)
	if *m.Clients.Low < 1400 || *m.Clients.High > 3300 || *m.Yield.Low < 27 || *m.Yield.High > 32 {
		t.Errorf("interval %v to %v clients, %v to %v Gbit/s", *m.Clients.Low, *m.Clients.High, *m.Yield.Low, *m.Yield.High)
	}
	if f.Unfit != "" {
		t.Errorf("no model describes the points: %s", f.Detail)
	}
	for i, want := range exactly(seed()) {
		near(t, f.Poly4.Parameters[i].Name, f.Poly4.Parameters[i].Value, want, 1e-11)
	}
}

// exactly solves the normal equations of the fourth-order polynomial in
// rational numbers, without any rounding.
func exactly(points []Point) []float64 {
	var m [terms][terms + 1]*big.Rat
	for i := range m {
		for j := range m[i] {
			m[i][j] = new(big.Rat)
		}
	}
	for _, p := range points {
		x, y := new(big.Rat).SetFloat64(p.Clients), new(big.Rat).SetFloat64(p.Yield)
		var powers [2 * terms]*big.Rat
		powers[0] = big.NewRat(1, 1)
		for k := 1; k < len(powers); k++ {
			powers[k] = new(big.Rat).Mul(powers[k-1], x)
		}
		for i := range m {
			for j := range terms {
				m[i][j].Add(m[i][j], powers[i+j])
			}
			m[i][terms].Add(m[i][terms], new(big.Rat).Mul(powers[i], y))
		}
	}
	for k := range m { // Gauss and Jordan
		for i := range m {
			if i == k {
				continue
			}
			f := new(big.Rat).Quo(m[i][k], m[k][k])
			for j := range m[i] {
				m[i][j].Sub(m[i][j], new(big.Rat).Mul(f, m[k][j]))
			}
		}
	}
	out := make([]float64, terms)
	for k := range out {
		out[k], _ = new(big.Rat).Quo(m[k][terms], m[k][k]).Float64()
	}
	return out
}

// near checks a number to a relative error.
func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within*math.Abs(want)) {
		t.Errorf("%s: %.12g, want %.12g within %g", what, got, want, within)
	}
}
