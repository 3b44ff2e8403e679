package scenario

import (
	"slices"
	"strings"
	"testing"
)

func TestBoundaries(t *testing.T) {
	for text, want := range map[string]Boundary{
		"latency_mean < 10 x single":  {Quantity{Name: "latency_mean", Unit: Duration}, "<", 10, true},
		"latency_mean <= 2.5x single": {Quantity{Name: "latency_mean", Unit: Duration}, "<=", 2.5, true},
		"p99 < 2s":                    {Quantity{Name: "latency_p99", Unit: Duration}, "<", 2, false},
		"latency_mean < 600s":         {Quantity{Name: "latency_mean", Unit: Duration}, "<", 600, false},
		"error_ratio < 1%":            {Quantity{Name: "error_ratio", Unit: Share}, "<", 0.01, false},
		"per_client > 1 MB/s":         {Quantity{Name: "per_client", Unit: Speed}, ">", 1e6, false},
		"efficiency > 80%":            {Quantity{Name: "efficiency", Unit: Share}, ">", 0.8, false},
	} {
		if got, err := ParseBoundary(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                             "write it with spaces, as in latency_mean < 10 x single",
		"latency_mean<600s":            "write it with spaces",
		"latency < 600s":               `unknown measure "latency"`,
		"optimum.clients > 10":         "applies to the whole run",
		"latency_mean < 10 single":     `"10 single"; write a multiple of the lightest step's value, as in 10 x single`,
		"latency_mean < -1 x single":   "write a multiple",
		"latency_mean < NaN x single":  "write a multiple",
		"latency_mean < single":        "write a multiple",
		"latency_mean < 600":           "has no unit",
		"latency_mean < 600s at 9 cli": "", // no place behind it: a boundary is sought at all loads
	} {
		if _, err := ParseBoundary(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, text := range slices.Concat(DefaultBoundaries(false), DefaultBoundaries(true)) {
		if _, err := ParseBoundary(text); err != nil {
			t.Errorf("of the defaults: %v", err)
		}
	}
}

func FuzzParseBoundary(f *testing.F) {
	f.Add("latency_mean < 10 x single")
	f.Add("efficiency >= 80%")
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ParseBoundary(text)
		if err == nil && (!(b.Value >= 0) || b.Measure.Name == "" || b.Sign == "") {
			t.Errorf("%q: %+v", text, b)
		}
	})
}
