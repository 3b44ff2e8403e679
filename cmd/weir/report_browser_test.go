package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/browser"
	"weir/loadtest/analysis"
	"weir/loadtest/report"
	"weir/loadtest/results"
	"weir/web"
)

// The report of a real run opens without errors, and its charts have as many points as the run
// directory has steps and seconds.
func TestReportOfARealRun(t *testing.T) {
	tier.Slow(t, "it is a run of three steps")
	if _, built := web.Bundle("report.js"); !built {
		t.Skip("weir was built without the scripts of its pages: make web builds them")
	}
	dir := filepath.Join(t.TempDir(), "run")
	if code, said := weir(t, "run", "--clients", "1,2,4", "--duration", "3s", "--set", "load.ramp=200ms", "--set", "load.warmup=300ms",
		"--set", "workload.think=5ms", "--out", dir); code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	run, err := results.Open(dir)
	require.NoError(t, err)
	f, s, err := analysis.AnalyzeWithSeries(run)
	require.NoError(t, err)
	p := browser.Open(t, "file://"+filepath.Join(dir, results.ReportFile), 1600, 900)
	// folded sections are drawn when they are opened
	p.Eval(`(() => { for (const folded of document.querySelectorAll("details")) folded.open = true })()`, nil)
	p.Wait(`(() => { const next = document.querySelector("figure[data-figure]:not(.charted)"); next?.scrollIntoView({block: "center"}); return !next })()`)
	p.Eval(`(() => { window.saved = []; const make = URL.createObjectURL; URL.createObjectURL = b => { saved.push(b); return make(b) } })()`,
		nil)
	want := map[string]int{"curve": len(f.Curve), "time": len(s.Points)}
	for _, fig := range report.Figures(f, s).All() {
		points, ok := want[fig.ID]
		if !ok {
			continue
		}
		delete(want, fig.ID)
		p.Eval(`saved.length = 0`, nil)
		p.Press(fmt.Sprintf(`figure:has([id="%s-d"]) .chart-data button:nth-of-type(2)`, fig.ID))
		p.Wait(`saved.length === 1`)
		var table string
		p.Eval(`saved[0].text()`, &table)
		own := 0
		for line := range strings.Lines(table) {
			if cells := strings.Split(line, ","); cells[1] != "" { // other rows only have a model
				own++
			}
		}
		if own-1 != points {
			t.Errorf("%s has %d points, the run directory %d", fig.ID, own-1, points)
		}
	}
	if len(want) > 0 {
		t.Errorf("the report lacks %v", want)
	}
	if e := p.Errors(); len(e) > 0 {
		t.Errorf("the page complains: %q", e)
	}
}
