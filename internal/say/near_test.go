package say

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"clients", "hold", "target", "set", "out"}
	for word, want := range map[string]string{"clints": "clients", "Client": "clients", "tagret": "target", "targets": "target", "xyz": "",
		"cli": "clients", "": ""} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
