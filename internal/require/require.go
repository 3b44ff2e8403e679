// Package require has the conditions that tests of all packages share. A test whose condition does not hold ends at once.
package require

import (
	"math"
	"os"
	"testing"
	"time"
)

// NoError ends t with err if it is not nil.
func NoError(t testing.TB, err error) {
	if err != nil {
		t.Helper() // only here: it takes time, and this runs in benchmarks
		t.Fatal(err)
	}
}

// Eventually waits until ok returns true. After three minutes, a limit that only a deadlock
// reaches, it ends t; the message names the awaited condition.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(3 * time.Minute); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited three minutes for: %s", what)
		}
	}
}

// File returns the content of a file, and ends t if it cannot be read.
func File(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	NoError(t, err)
	return text
}

// Near reports an error unless got lies within want times tolerance of want. The message contains
// the name of the quantity.
func Near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*math.Abs(want) || math.IsNaN(got) {
		t.Errorf("%s is %v, want %v within %v%%", what, got, want, 100*tolerance)
	}
}
