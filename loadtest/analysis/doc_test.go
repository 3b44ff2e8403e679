package analysis

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"weir/loadtest/analysis/links"
	"weir/loadtest/results/resultstest/keys"
)

func TestDocumentedKeys(t *testing.T) {
	keys.Compare(t, "../../docs/results.md", "findings.json", Findings{}, Outage{}, Validity{}, Check{}, Step{}, Quantiles{}, Phase{}, Part{},
		Share{}, HostFigure{}, ServerFigure{}, LinkFigure{}, WayFigure{},
		Knee{}, Optimum{}, Operating{}, Collapse{}, Hysteresis{}, Boundary{}, Fits{}, Fit{}, Estimate{}, Maximum{}, ResourceUsage{}, Bottleneck{},
		Subinterval{}, Window{}, SteadyPart{}, JobCounts{}, SiteFigure{}, DiskFigure{}, WorkerFigure{}, PartFits{}, TransferFigures{},
		TransferCase{}, TransferEnd{}, TransferFile{}, Balance{}, Backend{}, BackendLimit{}, BackendFigure{}, StepBalance{},
		links.Challenge{}, links.Link{}, links.Phase{}, links.Failure{}, links.Share{}, links.Episode{}, links.Site{}, links.Side{},
		links.Total{}, links.Control{})
}

// TestDocumentedVersion checks that the page that specifies the format has its version.
func TestDocumentedVersion(t *testing.T) {
	page, err := os.ReadFile("../../docs/results.md")
	if want := fmt.Sprintf("of findings.json; this page describes %d |", FindingsVersion); err != nil || !strings.Contains(string(page),
		want) {
		t.Errorf("docs/results.md does not say %q: %v", want, err)
	}
}
