package compare

import (
	"testing"

	"weir/loadtest/results/resultstest/keys"
)

func TestDocumentedKeys(t *testing.T) {
	keys.Compare(t, "../../../docs/results.md", "Comparison", Comparison{}, Condition{}, Group{}, Run{}, Pair{}, StepShift{}, Shift{},
		Effects{}, Effect{}, Setting{})
}
