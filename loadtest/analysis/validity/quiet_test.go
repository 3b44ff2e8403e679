package validity

import (
	"testing"

	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
)

// TestOthersBesideAFolderAreNoQuiet checks that, with clients that read a folder, every program
// that the hosts do not list counts as another program.
func TestOthersBesideAFolderAreNoQuiet(t *testing.T) {
	for _, own := range []float64{1, 0.04} {
		curve := steps.CurveOf(nil, steps.Rate, "closed", false)
		for i, n := range []int{1, 2, 4, 8} {
			curve.Steps = append(curve.Steps, &steps.Working{Figures: &steps.Figures{Step: i + 1, Clients: n, ActiveClients: float64(n),
				Done: 100, Operations: 50},
				Machines: []hosts.Host{{HostFigure: hosts.HostFigure{Host: "here", Role: "both", Cores: 4, CPU: new(1.0), ClientCores: &own,
					Contended: new(1 - own/4)}, UserSystem: new(1.0), Local: true, Saturated: 1}}})
		}
		if c := checkQuiet(curve); c.Status != Warn {
			t.Errorf("clients use %.2f cores: %+v", own, c)
		}
	}
}
