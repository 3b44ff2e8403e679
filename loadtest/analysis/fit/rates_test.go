package fit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
)

// On curves that only saturate no maximum is reported: random stations of three kinds, measured
// with noise of several kinds and at 6 to 20 loads.
func TestNoMaximumIsMadeUp(t *testing.T) {
	tier.Slow(t, "fits many curves")
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
			require.NoError(t, err)
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
	documented(t, fmt.Sprintf("by the best model | %d | %d |", runs, claims))
	documented(t, fmt.Sprintf("by the polynomial | %d | %d |", runs, polynomial))
	if claims*20 > runs || polynomial*20 > runs {
		t.Errorf("of %d saturating curves, %d are given a maximum, and %d one of the polynomial: more than 5%%", runs, claims, polynomial)
	}
}

// documented checks that docs/methods.md contains the results of a test.
func documented(t *testing.T, text string) {
	t.Helper()
	page := require.File(t, "../../../docs/methods.md")
	// Other processors round sums differently, which moves a few resamples.
	if !strings.Contains(strings.ReplaceAll(string(page), "\n", " "), text) && runtime.GOARCH == "amd64" {
		t.Errorf("docs/methods.md does not say %q", text)
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

// On curves by the Universal Scalability Law that clearly turn in the tested range, the maximum is
// found, and its interval contains the true maximum.
func TestTheMaximumIsInItsInterval(t *testing.T) {
	tier.Slow(t, "fits many curves")
	r := rand.New(rand.NewPCG(3, 4))
	var all tally
	for _, noise := range []trial{{0, 0.005, 0}, {0, 0.02, 0}, {0.05, 0, 20}, {0.02, 0.02, 20}} {
		a := turning(t, r, noise, 10, 20)
		t.Logf("noise %v: %+v", noise, a)
		all = tally{all.runs + a.runs, all.found + a.found, all.there + a.there, all.high + a.high}
	}
	if all.found < all.runs*9/10 || all.there < all.found*92/100 || all.high < all.found*92/100 {
		t.Errorf("of all: %+v", all)
	}
	documented(t, fmt.Sprintf("10 to 20 loads | %d | %d |", all.runs, all.found))
	documented(t, fmt.Sprintf("of these, in the reported interval | %d | %d |", all.found, all.there))
	few := turning(t, r, trial{0, 0.005, 0}, 7, 7)
	if few.there < few.found*85/100 {
		t.Errorf("of few points: %+v", few)
	}
	documented(t, fmt.Sprintf("7 loads, spreads not known | %d | %d |", few.found, few.there))
}

// A tally counts curves, maxima found, and found maxima within their intervals.
type tally struct{ runs, found, there, high int }

func turning(t *testing.T, r *rand.Rand, noise trial, least, most int) (a tally) {
	for range 100 {
		heaviest := 50 + r.IntN(500)
		peak := float64(heaviest) * (0.2 + 0.25*r.Float64())
		sigma := 2 * r.Float64() / peak
		kappa := (1 - sigma) / peak / peak
		var points []Point
		serve := scalable(1, sigma, kappa)
		for _, n := range ladder(r, least+r.IntN(most-least+1), heaviest) {
			points = append(points, noise.measure(r, n, serve(n), 0))
		}
		a.runs++
		m := must(t, points, Options{Resamples: 200}).USL.Max
		if m == nil {
			continue
		}
		a.found++
		if *m.Clients.Low <= peak && peak <= *m.Clients.High {
			a.there++
		}
		if top := peak / (1 + sigma*(peak-1) + kappa*peak*(peak-1)); *m.Yield.Low <= top && top <= *m.Yield.High {
			a.high++
		}
	}
	return a
}

// If a plateau ends and the curve falls, the decline model finds the plateau's height; the other
// models, which round it off, would not.
func TestThePlateausHeight(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	runs, found, high, meets := 0, 0, 0, 0
	for range 150 {
		most := 50 + r.IntN(500)
		from := float64(most) * (0.1 + 0.3*r.Float64())
		to := from + (float64(most)-from)*(0.1+0.4*r.Float64())
		left := 0.3 + 0.5*r.Float64()
		var points []Point
		for _, n := range ladder(r, 14, most) {
			x := float64(n)
			yield := min(x, from) * (1 - (1-left)*max(0, x-to)/(float64(most)-to))
			points = append(points, trial{0.03, 0.02, 20}.measure(r, n, yield, 0))
		}
		f := must(t, points, Options{Resamples: 200})
		runs++
		m := f.Named(f.Best).Max
		if m == nil {
			continue
		}
		found++
		if math.Abs(m.Yield.Value/from-1) < 0.05 {
			high++
		}
		if *m.Clients.High >= from && *m.Clients.Low <= to {
			meets++
		}
	}
	documented(t, fmt.Sprintf("within 5%% | %d | %d |", runs, high))
	if found < runs*95/100 || high < found*95/100 || meets < found*95/100 {
		t.Errorf("of %d: %d found, %d high, %d meet", runs, found, high, meets)
	}
}
