package hosts

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/unit"
)

// The code computes intervals of few samples as docs/methods.md describes.
func TestDocumentedSpread(t *testing.T) {
	page := string(require.File(t, "../../../docs/methods.md"))
	for _, text := range []string{"deviation of " + unit.Percent(usualDeviation), fmt.Sprintf("as if %d samples", usualSamples)} {
		if !strings.Contains(page, text) {
			t.Errorf("docs/methods.md does not say %q", text)
		}
	}
}
