package analysis

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/loadtest/scenario"
	"weir/monitor"
	"weir/storage"
)

// Every operation that ended well lies in one cell, in that of its time and of
// its latency, however long the run is and in whatever order its lines are.
func TestHeatCountsEachOperationOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, seconds := range map[string]int{"short": 30, "just enough": mostColumns, "long": 4000, "days": 300_000} {
		h := newHeatSum()
		start := resultstest.Start()
		total, slow := int64(0), 0
		var at []time.Duration
		for range 500 {
			at = append(at, time.Duration(r.IntN(seconds))*time.Second)
		}
		at = append(at, 0, time.Duration(seconds-1)*time.Second)
		for i, x := range at {
			var one measure.Histogram
			for range 1 + r.IntN(20) {
				one.Record(time.Duration(1e6 * math.Exp(r.NormFloat64())))
				total++
			}
			if i == 0 {
				one.Record(40 * time.Minute)
				total++
			}
			h.add(start.Add(x+500*time.Millisecond), &one)
		}
		heat := h.heat(start, float64(seconds))
		sum := int64(0)
		for i, column := range heat.Counts {
			if len(column) != len(heat.Latency)-1 || len(column) > mostRows {
				t.Fatalf("%s: %d rows, %d edges", name, len(column), len(heat.Latency))
			}
			for k, n := range column {
				sum += n
				if n > 0 && heat.Latency[k] > 2000 {
					slow++
					if x := at[0].Seconds(); x < heat.At[i] || x > heat.At[i+1] {
						t.Errorf("%s: the slow one of second %g lies between %g and %g", name, x, heat.At[i], heat.At[i+1])
					}
				}
			}
		}
		if sum != total || slow != 1 {
			t.Errorf("%s: %d of %d operations, %d slow ones", name, sum, total, slow)
		}
		if n := len(heat.Counts); n > mostColumns || len(heat.At) != n+1 || !slices.IsSorted(heat.At) || heat.At[0] != 0 ||
			heat.At[n] != float64(seconds) {
			t.Errorf("%s: %d columns from %g to %g", name, n, heat.At[0], heat.At[len(heat.At)-1])
		}
	}
	if newHeatSum().heat(resultstest.Start(), 1) != nil {
		t.Error("a heat of nothing")
	}
}

func TestHeatRows(t *testing.T) {
	h := newHeatSum()
	for _, ns := range []int64{0, 1, 63, 64, 1000, 12345, 1e6, 77e6, 1e9, 36e11, math.MaxInt64} {
		row := h.rowOf(ns)
		low, high := math.Exp2(float64(row)/perOctave), math.Exp2(float64(row+1)/perOctave)
		if x := float64(max(ns, 1)); x < low*0.99 || x > high*1.01 {
			t.Errorf("%d ns lie in the row from %g to %g", ns, low, high)
		}
	}
}

// What was read of a run adds up to its sums, in time and by server and class.
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
	if len(series.Servers) != 2 || series.Servers[1].Name != "b:1" || len(series.Servers[0].Points) > mostServerPoints {
		t.Fatalf("servers: %+v", series.Servers)
	}
	spans, _ := d.covered(&d.service.timeBins, series.Start)
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

// A long series of a host keeps its mean, whatever is joined.
func TestHostSeriesIsJoined(t *testing.T) {
	h := &HostSeries{}
	sum, known := 0.0, 0.0
	const n = 100_000
	for i := range n {
		p := HostPoint{At: float64(i) + 0.3, Seconds: 1, CPU: float64(i%7) / 7, User: -1, DiskBusy: -1}
		if i%3 == 0 {
			p.DiskBusy = 0.5
		}
		sum += p.CPU
		h.add(p)
	}
	if len(h.Points) > mostHostPoints || len(h.Points) < mostHostPoints/2 || h.last != n-0.7 {
		t.Errorf("%d points, the last at %g", len(h.Points), h.last)
	}
	got, seconds, last := 0.0, 0.0, -1.0
	for _, p := range h.Points {
		got, seconds, known = got+p.CPU*p.Seconds, seconds+p.Seconds, known+p.DiskBusy
		if p.At <= last || p.User != -1 {
			t.Fatalf("point at %g after %g: %+v", p.At, last, p)
		}
		last = p.At
	}
	if math.Abs(got-sum) > 1e-6*sum || seconds != n || math.Abs(known/float64(len(h.Points))-0.5) > 1e-9 {
		t.Errorf("mean %g, want %g; %g seconds; disk %g", got/n, sum/n, seconds, known/float64(len(h.Points)))
	}
}

// A task's wall clock time follows from Little's law, without the pauses.
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
	open := &data{plan: &scenario.Plan{Model: "open"}}
	if open.taskSeconds(&Step{Tasks: 1, ActiveClients: 1, Duration: 1}) != nil ||
		(&data{plan: &scenario.Plan{}}).taskSeconds(&Step{ActiveClients: 1, Duration: 1}) != nil {
		t.Error("a time of tasks that nobody knows")
	}
}

// The best model has a band that holds its own curve, others have none.
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

func TestProgramsAreListedOnce(t *testing.T) {
	w := &watched{byProgram: map[Program]bool{}}
	for range 3 {
		for _, version := range []string{"v5.7", "v5.6"} {
			w.program(&monitor.Sample{Host: "ds1:1094", Service: &monitor.Service{Program: "xrootd", Version: version, Kind: monitor.DataServer}})
		}
		w.program(&monitor.Sample{Host: "ds2"})
	}
	want := []Program{{"ds1:1094", monitor.DataServer, "xrootd", "v5.6"}, {"ds1:1094", monitor.DataServer, "xrootd", "v5.7"}}
	if got := w.programs(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
