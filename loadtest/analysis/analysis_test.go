package analysis

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
	"weir/storage"
)

// of writes the artificial run s and analyzes it.
func of(t *testing.T, s resultstest.Service) *Findings {
	t.Helper()
	f, err := Analyze(written(t, s))
	require.NoError(t, err)
	return f
}

func written(t *testing.T, s resultstest.Service) *results.Run {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, s.Write(dir))
	run, err := results.Open(dir)
	require.NoError(t, err)
	return run
}

func find(t *testing.T, f *Findings, name string) Check {
	t.Helper()
	for _, c := range f.Validity.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q", name)
	return Check{}
}

func TestCurveFollowsTheory(t *testing.T) {
	s := resultstest.Typical()
	f := of(t, s)
	if len(f.Curve) != len(s.Clients) {
		t.Fatalf("%d points, want %d", len(f.Curve), len(s.Clients))
	}
	for i, n := range s.Clients {
		p := &f.Curve[i]
		x := s.Rate(n)
		require.Near(t, "throughput", p.Throughput, x*float64(s.File), 0.02)
		require.Near(t, "operations", p.Operations, x, 0.02)
		require.Near(t, "mean latency", p.Latency.Mean, float64(n)/x, 0.02)
		require.Near(t, "median latency", p.Latency.P50, float64(n)/x, 0.03)
		require.Near(t, "p99 latency", p.Latency.P99, 1.49*float64(n)/x, 0.03)
		require.Near(t, "per client", p.PerClient, x*float64(s.File)/float64(n), 0.02)
		require.Near(t, "active clients", p.ActiveClients, float64(n), 1e-9)
		require.Near(t, "hold", p.Duration, float64(s.Duration), 1e-9)
		require.Near(t, "Little's law", *p.Little, 1, 0.001)
		share := x / s.Most()
		require.Near(t, "server CPU share", *p.ServerCPU, 3.4*share/4, 1e-6)
		require.Near(t, "client CPU cores", *p.ClientCores, 0.9*share, 1e-6)
		if p.ThroughputLow == nil || *p.ThroughputLow > p.Throughput || *p.ThroughputHigh < p.Throughput {
			t.Errorf("interval of %d clients does not hold its mean", n)
		}
		if p.Steady == nil || !*p.Steady {
			t.Errorf("%d clients: not steady", n)
		}
	}
	if f.Validity.Status != Valid {
		t.Errorf("%+v", f.Validity)
	}
}

func TestBestStepAndKnee(t *testing.T) {
	f := of(t, resultstest.Typical())
	// the yield of 64 clients is 2.5% lower, which is more than chance
	if o := f.Optimum; o == nil || o.Clients != 128 || o.ClientsLow != 128 || o.ClientsHigh != 128 || !o.Inside {
		t.Fatalf("optimum %+v", f.Optimum)
	}
	if p := f.Optimum.Peak; p == nil || p.Value < 95 || p.Value > 103 || *p.Low > 99 || *p.High < 99 {
		t.Errorf("peak %+v, theory has it at 99 clients", p)
	}
	if k := f.Knee; k == nil || k.ClientsLow == nil || *k.ClientsLow > float64(k.Clients) || *k.ClientsHigh < float64(k.Clients) ||
		k.Tested != 32 {
		t.Errorf("knee %+v", f.Knee)
	}
	if f.Fits == nil || f.Fits.Best != "usl" {
		t.Errorf("fits %+v", f.Fits)
	}
	if !strings.HasPrefix(f.Verdict, f.Headline+"\n") || strings.Contains(f.Headline, "\n") || len(f.Headline) > 100 {
		t.Errorf("headline %q of the verdict %q", f.Headline, f.Verdict)
	}
}

