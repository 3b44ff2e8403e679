package analysis

import (
	"testing"

	"weir/results/resultstest/keys"
)

func TestDocumentedKeys(t *testing.T) {
	keys.Compare(t, "../docs/results.md", "findings.json", Findings{}, Validity{}, Check{}, Step{}, Quantiles{}, Phase{}, Part{}, Share{}, HostFigure{}, ServerFigure{},
		Knee{}, Optimum{}, Operating{}, Collapse{}, Hysteresis{}, Boundary{}, Fits{}, Fit{}, Estimate{}, Maximum{}, Use{}, Bottleneck{}, Subinterval{}, Window{}, SteadyPart{})
}
