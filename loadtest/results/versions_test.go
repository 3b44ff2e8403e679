package results

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/scenario"
)

// The specification of the formats contains their versions.
func TestDocumentedVersions(t *testing.T) {
	page := require.File(t, "../../docs/results.md")
	for what, version := range map[string]int{"version of the run directory's format": FormatVersion,
		"version of the plan's format": scenario.PlanVersion} {
		if want := fmt.Sprintf("%s; this page describes %d |", what, version); !strings.Contains(string(page), want) {
			t.Errorf("docs/results.md does not say %q", want)
		}
	}
}