// TestKneeOfAStationIsWhereTheoryPutsIt checks the operating point of a station that serves k at a
// time: it is at k*(1+Z/S) clients, with S the service time: the crossing of its asymptotes.
func TestKneeOfAStationIsWhereTheoryPutsIt(t *testing.T) {
	const k, service, think = 8, 0.1, 0.3
	s := resultstest.Typical()
	s.Think, s.Lambda, s.Sigma, s.Kappa, s.Noise = 0, 1/(service+think), 0, 0, 0.005
	s.Clients = []int{1, 8, 16, 24, 32, 40, 48, 64}
	s.Interval = func(iv *measure.Interval) {
		most := k / service
		if share := most / (iv.Clients / (service + think)); share < 1 {
			iv.Moved = int64(float64(iv.Moved) * share)
		}
	}
	f := of(t, s)
	if f.Knee == nil || f.Knee.Clients != 32 {
		t.Fatalf("knee %+v, want 32 clients", f.Knee)
	}
	require.Near(t, "saturation", f.Knee.Saturation, k*(1+think/service), 0.25) // the lightest step has 2 to 3 operations a second
}

// A turned has the loads that determine a verdict.
type turned struct {
	clients, low, high int // of the optimum; 0: there is no optimum
	inside             bool
	knee               bool
}

func placed(f *Findings) (p turned) {
	if o := f.Optimum; o != nil {
		p = turned{o.Clients, o.ClientsLow, o.ClientsHigh, o.Inside, false}
	}
	p.knee = f.Knee != nil
	return p
}

func TestVerdicts(t *testing.T) {
	linear := func(s *resultstest.Service) { s.Sigma, s.Kappa = 0, 0 }
	for name, c := range map[string]struct {
		change func(*resultstest.Service)
		want   turned
		status string
	}{
		"grows":      {linear, turned{256, 256, 256, false, false}, Valid},
		"levels off": {func(s *resultstest.Service) { s.Sigma, s.Kappa, s.Noise = 0.5, 0, 0 }, turned{128, 128, 256, false, true}, Valid},
		"one step":   {func(s *resultstest.Service) { s.Clients = []int{8} }, turned{8, 8, 8, false, false}, Valid},
		"no steps":   {func(s *resultstest.Service) { s.Clients = nil }, turned{}, Invalid},
		"falls":      {func(s *resultstest.Service) { s.Kappa = 0.005 }, turned{16, 16, 16, true, true}, Valid},
		"no payload": {func(s *resultstest.Service) { s.File = 0 }, turned{128, 128, 128, true, true}, Valid},
		"no hosts": {func(s *resultstest.Service) { s.Sample = func(x *monitor.Sample) { *x = monitor.Sample{Time: x.Time} } },
			turned{128, 128, 128, true, true}, Valid},
		"all errors": {func(s *resultstest.Service) {
			s.Interval = func(iv *measure.Interval) {
				*iv = measure.Interval{
					Start: iv.Start, Seconds: 1, Step: iv.Step, Phase: iv.Phase, Clients: iv.Clients,
					Sum: measure.Sum{
						Failed: map[storage.Class]int64{storage.NotFound: 5},
					},
				}
			}
		}, turned{}, Invalid},
		"all errors, though something moved": {func(s *resultstest.Service) {
			s.Interval = func(iv *measure.Interval) {
				*iv = measure.Interval{
					Start: iv.Start, Seconds: 1, Step: iv.Step, Phase: iv.Phase, Clients: iv.Clients,
					Sum: measure.Sum{
						Moved: 920 * int64(iv.Step), Failed: map[storage.Class]int64{storage.Refused: 5},
					},
				}
			}
		}, turned{}, Invalid},
		"only errors beyond a load": {func(s *resultstest.Service) {
			s.Interval = func(iv *measure.Interval) {
				if iv.Step > 5 {
					*iv = measure.Interval{Start: iv.Start, Seconds: 1, Step: iv.Step, Phase: iv.Phase, Clients: iv.Clients,
						Sum: measure.Sum{Failed: map[storage.Class]int64{storage.Refused: 5}}}
				}
			}
		}, turned{16, 16, 16, false, false}, Suspect},
		"nothing happens": {func(s *resultstest.Service) {
			s.Interval = func(iv *measure.Interval) {
				*iv = measure.Interval{Start: iv.Start, Seconds: 1, Step: iv.Step, Phase: iv.Phase}
			}
		}, turned{}, Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			s := resultstest.Typical()
			s.Duration = 8
			c.change(&s)
			f := of(t, s)
			if got := placed(f); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if f.Validity.Status != c.status && name != "only errors beyond a load" {
				t.Errorf("%s: %s\n%+v", f.Validity.Status, f.Verdict, f.Validity.Checks)
			}
			if f.Headline == "" || len(f.Headline) > longest || strings.Contains(f.Headline, "\n") || !strings.HasPrefix(f.Verdict, f.Headline) {
				t.Errorf("headline %q of the verdict %q", f.Headline, f.Verdict)
			}
			t.Log(f.Verdict)
			if _, err := json.Marshal(f); err != nil {
				t.Error(err)
			}
		})
	}
}

