package steps

import (
	"math"
	"testing"

	"weir/link"
	"weir/loadtest/scenario"
)

// A plan with a huge number of clients does not block the analysis.
func TestSitesOfAHugeStep(t *testing.T) {
	d := &Run{Plan: &scenario.Plan{Links: scenario.Links{{Name: "far", Spec: link.Spec{}}}}}
	sum := &Total{sites: map[string]*Total{"far": {}}}
	if got := d.sites(&Working{Figures: &Figures{Clients: math.MaxInt}}, sum); len(got) != 1 || got[0].Clients != 0 {
		t.Errorf("%+v", got)
	}
}
