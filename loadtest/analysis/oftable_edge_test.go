package analysis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis/fit"
	given "weir/loadtest/analysis/table"
)

// TestTableRepetitions checks that rows of one load are repetitions: the interval is computed from
// their spread.
func TestTableRepetitions(t *testing.T) {
	f := tableText(t,
		"clients,throughput_gbps,latency (ms),error_ratio\n1,1.0,8,0\n2,2.0,8,0\n1,1.1,8,0\n2,2.2,9,0.02\n1,0.9,8,0\n2,1.8,10,0\n",
		TableOptions{})
	if len(f.Curve) != 2 {
		t.Fatalf("%d points", len(f.Curve))
	}
	s := f.Curve[0]
	// 1.0 +- 4.303 * 0.1 / sqrt(3) Gbit/s: Student's t with two degrees of freedom
	if s.Batches != 3 || math.Abs(s.Throughput-125e6) > 1 || s.ThroughputLow == nil || math.Abs(*s.ThroughputHigh*8/1e9-1.24843) > 1e-4 {
		t.Errorf("%d means, %v, interval to %v", s.Batches, s.Throughput, s.ThroughputHigh)
	}
	if s := f.Curve[1]; math.Abs(s.ErrorRatio-0.02/3) > 1e-12 || math.Abs(s.Latency.Mean-0.009) > 1e-12 {
		t.Errorf("error ratio %v, latency %v", s.ErrorRatio, s.Latency.Mean)
	}
}

// TestTableUpAndDown checks that rising and falling loads are distinguished, so that the two
// directions can be compared.
func TestTableUpAndDown(t *testing.T) {
	f := tableText(t, "clients;MB/s\n1;10\n2;20\n4;40\n8;60\n4;20\n2;19\n1;10\n", TableOptions{})
	if len(f.Curve) != 7 || len(f.Hysteresis) != 3 {
		t.Fatalf("%d points, %d loads on both ways", len(f.Curve), len(f.Hysteresis))
	}
	if h := f.Hysteresis[0]; h.Clients != 4 || h.Up != 3 || h.Down != 5 || h.Change != -0.5 || h.Certain {
		t.Errorf("%+v", h)
	}
	// a third time at the same load is no way back: repetitions
	if f := tableText(t, "clients;MB/s\n1;10\n2;20\n1;11\n2;21\n", TableOptions{}); len(f.Curve) != 2 {
		t.Errorf("%d points of two loads", len(f.Curve))
	}
}

// TestTableMaximumBetweenPoints checks that a model with its maximum between the points, above all
// measured values, is not used for the peak: the optimum is a tested load.
func TestTableMaximumBetweenPoints(t *testing.T) {
	text := "clients,rate (ops/s)\n"
	for _, n := range []float64{1, 2, 4, 8, 16, 91, 108, 129, 184, 372, 1095} { // the maximum is at 44 clients
		text += fmt.Sprintf("%g,%g\n", n, 100*n/(1+0.02*(n-1)+0.0005*n*(n-1)))
	}
	f := tableText(t, text, TableOptions{})
	if o := f.Optimum; o == nil || o.Clients != 91 || o.Peak != nil || !o.Inside {
		t.Errorf("%+v", o)
	}
}