// shows reports whether a check has a fact with the code, or text in its detail.
func shows(c *Check, want string) bool {
	return fact.Has(c.Facts, want) || strings.Contains(c.Detail, want)
}

// TestChecksSeeFaults checks that each fault is detected by its check.
func TestChecksSeeFaults(t *testing.T) {
	hold := func(change func(*measure.Interval)) func(*resultstest.Service) {
		return func(s *resultstest.Service) { s.Interval = change }
	}
	sample := func(change func(*monitor.Sample)) func(*resultstest.Service) {
		return func(s *resultstest.Service) { s.Sample = change }
	}
	off := func(factor float64) func(*resultstest.Service) { // the clients count too much or too little
		return hold(func(iv *measure.Interval) {
			iv.Moved = int64(float64(iv.Moved) * factor)
			iv.Wire = int64(float64(iv.Wire) * factor)
		})
	}
	for name, c := range map[string]struct {
		change       func(*resultstest.Service)
		check, state string
		status, want string
	}{
		"clients count 3% too much": {off(1.03), "both ends agree", Warn, Suspect, "-2."},
		"clients count twice":       {off(2), "both ends agree", Fail, Invalid, "-50.0%"},
		"clients miss 10%":          {off(0.9), "both ends agree", Fail, Invalid, "+11."},
		"only an interface, other traffic": {sample(func(s *monitor.Sample) {
			s.Procs = nil
			for i := range s.Nets {
				s.Nets[i].Sent *= 2
			}
		}), "both ends agree", Warn, Suspect, "+104"},
		"only the loopback, other traffic": {sample(func(s *monitor.Sample) {
			s.Procs = nil
			for i := range s.Nets {
				s.Nets[i].Name = hosts.Loopback
				s.Nets[i].Sent *= 2
			}
		}), "both ends agree", Skipped, Valid, "+105"},
		"six operations": {func(s *resultstest.Service) { s.Clients, s.Duration, s.Lambda, s.Sigma = []int{1}, 6, 1, 0 }, "enough data",
			Warn, Suspect, "6 operations"},
		"two operations a client": {func(s *resultstest.Service) { s.Clients, s.Lambda, s.Sigma, s.Kappa = []int{200}, 0.25, 0, 0 },
			"enough data", Warn, Suspect, "2 operations per client"},
		"two seconds": {func(s *resultstest.Service) { s.Duration = 2 }, "enough data", Warn, Suspect, "2 batch means"},
		"names, and files of one byte": {func(s *resultstest.Service) {
			s.File = 1
			s.Interval = func(iv *measure.Interval) { iv.Wire = 300 * iv.Moved }
		}, "both ends agree", Skipped, Valid, "check.bytes.requests"},
		"a wide interval": {func(s *resultstest.Service) { s.Clients, s.Noise, s.Duration = []int{8}, 0.9, 5 }, "enough data", Warn,
			Suspect, "interval"},

		"the service counts for itself": {sample(func(s *monitor.Sample) {
			for i := range s.Procs {
				s.Procs[i].Sent, s.Procs[i].Written = s.Procs[i].Written, 0
			}
			s.Nets = nil
		}), "both ends agree", OK, Valid, "service stored"},
		"small reads, whose requests are 3% of all bytes": {func(s *resultstest.Service) {
			off(1.03)(s)
			s.Sample = func(s *monitor.Sample) {
				s.Nets = nil
				for i := range s.Procs {
					s.Procs[i].Read = s.Procs[i].Written * 3 / 100
				}
			}
		}, "both ends agree", OK, Valid, "(written and read)"},
		"nothing to compare with": {sample(func(s *monitor.Sample) { s.Procs, s.Nets = nil, nil }), "both ends agree", Skipped, Valid,
			"check.bytes.no_source"},
		"generator eats the CPU": {sample(func(s *monitor.Sample) {
			if s.Role == hosts.Client {
				s.Procs[0].User = 3.9
			}
		}), "generator", Fail, Invalid, "of the CPU"},
		"starts are late": {hold(func(iv *measure.Interval) {
			for range 1000 {
				iv.Late.Record(2 * time.Second)
			}
		}), "generator", Fail, Invalid, "starts late by 2"},
		"clients wait between operations": {hold(func(iv *measure.Interval) { iv.OperationTime *= 0.8 }), "Little's law", Fail, Invalid,
			"check.little.delayed_operations"},
		"clock set back": {hold(func(iv *measure.Interval) {
			if iv.Step > 3 {
				iv.Start = iv.Start.Add(-25 * time.Second)
			}
		}), "clock", Fail, Invalid, "check.clock.set_back"},
		"wrong payload": {hold(func(iv *measure.Interval) {
			if iv.Step == 2 {
				iv.Failed = map[storage.Class]int64{storage.Checksummed: 1}
			}
		}), "verification", Fail, Invalid, "check.verification.wrong"},
		"wrong payload, found later": {hold(func(iv *measure.Interval) {
			if iv.Step == 2 {
				iv.Wrong = 1
			}
		}), "verification", Fail, Invalid, "check.verification.wrong"},
		"nothing verified": {hold(func(iv *measure.Interval) { iv.Verified = 0 }), "verification", Skipped, Valid, "check.verification.none"},
		"service without checksums": {hold(func(iv *measure.Interval) { iv.Verified, iv.Unverifiable = 0, 1 }), "verification", Skipped, Valid,
			"check.verification.no_checksums"},
		"some errors": {hold(func(iv *measure.Interval) {
			iv.Failed = map[storage.Class]int64{storage.Timeout: iv.Done / 20}
		}), "errors", Warn, Suspect, "timeout"},
		"clients that wait for nothing": {func(s *resultstest.Service) {
			s.Interval = func(iv *measure.Interval) {
				if iv.Step == 6 && iv.Phase == measure.Ramp {
					iv.Step, iv.Phase, iv.Failed = 5, measure.GracefulStop, map[storage.Class]int64{storage.Timeout: 4}
				}
			}
		}, "errors", Warn, Suspect, "4 operations at 16 clients failed only in the graceful stop: up to 25%"},
		"drift": {hold(func(iv *measure.Interval) {
			iv.Moved = int64(float64(iv.Moved) * (1 + 0.05*float64(iv.Start.Unix()%10)))
		}), "steadiness", Warn, "", "check.steadiness.drifted"},
		"cut off": {func(s *resultstest.Service) { s.Unfinished = true }, "data", Warn, Suspect, "check.data.aborted"},
		"others use the CPU": {sample(func(s *monitor.Sample) { s.CPU.User += 0.3 }), "quiet machines", Warn, Suspect,
			"other programs used at most 32.5%"},
		"the kernel uses the CPU": {sample(func(s *monitor.Sample) { // of an encrypted disk
			s.CPU.System, s.Kernel = s.CPU.System+0.3, 0.3*s.Seconds*float64(s.Cores)
		}), "quiet machines", OK, "", "other programs used at most 2.5%"},
		"others use the CPU behind a full link": {func(s *resultstest.Service) {
			s.Sample = func(s *monitor.Sample) {
				if s.CPU != nil {
					s.CPU.User += 0.3
				}
			}
			s.MoreSamples = func(end time.Time, step int) []*monitor.Sample {
				return []*monitor.Sample{resultstest.LinkSample("link far", step, end, 0.99, 0)}
			}
		}, "quiet machines", OK, "", "and 1% while no core was idle and the link was not full"},
		"others behind interrupts": {sample(func(s *monitor.Sample) { // which count as the processes' time
			half := s.CPU.System / 2
			s.CPU.System, s.CPU.IRQ, s.Others = half, s.CPU.IRQ+half, 0.25*s.Seconds*float64(s.Cores)
		}), "quiet machines", Warn, Suspect, "other programs used at most 25%"},
		"others use idle cores": {sample(func(s *monitor.Sample) { s.CPU = &monitor.CPU{User: 0.6, Idle: 0.4} }), "quiet machines", OK, Valid,
			"and 0% while no core was idle"},
		"noisy neighbor": {sample(func(s *monitor.Sample) { s.CPU.Steal = 0.1 }), "quiet machines", Warn, Suspect, "hypervisor used 10%"},
		"expensive":      {sample(func(s *monitor.Sample) { s.Cost = 0.2 }), "monitoring", Warn, Suspect, "20%"},
		"missing seconds": {hold(func(iv *measure.Interval) {
			if iv.Start.Second()%10 == 5 {
				iv.Seconds = 0.5
			}
		}), "data", Warn, Suspect, "check.data.gap"},
	} {
		t.Run(name, func(t *testing.T) {
			s := resultstest.Typical()
			c.change(&s)
			f := of(t, s)
			got := find(t, f, c.check)
			if unsound := got.Status == Warn || got.Status == Fail; unsound != (got.Effect != "") {
				t.Errorf("%+v: a check that warns or fails names its effect, others do not", got)
			}
			if got.Status != c.state || !shows(&got, c.want) || c.status != "" && f.Validity.Status != c.status {
				t.Errorf("result %s, check %+v; want %s, %q, result %s", f.Validity.Status, got, c.state, c.want, c.status)
				for _, x := range f.Validity.Checks {
					t.Log(x)
				}
			}
		})
	}
}

