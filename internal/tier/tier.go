// Package tier chooses which tests run: the tests of the first tier, which every change passes, and
// the tests of the full tier.
package tier

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

// Slow skips t, which takes seconds, with -short unless WEIR_REQUIRE is set. why is the reason.
func Slow(t testing.TB, why string) {
	t.Helper()
	if short() {
		t.Skip(why + ": left out with -short")
	}
}

// Full skips t unless the full tier is chosen. why is its addition to the first tier; CONTRIBUTING.md lists it.
func Full(t testing.TB, why string) {
	t.Helper()
	if !IsFull() {
		t.Skip(why + ": part of the full tier (WEIR_TIER=full)")
	}
}

// Quiet works like Full, for a test that needs an otherwise idle machine. cmd/suite runs such tests
// last, one at a time: it sets WEIR_PHASE to "waiting" before.
func Quiet(t testing.TB, why string) {
	t.Helper()
	Full(t, why)
	if os.Getenv("WEIR_PHASE") == "waiting" {
		t.Skip(why + ": it runs after the tests that wait")
	}
}

// IsFull reports whether the full tier is chosen, by the variable WEIR_TIER: `make test-full` sets it to "full".
func IsFull() bool { return os.Getenv("WEIR_TIER") == "full" }

func short() bool { return testing.Short() && os.Getenv("WEIR_REQUIRE") == "" }

// Main runs the tests of a package that wait more than they compute, 16 of them at a time with -short, unless -parallel
// is given. The result is the exit code.
func Main(m *testing.M) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if short() && !given {
		if err := flag.Set("test.parallel", "16"); err != nil {
			panic(err)
		}
	}
	return m.Run()
}

// Without skips t, which needs something that this machine may not have; why is the reason. If
// WEIR_REQUIRE is "all" or lists the program, the test fails instead: a required program is never
// skipped.
func Without(t testing.TB, what, why string) {
	t.Helper()
	if list := os.Getenv("WEIR_REQUIRE"); required(list, what) {
		t.Fatalf("%s (WEIR_REQUIRE=%s)", why, list)
	}
	t.Skip(why)
}

func required(list, what string) bool {
	return list == "all" || slices.Contains(strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }), what)
}
