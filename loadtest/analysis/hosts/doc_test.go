package hosts

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/unit"
)

// Intervals of few samples are computed as docs/methods.md describes.
func TestDocumentedSpread(t *testing.T) {
	page := string(require.File(t, "../../../docs/methods.md"))
	for _, text := range []string{"deviation of " + unit.Percent(usualDeviation), fmt.Sprintf("as if %d samples", usualSamples)} {
		if !strings.Contains(page, text) {
			t.Errorf("docs/methods.md does not say %q", text)
		}
	}
}
