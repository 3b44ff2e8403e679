package analysis

import (
	"slices"
	"testing"

	"weir/loadtest/analysis/fact"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// TestLeftOutIsNoted checks that seconds that samples leave out cause a note, and no other effect.
func TestLeftOutIsNoted(t *testing.T) {
	lost := 0
	s := resultstest.Typical()
	s.Sample = func(m *monitor.Sample) {
		if m.Role == "server" && m.Step > 0 && lost < 3 {
			lost++
			m.Nets, m.LeftOut = nil, []string{"interface eth0"}
		}
	}
	f := of(t, s)
	if !slices.ContainsFunc(f.Validity.Notes, func(n Note) bool {
		return n.Check == "monitoring" && fact.Has(n.Facts, "check.monitoring.left_out") &&
			n.Facts[0].Values["source"] == "interface eth0 of store.example.org" && n.Facts[0].Values["seconds"] == 3
	}) || f.Validity.Status != Valid {
		t.Errorf("%s: %+v", f.Validity.Status, f.Validity.Notes)
	}
}
