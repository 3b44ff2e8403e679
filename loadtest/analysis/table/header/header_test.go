package header

import (
	"math"
	"testing"
)

// TestParse has names that no table of the test of headers has.
func TestParse(t *testing.T) {
	for name, want := range map[string]Reading{
		"client(s)":                 {Quantity: Clients, Factor: 1},
		"kops/s":                    {Quantity: Rate, Unit: "/s", Factor: 1e3},
		"requests (1/s)":            {Quantity: Rate, Unit: "/s", Factor: 1},
		"widgets per hour":          {Quantity: Rate, Unit: "/hour", Factor: 1. / 3600, Of: "widgets"},
		"throughput mb/s":           {Quantity: Throughput, Unit: "mb/s"},
		"latency p999 (us)":         {Quantity: Latency, Statistic: "p99.9", Unit: "us", Factor: 1e-6},
		"latency 0,95 quantile (s)": {Quantity: Latency, Statistic: "p95", Unit: "s", Factor: 1},
		"median latency (ms)":       {Quantity: Latency, Statistic: Median, Unit: "ms", Factor: 1e-3},
		"users/s":                   {Quantity: Arrivals, Unit: "/s", Factor: 1},
		"failures/s":                {Quantity: ErrorRate, Unit: "/s", Factor: 1},
		"CPU (%)":                   {Unknown: "CPU"},
		"latency (jiffies)":         {Unknown: "jiffies"},
	} {
		if got := Parse(name); got != want {
			t.Errorf("%q: %+v, want %+v", name, got, want)
		}
	}
}

// Every name has a reading, and every unit that is read has a factor.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"latency 95% (ms)", "MB/s/client", "p(95)", "k ops/s", "Ø Latenz (µs)", "/", "((", "% #"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r := Parse(name)
		if math.IsNaN(r.Factor) || math.IsInf(r.Factor, 0) || r.Factor < 0 {
			t.Fatalf("%q: %+v", name, r)
		}
	})
}
