package all

import (
	"strings"
	"testing"

	"weir/loadtest/scenario"
)

// Each word of a scenario has its system, and no other word has.
func TestOpen(t *testing.T) {
	for _, word := range scenario.Batches() {
		s, err := Open(scenario.Batch(word))
		if err != nil || !strings.EqualFold(s.Name(), word) {
			t.Errorf("%s: %v, %v", word, s, err)
		}
	}
	if _, err := Open("pbs"); err == nil {
		t.Error("pbs was opened")
	}
}
