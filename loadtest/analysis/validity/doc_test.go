package validity

import (
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/unit"
)

// The share of missing clients that fails a run is that of docs/methods.md.
func TestDocumentedMissingClients(t *testing.T) {
	text := "| " + unit.Percent(missingFail) + " of a step's clients were missing"
	if !strings.Contains(string(require.File(t, "../../../docs/methods.md")), text) {
		t.Errorf("docs/methods.md does not say %q", text)
	}
}
