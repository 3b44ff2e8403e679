package results

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/measure"
	"weir/scenario"
)

// A run with a worker that was recorded in format 2, in which the seconds that a worker reported had another key.
func TestWorkersOfFormat2(t *testing.T) {
	run := open(t, "testdata/format2")
	if run.About.Format != 2 {
		t.Fatalf("format %d", run.About.Format)
	}
	for e, err := range run.Events() {
		require.NoError(t, err)
		if w := e.Worker; w != nil && w.State == measure.Left {
			if w.Name != "1" || w.Clients != 2 || w.Seconds != 3 {
				t.Errorf("%+v", w)
			}
			return
		}
	}
	t.Error("no worker left")
}

// The page that specifies the formats names their versions.
func TestDocumentedVersions(t *testing.T) {
	page := require.File(t, "../docs/results.md")
	for what, version := range map[string]int{"version of the run directory's format": FormatVersion,
		"version of the plan's format": scenario.PlanVersion} {
		if want := fmt.Sprintf("%s; this page describes %d |", what, version); !strings.Contains(string(page), want) {
			t.Errorf("docs/results.md does not say %q", want)
		}
	}
}
