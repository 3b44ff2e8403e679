package report

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/report/figure"
	"weir/loadtest/results/resultstest"
)

// Every operation is in a column, none is there twice, and columns lie side by
// side from the axis's one end to its other.
func TestColumnsCountEveryOperation(t *testing.T) {
	for name, of := range map[string]func(i int) time.Duration{
		"even":   func(i int) time.Duration { return time.Duration(i+1) * time.Millisecond },
		"one":    func(int) time.Duration { return 40 * time.Millisecond },
		"none":   func(int) time.Duration { return 0 },
		"tail":   func(i int) time.Duration { return time.Duration(1+i*i*i) * time.Microsecond },
		"an age": func(i int) time.Duration { return time.Duration(i) * time.Hour },
	} {
		s := resultstest.Typical()
		s.Clients, s.Duration = []int{2}, 2
		want := 0.0
		s.Interval = func(iv *measure.Interval) {
			iv.Latency.Reset()
			for i := range 100 {
				iv.Latency.Record(of(i))
			}
			if iv.Phase == measure.Measured {
				want += 100
			}
		}
		f, series := analyzed(t, s)
		charts := histograms(f, series, true)
		if len(charts) != 1 {
			t.Fatalf("%s: %d charts of one step", name, len(charts))
		}
		c := &charts[0]
		sum, end := 0.0, c.X.Min
		for _, col := range c.Columns {
			if math.Abs(col.From-end) > 1e-9*c.X.Max || col.To <= col.From || col.Y < 0 {
				t.Errorf("%s: column %+v after %v", name, col, end)
			}
			sum, end = sum+col.Y, col.To
		}
		if math.Abs(sum-want) > 1e-6*want || math.Abs(end-c.X.Max) > 1e-9*c.X.Max {
			t.Errorf("%s: columns count %v operations up to %v, want %v up to %v", name, sum, end, want, c.X.Max)
		}
		if !slices.ContainsFunc(c.Columns, func(col figure.Column) bool { return col.Y > 0 }) {
			t.Errorf("%s: nothing is drawn", name)
		}
	}
}

func TestDistributionsOfTheBestAndTheLastStep(t *testing.T) {
	f, series := analyzed(t, resultstest.Typical())
	charts := distributionCharts(f, series)
	var titles []string
	for _, c := range charts {
		titles = append(titles, c.Title)
	}
	if got := strings.Join(titles, ", "); got != "Latency of all operations against time, Tail of the latency, "+
		"Transfer time with 128 clients, Transfer time with 256 clients" {
		t.Errorf("charts: %s", got)
	}
	if n := len(histograms(f, series, false)); n != len(f.Curve)-2 {
		t.Errorf("%d histograms of other steps", n)
	}
	if distributionCharts(f, nil) != nil {
		t.Error("charts without a run")
	}
}

func TestTailsAreNamed(t *testing.T) {
	for want, q := range map[string]analysis.Quantiles{
		"The tail is short: 1 in 100 took longer than 1.1 s, 1 in 1000 longer than 2 s, the longest 3 s.": {P50: 1, P99: 1.1, P999: 2, Max: 3},
		"The tail is moderate: ":  {P50: 1, P99: 2},
		"The tail is long: ":      {P50: 1, P99: 9},
		"The tail is very long: ": {P50: 1, P99: 11},
		"The tail: ":              {},
	} {
		if got := tail(&q); !strings.HasPrefix(got, want) {
			t.Errorf("%+v: %q, want %q", q, got, want)
		}
	}
}

func TestWaitsAreSaid(t *testing.T) {
	latency := &analysis.Quantiles{Count: 10, Mean: 2}
	for want, s := range map[string]analysis.Step{
		"With 8 clients the service asked clients to wait 4 times, 2.5 s each on average; that is 50% of the latency.": {Clients: 8,
			Waits: 4, Waited: 10, Latency: latency},
		"With 1 client the service asked clients to wait once, 5 s each on average, and no operation ended well.": {Clients: 1,
			Waits: 1, Waited: 5},
		"With 8 clients the service asked clients to wait 10 times, 5 s each on average, mostly for operations that failed.": {Clients: 8,
			Waits: 10, Waited: 50, Latency: latency},
		"With 2 clients files were opened again once because their data server was lost.": {Clients: 2, Reopened: 1},
	} {
		got := waits(&analysis.Findings{Model: "closed", Curve: []analysis.Step{s}})
		if len(got) != 1 || got[0] != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// Whoever is never sent anywhere reads nothing of redirects.
func TestNoRedirectsNoTable(t *testing.T) {
	f, series := analyzed(t, resultstest.Typical())
	if ids := partIDs(runPage(f, series)); strings.Contains(ids, "where") || strings.Contains(ids, "shares") {
		t.Errorf("a table without redirects: %s", ids)
	}
	f, series = analyzed(t, cluster())
	if got := partIDs(runPage(f, series)); got != "curve: steps answers; limits: evidence used; load: where kinds; time:; latencies:; "+
		"phases:; servers: whole shares; hosts:; failures: classes bystep; checks:; run: command environment;" {
		t.Errorf("the page holds %s", got)
	}
}

// partIDs lists the chapters with the parts that have a name.
func partIDs(p page) string {
	var all []string
	for _, c := range p.Chapters {
		all = append(all, c.ID+":")
		for _, s := range c.Parts {
			if s.ID != "" {
				all = append(all, s.ID)
			}
		}
		all[len(all)-1] += ";"
	}
	return strings.Join(all, " ")
}