// TestTableQuarters checks that a step is cut into four parts of equal length, for any number of
// rows.
func TestTableQuarters(t *testing.T) {
	text := "step,time (min),jobs,throughput (MB/s)\n"
	for _, row := range []string{"a,0,2,10", "a,1,4,20", "a,2,4,40", "a,3,4,40", "a,4,4,40", "a,5,2,30"} { // a quarter is a row and a half
		text += row + "\n"
	}
	f := tableText(t, text, TableOptions{})
	want := [][3]float64{{8.0 / 3, 40.0 / 3, 90}, {4, 100.0 / 3, 90}, {4, 40, 90}, {8.0 / 3, 100.0 / 3, 90}}
	if len(f.Subintervals) != 4 {
		t.Fatalf("%d parts", len(f.Subintervals))
	}
	for i, x := range f.Subintervals {
		if math.Abs(x.Clients-want[i][0]) > 1e-9 || math.Abs(x.Throughput/1e6-want[i][1]) > 1e-9 || math.Abs(x.Seconds-want[i][2]) > 1e-9 ||
			math.Abs(x.PerClient-x.Throughput/x.Clients) > 1e-6 {
			t.Errorf("part %d: %+v, want %v", i+1, x, want[i])
		}
	}
	if len(f.Curve) != 1 || math.Abs(f.Curve[0].Throughput/1e6-110.0/3) > 1e-9 || f.Curve[0].Clients != 4 || f.Curve[0].Duration != 180 {
		t.Errorf("the step's two middle quarters: %+v", f.Curve)
	}
	if f := tableText(t, text, TableOptions{Points: PointsOfSubintervals}); len(f.Curve) != 4 ||
		math.Abs(f.Curve[3].ActiveClients-8.0/3) > 1e-9 {
		t.Errorf("points of quarters: %d", len(f.Curve))
	}
	if f := tableText(t, text, TableOptions{Points: PointsOfRows}); len(f.Curve) != 3 || f.Curve[1].Batches != 4 { // up, level, down
		t.Errorf("points of rows: %d", len(f.Curve))
	}
}

// TestTableOfTimes checks that a table of jobs and wall clock times has a rate by Little's law.
func TestTableOfTimes(t *testing.T) {
	f := tableText(t, "jobs,wall clock time (s)\n1,60\n10,360\n", TableOptions{})
	if f.Measure != Rate || math.Abs(f.Curve[1].Operations-10.0/360) > 1e-12 || len(f.Boundaries) != 2 {
		t.Errorf("%s, %+v, %+v", f.Measure, f.Curve[1].Operations, f.Boundaries)
	}
	if b := f.Boundaries[0]; b.Condition != "latency_mean < 10 x single" || b.Limit != 600 || *b.To != 10 || b.Next != nil {
		t.Errorf("%+v", b)
	}
	f = tableText(t, "jobs,ops/s,wall clock time (s)\n1,1,1\n10,100,1\n", TableOptions{})
	if c := f.Validity.Checks[2]; c.Name != "Little's law" || c.Status != Warn || !shows(&c, "10 times the number of clients at 10 clients") {
		t.Errorf("ten clients in a hundred operations at once: %+v", c)
	}
	f = tableText(t, "jobs,ops/s\n1,1\n10,10\n", TableOptions{Boundaries: []string{"p99 < 2s", "latency_mean < 2s", "error_ratio < 1%"}})
	for _, b := range f.Boundaries {
		if !b.Unmeasured || b.Facts[0].Code != "verdict.boundary.unmeasured" {
			t.Errorf("%+v", b)
		}
	}
}

// TestKneeOfFourPoints checks that four points, which are enough only for a line, are not straight
// merely because the line is the best model.
func TestKneeOfFourPoints(t *testing.T) {
	if f := tableText(t, "threads,tps\n1,100\n2,200\n4,380\n8,400\n", TableOptions{}); f.Knee == nil || f.Knee.Clients != 4 {
		t.Errorf("knee %+v", f.Knee)
	}
	if f := tableText(t, "threads,tps\n1,100\n2,200\n4,400\n8,790\n", TableOptions{}); f.Knee != nil {
		t.Errorf("knee of a straight line: %+v", f.Knee)
	}
}

// TestTableOfOwnCurve checks that a run's own curve.csv is a table as well: it gives the same
// curve.
func TestTableOfOwnCurve(t *testing.T) {
	f := tableText(t, "clients,throughput_gbps,latency (ms),error_ratio\n1,1.0,8,0\n2,2.0,8,0\n4,3,9,0.02\n8,3.1,20,0\n", TableOptions{})
	var b bytes.Buffer
	require.NoError(t, CurveCSV(&b, f))
	again := tableText(t, b.String(), TableOptions{})
	if len(again.Curve) != 4 {
		t.Fatalf("%d points", len(again.Curve))
	}
	for i := range again.Curve {
		a, b := &f.Curve[i], &again.Curve[i]
		if a.ActiveClients != b.ActiveClients || a.Throughput != b.Throughput || a.ErrorRatio != b.ErrorRatio ||
			a.Latency.Mean != b.Latency.Mean {
			t.Errorf("point %d: %+v, read again %+v", i+1, a, b)
		}
	}
}

