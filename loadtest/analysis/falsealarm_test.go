package analysis

import (
	"math/rand/v2"
	"testing"

	"weir/loadtest/results/resultstest"
)

// healthy returns a run of a service without a fault, at any of the loads, lengths and levels of
// noise of typical measurements.
func healthy(r *rand.Rand, seed uint64) resultstest.Service {
	s := resultstest.Typical()
	s.Seed, s.Duration, s.Noise = seed, 5+r.IntN(16), []float64{0.01, 0.05, 0.1, 0.2}[r.IntN(4)]
	s.Lambda = []float64{20, 60}[r.IntN(2)]
	s.Clients = [][]int{{4}, {1, 8}, {2, 4, 8}, {1, 2, 4, 6, 8}}[r.IntN(4)]
	return s
}

// TestHealthyRunsAreValid checks that at most one healthy run in a hundred is suspect, or invalid,
// by chance.
func TestHealthyRunsAreValid(t *testing.T) {
	runs, allowed, alarms := 200, 2, map[string]int{}
	if testing.Short() {
		runs = 20
	}
	r := rand.New(rand.NewPCG(15, 7))
	wrong := 0
	for i := range runs {
		s := healthy(r, uint64(i))
		f := of(t, s)
		if f.Validity.Status == Valid {
			continue
		}
		wrong++
		for _, c := range f.Validity.Checks {
			if c.Status == Warn || c.Status == Fail {
				alarms[c.Name]++
				t.Logf("hold %d s, noise %g, %v: %s: %s", s.Duration, s.Noise, s.Clients, c.Name, c.Detail)
			}
		}
	}
	if wrong > allowed {
		t.Errorf("%d of %d healthy runs are not valid: %v", wrong, runs, alarms)
	}
	t.Logf("%d false alarms in %d healthy runs", wrong, runs)
}
