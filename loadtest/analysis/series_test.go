package analysis

import (
	"math"
	"slices"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/storage"
)

// TestSeriesAddUp checks that the series of a run add up to its sums, in time and by server and
// class.
func TestSeriesAddUp(t *testing.T) {
	tier.Slow(t, "analyzes minutes of a run second by second")
	s := resultstest.Typical()
	s.Clients, s.Duration = []int{4, 64, 256}, 200
	s.Interval = func(iv *measure.Interval) {
		iv.Server = "a:1"
		iv.Failed = map[storage.Class]int64{storage.Canceled: 5}
	}
	s.More = func(iv *measure.Interval) []*measure.Interval {
		b := *iv
		b.Server, b.Done, b.Moved, b.Latency = "b:1", 0, 7, measure.Histogram{}
		b.Failed = map[storage.Class]int64{storage.Busy: 2, storage.Reset: int64(iv.Step - 1)}
		return []*measure.Interval{&b}
	}
	d, err := load(written(t, s))
	require.NoError(t, err)
	series := d.series(&Findings{})
	sum := int64(0)
	for _, column := range series.Heat.Counts {
		for _, n := range column {
			sum += n
		}
	}
	var done, busy, moved float64
	for _, p := range series.Points {
		done, busy, moved = done+p.Operations*p.Seconds, busy+p.ErrorsBy[storage.Busy]*p.Seconds, moved+p.Throughput*p.Seconds
	}
	if float64(sum) != math.Round(done) || busy != 2*3*202 {
		t.Errorf("%d operations in the heat, %g in the points; %g failures", sum, done, busy)
	}
	if !slices.Equal(series.Classes, []storage.Class{storage.Reset, storage.Busy}) {
		t.Errorf("classes %v", series.Classes)
	}
	if len(series.Servers) != 2 || series.Servers[1].Name != "b:1" || len(series.Servers[0].Points) > steps.MostServerPoints {
		t.Fatalf("servers: %+v", series.Servers)
	}
	spans, _ := d.run.Covered(&d.run.Service.TimeBins, series.Start)
	byServers, errors := 0.0, 0.0
	for k := range series.Servers {
		for i, p := range series.Servers[k].Points {
			byServers, errors = byServers+p.Throughput*spans[i], errors+p.Errors*spans[i]
		}
	}
	if math.Abs(byServers/moved-1) > 1e-9 || math.Abs(errors-float64(2*606+202+2*202)) > 1e-6 {
		t.Errorf("%g bytes of %g, %g errors", byServers, moved, errors)
	}
}

// TestTaskSeconds checks that a task's wall clock time follows from Little's law, without the
// pauses.
func TestTaskSeconds(t *testing.T) {
	s := resultstest.Typical()
	s.Clients, s.Think, s.Noise = []int{4, 64}, 0.5, 0
	f, series, err := AnalyzeWithSeries(written(t, s))
	require.NoError(t, err)
	for i := range f.Curve {
		x := &f.Curve[i]
		want := float64(x.Clients)/(float64(x.Tasks)/x.Duration) - 0.5
		if x.TaskSeconds == nil && want > 0 || x.TaskSeconds != nil && math.Abs(*x.TaskSeconds-want) > 1e-9 {
			t.Errorf("%d clients: %v, want %v", x.Clients, x.TaskSeconds, want)
		}
	}
	if series.Programs != nil {
		t.Errorf("programs of servers that tell nothing: %v", series.Programs)
	}
}

// TestBandOfTheBestModel checks that the best model has a band that contains its own curve, and
// that other models have no band.
func TestBandOfTheBestModel(t *testing.T) {
	f, _, err := AnalyzeWithSeries(written(t, resultstest.Typical()))
	require.NoError(t, err)
	for _, m := range []*Fit{f.Fits.Line, f.Fits.Plateau, f.Fits.Amdahl, f.Fits.USL, f.Fits.Decline, f.Fits.Poly4} {
		if m == nil {
			continue
		}
		if m.Name != f.Fits.Best {
			if m.Band != nil {
				t.Errorf("%s has a band", m.Name)
			}
			continue
		}
		if len(m.Band) != len(m.Drawn) {
			t.Fatalf("%d places, %d intervals", len(m.Drawn), len(m.Band))
		}
		for i, b := range m.Band {
			if y := m.Drawn[i][1]; b[0] > y*1.001 || b[1] < y*0.999 {
				t.Errorf("at %g clients the curve, %g, is not between %g and %g", m.Drawn[i][0], y, b[0], b[1])
			}
		}
	}
}
