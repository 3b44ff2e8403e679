package analysis

import (
	"strings"
	"testing"
)

func TestThresholds(t *testing.T) {
	f := &Findings{Curve: []Step{
		{Clients: 1, Throughput: 1e8, PerClient: 1e8, Operations: 100, Done: 1000, Latency: &Quantiles{Count: 1000, P50: .01, P99: .02}},
		{Clients: 8, Throughput: 5e8, PerClient: 6e7, Operations: 500, Done: 990, Errors: 10, ErrorRatio: .01, Latency: &Quantiles{Count: 990, P50: .016, P99: .2}},
	}}
	for text, want := range map[string]struct {
		met    bool
		detail string
	}{
		"throughput > 3 Gbit/s at 8 clients":    {true, "4.00 Gbit/s with 8 clients"},
		"throughput > 3 Gbit/s":                 {false, "800 Mbit/s with 1 client"},
		"throughput > 300 Mbit/s":               {true, "all 2 steps"},
		"per_client >= 480 Mbit/s at 8 clients": {true, "480 Mbit/s"},
		"rate < 500/s":                          {false, "500/s with 8 clients"},
		"rate <= 500/s":                         {true, "all 2 steps"},
		"error_ratio < 1%":                      {false, "1% with 8 clients"},
		"latency_p99 <= 200ms":                  {true, "all 2 steps"},
		"latency_p50 < 15ms at 8 clients":       {false, "16 ms"},
		"first_byte_p99 < 1s":                   {false, "not measured"},
		"throughput > 1 bit/s at 9 clients":     {false, "no step had 9 clients"},
		"nonsense":                              {false, "nonsense"},
	} {
		got := f.hold([]string{text})[0]
		if got.Met != want.met || !strings.Contains(got.Detail, want.detail) {
			t.Errorf("%s: met %v, %q; want %v, %q", text, got.Met, got.Detail, want.met, want.detail)
		}
	}
	if got := (&Findings{}).hold([]string{"throughput > 0bit/s"}); got[0].Met {
		t.Errorf("a threshold is met by nothing: %+v", got)
	}
	if f.Thresholds = f.hold([]string{"rate < 500/s"}); !f.Missed() {
		t.Error("a missed threshold is not missed")
	}
}
