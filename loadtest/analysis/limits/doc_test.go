package limits

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/unit"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/shape"
)

// TestDocumentedThresholds checks that docs/methods.md has the thresholds of the code.
func TestDocumentedThresholds(t *testing.T) {
	b := require.File(t, "../../../docs/methods.md")
	_, section, _ := strings.Cut(string(b), "## What limits the curve")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := 0
	for _, line := range strings.Split(section, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || !strings.Contains(cells[1], "`") {
			continue
		}
		for _, name := range strings.Split(cells[1], ",") {
			want := boundOf(strings.Trim(name, " `"))
			switch strings.Trim(name, " `") {
			case hosts.ResourceThreads:
				want = bound{reached: busyThreads}
			case hosts.ResourceGenerator:
				want = bound{generatorFail, generatorWarn, generatorWarn}
			case hosts.ResourceIOWait:
				want = bound{}
			case hosts.ResourceMemory:
				want = bound{1 - leastMemory, 1 - 2*leastMemory, 1 - 2*leastMemory}
			}
			got := [3]string{strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3]), strings.TrimSpace(cells[4])}
			text := [3]string{unit.Percent(want.reached), unit.Percent(want.holds), unit.Percent(want.clear)}
			if want.holds == 0 {
				text[1], text[2] = "", ""
			}
			if want.reached == 0 {
				text[0] = ""
			}
			if got != text {
				t.Errorf("%s: %q, want %q", name, got, text)
			}
			rows++
		}
	}
	if rows != 12 {
		t.Errorf("%d resources have thresholds on the page, want 12", rows)
	}
	for _, text := range []string{
		"+-" + unit.Percent(noInterval),
		fmt.Sprintf("at most %d times as large", efficiency),
		fmt.Sprintf("at least %v requests", leastQueue), fmt.Sprintf("queue %v times as long as one step before, or %d", queueGrows, deepQueue),
		fmt.Sprintf("(%v on average)", waitingJobs), "more than " + unit.Percent(swapGrew) + " of it went to swap", "below " +
			unit.Percent(fallen) + " of a lighter one's",
		"(and " + unit.Percent(growthSlip) + " for noise)", "that gives " + unit.Percent(shape.NearBest) + " of the best one", "with " +
			unit.Percent(roomSlip-1) + " for noise",
		"at least " + unit.Percent(proportional) + " of what it brings", "used " + unit.Percent(othersWarn) + " of a CPU or more", "less than " +
			unit.Percent(leastOwn) + " of it",
	} {
		if !strings.Contains(string(b), text) {
			t.Errorf("docs/methods.md does not say %q", text)
		}
	}
}
