package fact_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis/fact"
)

func TestText(t *testing.T) {
	t.Parallel()
	f := fact.New("check.errors.failed", "failed", int64(3), "ended", 120, "share", 0.025)
	if f.Text != "3 of 120 operations failed (2.5%)" {
		t.Errorf("%q", f.Text)
	}
	low, high := 1.01e9, 1.07e9
	f = fact.New("verdict.peak", "yield", 1.04e9, "unit", fact.BytesPerSecond, "low", &low, "high", &high, "load", "16 clients")
	if f.Text != "Peak 8.32 Gbit/s (8.08 to 8.56) at 16 clients" {
		t.Errorf("%q", f.Text)
	}
	f = fact.New("verdict.peak", "yield", 120.0, "unit", "operations/s", "low", (*float64)(nil), "high", math.NaN(), "load", "1 client")
	if f.Text != "Peak 120 operations/s at 1 client" || len(f.Values) != 3 {
		t.Errorf("%q, %v", f.Text, f.Values)
	}
}

// The text has the words of a value, JSON the value.
func TestAs(t *testing.T) {
	t.Parallel()
	f := fact.New("compare.effect.too_few", "factor", "auth.method", "level", "krb5", "against", fact.As("", "none"), "metric",
		fact.As("p50", "median latency"))
	b, err := json.Marshal(f)
	require.NoError(t, err)
	if !strings.Contains(f.Text, "krb5 instead of none: ") || !strings.Contains(f.Text, "median latency") ||
		!strings.Contains(string(b), `"against":"","factor":"auth.method","level":"krb5","metric":"p50"`) {
		t.Errorf("%s", b)
	}
}
