package analysis

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/storage"
)

// TestPartsOfTheGridFTPTests fits the twenty parts of the GridFTP-LVS tests of 2017 (clients,
// Gbit/s), to which its authors fitted a function of the fourth order: 29 Gbit/s with 2161 jobs.
func TestPartsOfTheGridFTPTests(t *testing.T) {
	f := &Findings{Measure: Throughput}
	for _, p := range [][2]float64{{269.667, 18.4091}, {564.05, 24.4837}, {808.64, 19.2264}, {918.111, 27.3855}, {969.9, 24.9335},
		{1000, 24.0919},
		{1249.95, 28.2273}, {1256.95, 28.0392}, {1726, 27.7564}, {1992.36, 29.756}, {2000, 28.1362}, {2244.44, 30.0901}, {2271.9, 29.9971},
		{2884.05, 28.9132}, {2995.68, 27.0332}, {3777.95, 23.9858}, {3999.6, 23.13}, {4617.17, 26.0991}, {4707.32, 22.4782}, {5000, 17.6206}} {
		f.Subintervals = append(f.Subintervals, Subinterval{Clients: p[0], Throughput: p[1] * 1e9 / 8})
	}
	fits := f.partFits()
	if fits == nil || fits.Total == nil || fits.Total.Max == nil || fits.Each == nil {
		t.Fatalf("%+v", fits)
	}
	if at, most := fits.Total.Max.Clients.Value, fits.Total.Max.Yield.Value*8/1e9; math.Abs(at-2161) > 1 || math.Abs(most-29) > 0.1 {
		t.Errorf("maximum of %v Gbit/s at %v clients", most, at)
	}
	if fits.Each.Max != nil && fits.Each.Max.Clients.Value > 500 {
		t.Errorf("what each client gets falls from the first on, and has its maximum at %v", fits.Each.Max.Clients)
	}
	f.Subintervals = f.Subintervals[:7]
	if fits := f.partFits(); fits != nil {
		t.Errorf("of seven parts: %+v", fits)
	}
}

// TestClientsThatAreJobs checks clients that are jobs of a batch system: they begin as slots become
// free, are all active, and leave. The curve is drawn over the active clients, although more were
// submitted, and each step has four parts.
func TestClientsThatAreJobs(t *testing.T) {
	s := resultstest.Service{Clients: []int{10, 20, 30, 40}, Duration: 10, File: 1 << 20}
	plan := s.Plan()
	plan.On.Batch, plan.On.JobPerClient = "htcondor", true
	dir := filepath.Join(t.TempDir(), "run")
	w, err := results.Create(dir, plan, results.About{Weir: "test", Start: resultstest.Start()})
	require.NoError(t, err)
	const slots = 33
	now, name := resultstest.Start(), 0
	tell := func(e measure.Event) {
		e.Time = now
		require.NoError(t, w.Event(e))
	}
	for _, step := range plan.Steps {
		now = now.Add(7 * time.Second) // the queue
		tell(measure.Event{Kind: measure.EventStep, Step: step.Number, Clients: step.Clients, Text: "begins", Duration: 10})
		there := min(step.Clients, slots)
		for range there {
			name++
			tell(measure.Event{Kind: measure.EventWorker, Text: "came", Worker: &measure.Worker{Name: fmt.Sprint(name), State: measure.Came,
				Host: "slot", Clients: 1, Offset: 0.01, Doubt: 0.002}})
		}
		for k := range 20 { // five seconds each: they come, are present twice, leave
			phase, active := measure.Measured, float64(there)
			switch {
			case k < 5:
				phase, active = measure.Ramp, float64(there)*(float64(k)+0.5)/5
			case k >= 15:
				phase, active = measure.GracefulStop, float64(there)*(19.5-float64(k))/5
			}
			v := &measure.Interval{Start: now, Seconds: 1, Step: step.Number, Phase: phase, Clients: active, Kind: storage.Read,
				Sum: measure.Sum{Moved: int64(active * (100 - active) * 1e4), Done: int64(active), Tasks: int64(active)}}
			for range int(active) {
				v.Latency.Record(time.Second)
			}
			require.NoError(t, w.Interval(v))
			now = now.Add(time.Second)
		}
		for i := range there {
			tell(measure.Event{Kind: measure.EventWorker, Text: "left", Worker: &measure.Worker{Name: fmt.Sprint(name - i), State: measure.Left,
				Host: "slot", Seconds: 15}})
		}
	}
	tell(measure.Event{Kind: measure.EventEnd, Text: measure.AllDone})
	require.NoError(t, w.Close())
	run, err := results.Open(dir)
	require.NoError(t, err)
	f, err := Analyze(run)
	require.NoError(t, err)
	if last := f.Curve[3]; last.Planned != 40 || last.Clients != slots || last.ActiveClients != slots ||
		last.Throughput != slots*(100-slots)*1e4 {
		t.Errorf("%+v", last)
	}
	if p := f.Subintervals[12:16]; len(f.Subintervals) != 16 || p[0].Clients != slots/2. || p[1].Clients != slots || p[2].Clients != slots ||
		p[3].Clients != slots/2. {
		t.Errorf("%+v", f.Subintervals)
	}
	if f.Parts == nil || f.Parts.Total == nil || f.Parts.Total.Points != 16 || f.Parts.Total.R2 < 0.9 {
		t.Errorf("%+v", f.Parts)
	}
	if len(f.Workers) != name || f.Workers[0].State != measure.Left || *f.Workers[0].Gone != 20 || *f.Workers[0].Offset != 0.01 {
		t.Errorf("%d workers, %+v", len(f.Workers), f.Workers[0])
	}
	for _, c := range f.Validity.Checks {
		if c.Status == Fail || c.Name == "data" && c.Status != OK || c.Name == "workers" &&
			!strings.Contains(c.Detail, "of the 40 clients of step 4 at most 33 were active at once: others waited for slots, "+
				"or started after the first had ended; their clocks were up to 10 ms off, known within 2 ms") {
			t.Errorf("%+v", c)
		}
	}
}
