package fit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// On curves that only saturate no maximum is claimed: random stations of three
// kinds, measured with noise of several kinds and at 6 to 20 loads.
func TestNoMaximumIsMadeUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	runs, claims, polynomial := 0, 0, 0
	for range 60 {
		for _, noise := range trials() {
			most := 20 + r.IntN(500)
			think, serve := saturating(r, most)
			var points []Point
			for _, n := range ladder(r, 6+r.IntN(15), most) {
				yield, busy := closed(n, think, serve)
				points = append(points, noise.measure(r, n, yield, busy*float64(r.IntN(2))))
			}
			f, err := Of(points, Options{Resamples: 200})
			if err != nil {
				t.Fatal(err)
			}
			sane(t, "saturating", f)
			runs++
			if m := f.Named(f.Best); m != nil && m.Max != nil {
				claims++
			}
			if f.Poly4 != nil && f.Poly4.Max != nil {
				polynomial++
			}
		}
	}
	t.Logf("%d saturating curves: %d maxima claimed by the best model, %d by the polynomial", runs, claims, polynomial)
	if claims*20 > runs || polynomial*20 > runs {
		t.Errorf("of %d saturating curves, %d are given a maximum, and %d one of the polynomial: more than 5%%", runs, claims, polynomial)
	}
}

// saturating draws a system whose throughput never falls: Amdahl's law, a
// limited link, or some servers and clients with think time.
func saturating(r *rand.Rand, most int) (think float64, serve func(int) float64) {
	switch r.IntN(3) {
	case 0:
		return 0, scalable(1, math.Pow(10, -3+3*r.Float64()), 0)
	case 1:
		return 0, servers(1 + r.IntN(most))
	}
	m := 1 + r.IntN(20)
	return float64(most) / float64(m) * r.Float64(), servers(m)
}

// On curves by the Universal Scalability Law that clearly turn in the tested
// range, the maximum is found, and its interval has the true one in it.
func TestTheMaximumIsInItsInterval(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, noise := range []trial{{0, 0.005, 0}, {0, 0.02, 0}, {0.05, 0, 20}, {0.02, 0.02, 20}} {
		runs, found, there, high := 0, 0, 0, 0
		for range 100 {
			most := 50 + r.IntN(500)
			peak := float64(most) * (0.2 + 0.25*r.Float64())
			sigma := 2 * r.Float64() / peak
			kappa := (1 - sigma) / peak / peak
			serve := scalable(1, sigma, kappa)
			var points []Point
			for _, n := range ladder(r, 10+r.IntN(11), most) {
				points = append(points, noise.measure(r, n, serve(n), 0))
			}
			f, err := Of(points, Options{Resamples: 200})
			if err != nil {
				t.Fatal(err)
			}
			runs++
			m := f.USL.Max
			if m == nil {
				continue
			}
			found++
			if *m.Clients.Low <= peak && peak <= *m.Clients.High {
				there++
			}
			if top := peak / (1 + sigma*(peak-1) + kappa*peak*(peak-1)); *m.Yield.Low <= top && top <= *m.Yield.High {
				high++
			}
		}
		t.Logf("noise %v: %d curves, %d maxima found, in their interval %d, height in its %d", noise, runs, found, there, high)
		if found < runs*9/10 || there < found*88/100 || high < found*85/100 {
			t.Errorf("noise %v: of %d curves %d maxima are found, %d of them in their interval, %d with the right height", noise, runs, found, there, high)
		}
	}
}
