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

// Every operation is in exactly one column, and columns are adjacent from one end of the axis to
// the other.
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

// TestWaitCells checks the number of waits, their mean, their share of the latency, and the pauses
// after Retry-After.
func TestWaitCells(t *testing.T) {
	latency := &analysis.Quantiles{Count: 10, Mean: 2}
	for want, s := range map[string]analysis.Step{
		"4 2.5 s 50% - -": {Waits: 4, Waited: 10, Latency: latency},
		"1 5 s - - -":     {Waits: 1, Waited: 5},
		"0 - - 3 s 25%":   {RetryAfter: 3, AskedShare: 0.25, Latency: latency},
	} {
		if got := strings.Join(waitCells(&s), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The report of a run without redirects contains no mention of redirects.
func TestNoRedirectsNoTable(t *testing.T) {
	f, series := analyzed(t, resultstest.Typical())
	if ids := partIDs(runPage(f, series)); strings.Contains(ids, "where") || strings.Contains(ids, "shares") {
		t.Errorf("a table without redirects: %s", ids)
	}
	f, series = analyzed(t, cluster())
	if got := partIDs(runPage(f, series)); got != "curve: steps answers; limits: evidence used; load: where kinds; time:; "+
		"latencies: quantiles; phases:; servers: whole shares; hosts:; failures: classes bystep; checks:; run: command environment;" {
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
