package analysis

import (
	"strings"
	"testing"

	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// concluding returns the conclusion of a document.
func concluding(f *Findings) *conclusion { return &conclusion{Findings: f, c: f.curve()} }

func ref[T any](x T) *T { return &x }

// TestEveryMeasureIsFound assigns a different value to each measure of a step.
func TestEveryMeasureIsFound(t *testing.T) {
	of := func(x float64) *Quantiles {
		return &Quantiles{Count: 1, Mean: x, P50: x + 1, P90: x + 2, P95: x + 3, P99: x + 4, P999: x + 5, Max: x + 6}
	}
	f := concluding(&Findings{Measure: Throughput, Curve: []Step{{
		Clients: 4, ActiveClients: 4, Throughput: 4000, PerClient: 1000, Operations: 40, PerClientRate: 10, Done: 80, Errors: 20,
		Missed: 25, Waits: 30,
		Latency: of(10), FirstByte: of(20), Connect: of(30), Login: of(40), Redirect: of(50), Handshake: of(70),
		ServerCPU: ref(0.5), ClientCPU: ref(0.25),
		Balance: &StepBalance{Imbalance: 1.25},
		JobFigures: JobFigures{Jobs: &JobCounts{}, JobSeconds: of(60), CPUEfficiency: ref(0.6), ClusterThroughput: ref(2.4), EventRate: 7,
			JobFailureRatio: ref(0.1), CrashRatio: ref(0.15)},
	}}})
	f.Optimum = &Optimum{Equals: []int{0}, Clients: 4, ClientsLow: 3, ClientsHigh: 5, Throughput: 4000, Operations: 40, Inside: true}
	f.Knee = &Knee{Clients: 3, Throughput: 3500, Operations: 35}
	f.Power = &Operating{Clients: 1, Throughput: 1000, Operations: 10}
	want := map[string]float64{
		"throughput": 4000, "per_client": 1000, "rate": 40, "per_client_rate": 10, "error_ratio": 0.2, "missed_ratio": 0.2, "wait_ratio": 0.3,
		"server_cpu": 0.5, "client_cpu": 0.25, "imbalance": 1.25,
		"cpu_efficiency": 0.6, "cluster_throughput": 2.4, "events_rate": 7, "job_failure_ratio": 0.1, "crash_ratio": 0.15,
		"optimum.clients": 4, "optimum.throughput": 4000, "optimum.rate": 40, "knee.clients": 3, "knee.throughput": 3500, "knee.rate": 35,
		"cheapest.clients": 4, "cheapest.throughput": 4000, "cheapest.rate": 40,
		"maximum_power.clients": 1, "maximum_power.throughput": 1000, "maximum_power.rate": 10,
	}
	for i, of := range []string{"latency", "first_byte", "connect", "login", "redirect", "job", "tls_handshake"} {
		for k, p := range []string{"mean", "p50", "p90", "p95", "p99", "p999", "max"} {
			want[of+"_"+p] = float64(10*(i+1) + k)
		}
	}
	empty := concluding(&Findings{Measure: Throughput, Curve: []Step{{Clients: 4, Done: 1}}})
	for _, q := range scenario.Quantities() {
		x, ok := want[q.Name]
		if !ok {
			t.Errorf("%s is not tested", q.Name)
		}
		for sign, met := range map[string]bool{"<": false, "<=": true, ">": false, ">=": true} {
			th := scenario.Threshold{Measure: q, Sign: sign, Value: x}
			got := f.judgeSteps(th)
			if q.Whole {
				got = f.judgeWhole(th)
			}
			if got.Met != met || !strings.Contains(got.Detail, q.Format(x)) {
				t.Errorf("%s %s %v: %+v", q.Name, sign, x, got)
			}
		}
		if q.Unit == scenario.Duration || q.Whole {
			if got := empty.judged([]string{q.Name + " > " + q.Format(0)})[0]; got.Met {
				t.Errorf("%s is met by nothing: %+v", q.Name, got)
			}
		}
	}
}

// TestThresholdsOfTheWholeRun checks that a run whose range ended below the maximum only shows that
// the optimum is not lighter than its heaviest step.
func TestThresholdsOfTheWholeRun(t *testing.T) {
	rising := &Findings{Measure: Throughput, Curve: []Step{{Clients: 1000, Throughput: 1e8, Done: 1},
		{Step: 2, Clients: 5000, Throughput: 4e8, Done: 1}}}
	rising.Optimum = &Optimum{Step: 2, Clients: 5000, ClientsLow: 5000, ClientsHigh: 5000, Throughput: 4e8}
	peak := &Findings{Measure: Throughput, Curve: []Step{{Clients: 1000, Throughput: 1e8, Done: 1},
		{Step: 2, Clients: 3000, Throughput: 4e8, Done: 1}, {Step: 3, Clients: 5000, Throughput: 3e8, Done: 1}}}
	peak.Optimum = &Optimum{Step: 2, Clients: 2161, ClientsLow: 1900, ClientsHigh: 2400, Throughput: 4e8, Low: ref(3.9e8),
		High: ref(4.1e8), Inside: true}
	for _, c := range []struct {
		f       *Findings
		text    string
		met     bool
		certain *bool
		detail  string
	}{
		{rising, "optimum.clients > 2000", true, nil, "5000 clients or more"},
		{rising, "optimum.clients > 5000", false, nil, "test heavier steps"},
		{rising, "optimum.clients >= 5000", true, nil, "there is no maximum"},
		{rising, "optimum.clients < 2000", false, nil, "there is no maximum"},
		{rising, "optimum.clients < 9000", false, nil, "test heavier steps"},
		{rising, "optimum.throughput > 3 Gbit/s", true, nil, "3.20 Gbit/s or more"},
		{rising, "knee.clients > 2000", true, nil, "still rises"},
		{rising, "knee.clients < 2000", false, nil, "still rises"},
		{rising, "cheapest.clients < 9000", true, ref(true), "5000 clients"},
		{peak, "optimum.clients > 1800", true, ref(true), "2161 clients"},
		{peak, "optimum.clients > 2000", true, ref(false), "not certain, its 95% interval is 1900 clients to 2400 clients"},
		{peak, "optimum.clients < 2000", false, ref(false), "not certain"},
		{peak, "optimum.throughput > 3 Gbit/s", true, ref(true), "3.20 Gbit/s"},
		{peak, "optimum.throughput > 3.2 Gbit/s", false, ref(false), "not certain"},
		{peak, "knee.clients > 1", false, nil, "no knee was found"},
		{peak, "throughput > 3 Gbit/s at the optimum", true, nil, "at 3000 clients"},
		{&Findings{}, "optimum.clients >= 0", false, nil, "no operation succeeded"},
		{&Findings{}, "knee.clients >= 0", false, nil, "no operation succeeded"},
		{&Findings{}, "throughput >= 0bit/s at the optimum", false, nil, "no operation succeeded"},
	} {
		got := concluding(c.f).judged([]string{c.text})[0]
		same := (got.Certain == nil) == (c.certain == nil) && (got.Certain == nil || *got.Certain == *c.certain)
		if got.Met != c.met || !same || !strings.Contains(got.Detail, c.detail) {
			t.Errorf("%s: %+v (certain %v), want met %v, %q", c.text, got, got.Certain, c.met, c.detail)
		}
	}
}

func TestThresholdsSayWhereTheyAreNotCertain(t *testing.T) {
	f := &Findings{Curve: []Step{
		{Clients: 1, Throughput: 2e8, ThroughputLow: ref(1.9e8), ThroughputHigh: ref(2.1e8)},
		{Clients: 8, Throughput: 5e8, ThroughputLow: ref(4e8), ThroughputHigh: ref(6e8)},
	}}
	for text, want := range map[string]struct{ met, certain bool }{
		"throughput > 1 Gbit/s":                {true, true},
		"throughput > 1.6 Gbit/s":              {false, false},
		"throughput > 1.55 Gbit/s":             {true, false},
		"throughput < 4.5 Gbit/s at 8 clients": {true, false},
		"throughput < 5 Gbit/s at 8 clients":   {true, true},
	} {
		got := concluding(f).judged([]string{text})[0]
		if got.Met != want.met || got.Certain == nil || *got.Certain != want.certain ||
			fact.Has(got.Facts, "threshold.uncertain") == want.certain {
			t.Errorf("%s: %+v, want %v", text, got, want)
		}
	}
}

// TestThresholdThatEndedTheRunIsBroken checks that a threshold that ended a run stays broken,
// regardless of the last seconds.
func TestThresholdThatEndedTheRunIsBroken(t *testing.T) {
	d := &steps.Run{Events: []*measure.Event{{Kind: "warning", Text: "rate > 1/s or stop: no"},
		{Kind: measure.EventThreshold, Reason: "p99 < 1s or stop", Stopped: &measure.StoppedStep{Step: 2, Seconds: 3, Clients: 4, Value: 2}}}}
	got := stopped(d, []Judgment{{Threshold: "rate > 1/s or stop", Met: true}, {Threshold: "p99 < 1s or stop", Met: true, Detail: "0.99 s"}})
	if !got[0].Met || got[1].Met || got[1].Detail != "step 2 was stopped after 3 s of measurement: 2 s at 4 clients" {
		t.Errorf("%+v", got)
	}
}

func TestThresholds(t *testing.T) {
	f := &Findings{Curve: []Step{
		{Clients: 1, Throughput: 1e8, PerClient: 1e8, Operations: 100, Done: 1000, Latency: &Quantiles{Count: 1000, P50: .01, P99: .02}},
		{Clients: 8, Throughput: 5e8, PerClient: 6e7, Operations: 500, Done: 990, Errors: 10, ErrorRatio: .01,
			Latency: &Quantiles{Count: 990, P50: .016, P99: .2}},
	}}
	for text, want := range map[string]struct {
		met    bool
		detail string
	}{
		"throughput > 3 Gbit/s at 8 clients":    {true, "4.00 Gbit/s at 8 clients"},
		"throughput > 3 Gbit/s":                 {false, "800 Mbit/s at 1 client"},
		"throughput > 300 Mbit/s":               {true, "all 2 steps"},
		"per_client >= 480 Mbit/s at 8 clients": {true, "480 Mbit/s"},
		"rate < 500/s":                          {false, "500/s at 8 clients"},
		"rate <= 500/s":                         {true, "all 2 steps"},
		"error_ratio < 1%":                      {false, "1% at 8 clients"},
		"latency_p99 <= 200ms":                  {true, "all 2 steps"},
		"latency_p50 < 15ms at 8 clients":       {false, "16 ms"},
		"first_byte_p99 < 1s":                   {false, "not measured"},
		"throughput > 1 bit/s at 9 clients":     {false, "no step had 9 clients"},
		"rate > 1/s at 9/s":                     {false, "no step had 9 arrivals/s"},
		"p50 < 15ms at 1 client":                {true, "10 ms at 1 client"},
		"nonsense":                              {false, "nonsense"},
	} {
		got := concluding(f).judged([]string{text})[0]
		if got.Met != want.met || !strings.Contains(got.Detail, want.detail) {
			t.Errorf("%s: met %v, %q; want %v, %q", text, got.Met, got.Detail, want.met, want.detail)
		}
	}
	if got := concluding(&Findings{}).judged([]string{"throughput > 0bit/s"}); got[0].Met {
		t.Errorf("a threshold is met by nothing: %+v", got)
	}
	if f.Thresholds = concluding(f).judged([]string{"rate < 500/s"}); !f.Missed() {
		t.Error("a missed threshold is not missed")
	}
}
