package validity

import (
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/unit"
)

// TestDocumentedMissingClients checks that docs/methods.md has the share of missing clients that
// fails a run.
func TestDocumentedMissingClients(t *testing.T) {
	text := "| " + unit.Percent(missingFail) + " of a step's clients were missing"
	if !strings.Contains(string(require.File(t, "../../../docs/methods.md")), text) {
		t.Errorf("docs/methods.md does not say %q", text)
	}
}
