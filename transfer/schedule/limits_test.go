package schedule

import (
	"strings"
	"testing"
	"time"
)

// Administrators limit the copies from and to a site, and the copies of a link, also if it has had
// more.
func TestLimits(t *testing.T) {
	now := time.Unix(1e9, 0)
	n := New(Rules{Start: 10}, 1)
	full := func(from, to string) string {
		t.Helper()
		return n.Consider(File{Bytes: 1, Dest: to, Sources: []string{from}}, now).Why
	}
	for range 3 {
		n.Began("a", "b", 1, now)
	}
	n.Limit(Limits{Out: map[string]int{"a": 3}, In: map[string]int{"c": 1}})
	if why := full("a", "c"); !strings.Contains(why, "site a sends the 3 copies") {
		t.Error(why)
	}
	n.Began("d", "c", 1, now)
	if why := full("d", "c"); !strings.Contains(why, "site c receives the copy") && !strings.Contains(why, "site c receives the 1 copy") {
		t.Error(why)
	}
	n.Left("a", "b", 1, now)
	if why := full("a", "b"); !strings.Contains(why, "would take") {
		t.Error(why)
	}
	n.Limit(Limits{Link: func(from, to string) (int, int) {
		if from == "a" && to == "b" {
			return 1, 2
		}
		return 0, 0
	}})
	if why := full("a", "b"); !strings.Contains(why, "the link from a to b") {
		t.Error(why)
	}
	if why := full("d", "c"); !strings.Contains(why, "would take") {
		t.Error(why)
	}
	for _, l := range n.Links() {
		if want := map[string]int{"b": 2, "c": 10}[l.Dest]; l.Limit != want {
			t.Errorf("%s: %d at once instead of %d: %s", l.Dest, l.Limit, want, l.Why)
		}
	}
	n.Limit(Limits{})
	for _, l := range n.Links() {
		if l.Limit != 10 {
			t.Errorf("%s: still %d at once: %s", l.Dest, l.Limit, l.Why)
		}
	}
}