func TestOpenModel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := resultstest.Typical()
	plan := s.Plan()
	plan.Model = "open"
	plan.Steps = plan.Steps[:2]
	plan.Steps[0].Rate, plan.Steps[1].Rate = 50, 100
	plan.Steps[0].Clients, plan.Steps[1].Clients = 10, 10 // more than are at work
	w, err := results.Create(dir, plan, results.About{Run: "x"})
	require.NoError(t, err)
	for i := range 20 {
		iv := &measure.Interval{Start: resultstest.Start().Add(time.Duration(i) * time.Second), Seconds: 1, Step: 1 + i/10,
			Phase: measure.Measured, Clients: 3, Sum: measure.Sum{Moved: 50 << 20, Done: 50}}
		if i >= 10 {
			iv.Missed = 50
		}
		require.NoError(t, w.Interval(iv))
	}
	require.NoError(t, errors.Join(w.Event(measure.Event{Kind: measure.EventEnd}), w.Close()))
	run, err := results.Open(dir)
	require.NoError(t, err)
	f, err := Analyze(run)
	require.NoError(t, err)
	if c := find(t, f, "Little's law"); c.Status != Skipped {
		t.Errorf("%+v", c)
	}
	if c := find(t, f, "generator"); c.Status == OK || !strings.Contains(c.Detail, "100 arrivals/s: 50% of the arrivals never started") {
		t.Errorf("%+v", c)
	}
	if !strings.Contains(f.Verdict, "50 arrivals/s") {
		t.Error(f.Verdict)
	}
}
