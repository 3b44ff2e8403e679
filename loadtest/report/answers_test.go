package report

import (
	"testing"

	"weir/internal/unit"
	"weir/loadtest/analysis"
)

// A condition that is first kept above the lightest load has both ends of its range in the text.
func TestBoundaryText(t *testing.T) {
	at := func(x float64) *float64 { return &x }
	f := &analysis.Findings{}
	for want, b := range map[string]analysis.Boundary{
		"not measured":                     {Unmeasured: true},
		"at no tested load":                {},
		"at all tested loads":              {From: at(1), To: at(9)},
		"from 16 clients on":               {From: at(16), To: at(32), Above: true},
		"up to 12 clients":                 {From: at(1), To: at(9), Next: at(18), Crossing: at(12.9)},
		"from 4 to 12 clients":             {From: at(4), To: at(9), Next: at(18), Crossing: at(12.9), Above: true},
		"with 919 clients":                 {From: at(918.7), To: at(918.7), Next: at(950), Crossing: at(918.9), Above: true},
		"up to 9 clients, and again above": {From: at(1), To: at(9), Next: at(18), Again: at(40)},
	} {
		if got := boundary(f, b); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Three digits, also where rounding adds one.
func TestSignificant(t *testing.T) {
	for want, x := range map[string]float64{"1.00": 0.9999999999999999, "10.0": 9.9999, "0.999": 0.9991, "9.99": 9.994, "100": 99.99,
		"1000": 999.9, "0": 0} {
		if got := unit.Significant(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
}