// TestThinTables checks that tables with few rows get a plain sentence, and the requirements of
// each model.
func TestThinTables(t *testing.T) {
	for name, c := range map[string]struct{ text, verdict, warning string }{
		"one row": {"clients,throughput_gbps\n4,1\n", "1.00 Gbit/s at 4 clients, the only load tested",
			"poly4 needs 8 points, there are 1"},
		"all rows alike": {"clients,throughput_gbps\n4,1\n4,1\n4,1\n", "1.00 Gbit/s (1.00 to 1.00) at 4 clients, the only load tested",
			"usl needs 6 points, there are 1"},
		"nothing moved":    {"clients,throughput_gbps\n4,0\n8,0\n", "No operation was completed and no payload was transferred", ""},
		"no clients":       {"clients,throughput_gbps\n0,0\n0,1\n", "", ""},
		"all equal yields": {"clients,throughput_gbps\n1,1\n2,1\n4,1\n8,1\n", "", "poly4 needs 8 points, there are 4"},
		"the largest":      {"clients,B/s\n1,1e308\n2000000000,1e308\n3,1e-308\n4,0\n", "", ""},
	} {
		f := tableText(t, c.text, TableOptions{})
		if !strings.HasPrefix(f.Verdict, c.verdict) || f.Verdict == "" {
			t.Errorf("%s: %s", name, f.Verdict)
		}
		if !strings.Contains(strings.Join(f.Warnings, "\n"), c.warning) {
			t.Errorf("%s: warnings %q", name, f.Warnings)
		}
		if err := JSON(&bytes.Buffer{}, f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTablePoints(t *testing.T) {
	tab, err := given.Read("t.csv", strings.NewReader("clients,throughput_gbps\n1,1\n"), given.Options{})
	require.NoError(t, err)
	for points, want := range map[string]string{"steps": "t.csv: points of steps need a column of times",
		"weeks": `points of "weeks": use rows, steps or subintervals`} {
		if _, err := AnalyzeTable(tab, TableOptions{Points: points}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", points, err)
		}
	}
	var many strings.Builder
	many.WriteString("clients,throughput_gbps\n")
	for i := range 3000 {
		many.WriteString(number(float64(i)) + ",1\n")
	}
	tab, err = given.Read("t.csv", strings.NewReader(many.String()), given.Options{})
	require.NoError(t, err)
	if _, err := AnalyzeTable(tab, TableOptions{}); err == nil ||
		!strings.Contains(err.Error(), "3000 points are too many for a curve, at most 2000") {
		t.Error(err)
	}
}

// FuzzOfTable checks that the findings of any table can be written and have contents.
func FuzzOfTable(f *testing.F) {
	f.Add("clients,throughput (Gbit/s)\n1,2\n2,3\n4,3.5\n8,3.5\n16,3\n32,1\n", "rows")
	f.Add("step,time,clients,MB/s,latency (s),error_ratio\na,1,2,3,4,0\na,2,2,3,4,0\nb,1,5,3,4,50%\n", "subintervals")
	f.Add("jobs;wall clock time (s)\n1;60\n10;360\n", "")
	f.Fuzz(func(t *testing.T, text, points string) {
		if len(text) > 2000 {
			return // a bootstrap takes its time
		}
		tab, err := given.Read("t.csv", strings.NewReader(text), given.Options{})
		if err != nil {
			return
		}
		found, err := AnalyzeTable(tab, TableOptions{Points: points})
		if err != nil {
			return
		}
		raw, err := json.Marshal(found)
		if err != nil || found.Verdict == "" || !json.Valid(raw) {
			t.Fatalf("%v, verdict %q", err, found.Verdict)
		}
	})
}

// TestTableOfNoise checks that there is neither a knee nor growth if the lightest load cannot be
// distinguished from the best.
func TestTableOfNoise(t *testing.T) {
	f := tableText(t, "clients,Gbit/s\n1,50\n1,60\n1,75\n2,50\n2,58\n2,66\n4,30\n4,53\n4,70\n8,55\n8,66\n8,76\n", TableOptions{})
	if got := placed(f); got != (turned{clients: 1, low: 1, high: 8}) || f.Fits.Unfit != fit.NoBetter {
		t.Errorf("%+v, fits %+v", got, f.Fits)
	}
}
