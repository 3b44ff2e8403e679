package report

import (
	"strings"
	"testing"

	"weir/loadtest/analysis"
)

// A population that has no figures of a step, since it moved nothing while load was measured, has no point there.
func TestPopulationWithoutAStep(t *testing.T) {
	step := func(number, clients int, low, high float64) analysis.Step {
		return analysis.Step{Step: number, Clients: clients, Throughput: (low + high) / 2, ThroughputLow: &low, ThroughputHigh: &high}
	}
	f := &analysis.Findings{Curve: []analysis.Step{step(1, 300, 5e9, 6e9), step(2, 1200, 7e9, 8e9)}}
	f.Populations = []analysis.PopulationCurve{
		{Name: "readers", Curve: []analysis.Step{step(1, 150, 2e9, 3e9), step(2, 600, 7e9, 8e9)}},
		{Name: "writers", Curve: []analysis.Step{step(2, 600, 3e9, 4e9)}},
	}
	c := populationChart(f)
	if c == nil || len(c.Lines) != 2 || len(c.Lines[0].Points) != 2 || len(c.Lines[1].Points) != 1 {
		t.Fatalf("%+v", c)
	}
	if p := c.Lines[1].Points[0]; p.X != 1200 || p.Low == nil || *p.Low != 3e9 || p.High == nil || *p.High != 4e9 {
		t.Errorf("the point of the writers is %+v", p)
	}
	if !strings.Contains(c.Alt(), "writers") {
		t.Errorf("%q", c.Alt())
	}
}
