package limits

import (
	"testing"

	"weir/loadtest/analysis/steps"
)

// TestOverloadIsNotTheGeneratorsFault checks that arrivals that wait because all clients wait for
// the service are not attributed to the generator.
func TestOverloadIsNotTheGeneratorsFault(t *testing.T) {
	late, cpu := 1.2, 0.1
	s := &steps.Working{Figures: &steps.Figures{Rate: 20000, Clients: 1000, ActiveClients: 999.9, Done: 16000, Missed: 5000, LateP99: &late,
		ClientCPU: &cpu}, TimedStarts: 16000}
	if status, reasons := GeneratorFacts(s); status != GeneratorNear || len(reasons) != 1 || reasons[0].Code != "limit.generator.busy" {
		t.Errorf("%d, %v", status, reasons)
	}
	s.ActiveClients = 500
	if status, _ := JudgeGenerator(s); status != GeneratorFull {
		t.Errorf("%d with idle clients, want full", status)
	}
	if at := steps.CurveOf(nil, "", "open", false).At(s); at != "20000 arrivals/s" {
		t.Error(at)
	}
}
