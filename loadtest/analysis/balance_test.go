package analysis

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// TestBalance checks a service with all sources: all sources report the same, and gftp-3 is
// saturated first.
func TestBalance(t *testing.T) {
	shares := []float64{0.2, 0.2, 0.4, 0.2}
	f := of(t, resultstest.Balanced(shares...))
	b := f.Balance
	if b == nil || b.Source != ByClients || b.Balancer != monitor.HAProxy || len(b.Backends) != 4 {
		t.Fatalf("%+v", b)
	}
	for i := range f.Curve {
		s := &f.Curve[i]
		if len(s.Backends) != 4 || s.Balance == nil {
			t.Fatalf("step %d: %+v", i, s.Backends)
		}
		for k, x := range s.Backends {
			require.Near(t, "share", x.Share, shares[k], 0.02)
			for name, v := range map[string]*float64{"clients": x.Clients, "log": x.Log, "interface": x.Interface} {
				if v == nil {
					t.Fatalf("%s of %+v", name, x)
				}
				require.Near(t, name, *v, *x.Throughput, 0.001)
			}
			require.Near(t, "sessions", basics.Value(x.Sessions), math.Round(float64(s.Clients)*shares[k]), 0.001)
			require.Near(t, "transfers", basics.Value(x.Transfers), float64(s.Clients)*shares[k], 0.001)
			if x.Service != nil || x.Limit != 1000 || x.Status != "UP" || x.CPU == nil || x.Network == nil || *x.Balancer > 2000 {
				t.Errorf("%+v", x)
			}
		}
		require.Near(t, "sum", s.Balance.Sum, s.Throughput, 1e-9)
		require.Near(t, "imbalance", s.Balance.Imbalance, 1.6, 0.02)
		require.Near(t, "variation", s.Balance.Variation, math.Sqrt(0.12), 0.05)
		if c := s.Balance; c.ByChance <= 1 || c.Mostly < c.ByChance || c.Imbalance < c.Mostly || c.Choices < s.Done {
			t.Errorf("by chance: %+v", c)
		}
	}
	if b.First == nil || b.First.Backend != "gftp-3" || b.First.From != 32 || b.First.Resource != ResourceCPU ||
		!strings.Contains(b.First.Detail, "95% busy") {
		t.Errorf("first %+v", b.First)
	}
	if c := checkNamed(t, f, "backends agree"); c.Status != OK || !strings.Contains(c.Detail, "transfer logs of 4 backends") ||
		!strings.Contains(c.Detail, "interfaces") || !shows(&c, "check.backends.another_path") {
		t.Errorf("%+v", c)
	}
	if _, err := json.Marshal(f); err != nil {
		t.Fatal(err)
	}
}

// TestBackendsDisagree checks a log that has fewer bytes than the clients moved.
func TestBackendsDisagree(t *testing.T) {
	s := resultstest.Balanced(0.5, 0.5)
	s.Sample = func(x *monitor.Sample) {
		if x.Transfers != nil && x.Host == "gftp-2" {
			x.Transfers.Spans[0].Moved -= x.Transfers.Spans[0].Moved / 8
		}
	}
	f := of(t, s)
	if c := checkNamed(t, f, "backends agree"); c.Status != Warn || !strings.Contains(c.Detail, "-12.5% at most, of gftp-2") {
		t.Errorf("%+v", c)
	}
}

// TestHeadersOfBackends checks that the clients' counts of headers explain the excess of the
// servers' counts if files are small.
func TestHeadersOfBackends(t *testing.T) {
	for asked, want := range map[int64]string{300: OK, 3: Warn} {
		s := resultstest.Balanced(0.5, 0.5)
		interval, more := s.Interval, s.More
		small := func(iv *measure.Interval) { iv.Wire = iv.Moved + iv.Moved/1000*asked }
		s.Interval = func(iv *measure.Interval) { interval(iv); small(iv) }
		s.More = func(iv *measure.Interval) []*measure.Interval {
			all := more(iv)
			for _, x := range all {
				small(x)
			}
			return all
		}
		s.Sample = func(x *monitor.Sample) {
			if x.Cores == 8 {
				x.Nets[0].Sent += x.Nets[0].Sent / 4
			}
		}
		if c := checkNamed(t, of(t, s), "backends agree"); c.Status != want {
			t.Errorf("%d bytes asked for each 1000: %+v", asked, c)
		}
	}
}

// TestSourcesOfShares removes the sources one after the other.
func TestSourcesOfShares(t *testing.T) {
	s := resultstest.Balanced(0.25, 0.75)
	keep := map[string]bool{}
	interval, more := s.Interval, s.More
	s.Interval = func(iv *measure.Interval) {
		interval(iv)
		if !keep[ByClients] {
			iv.Server = ""
		}
	}
	s.More = func(iv *measure.Interval) []*measure.Interval {
		all := more(iv)
		for _, x := range all {
			if !keep[ByClients] {
				x.Server = ""
			}
		}
		return all
	}
	s.Sample = func(x *monitor.Sample) {
		if !keep[ByInterface] && x.Cores == 8 {
			x.Nets = nil
		}
		if !keep[ByLog] && x.Transfers != nil {
			x.Transfers.Spans = nil
		}
		if x.Balancer != nil && keep[ByBalancer] {
			for i := range x.Balancer.Servers {
				x.Balancer.Servers[i].Sent = x.Balancer.Servers[i].Connected * s.File
			}
		}
	}
	for _, c := range []struct{ keep, want string }{
		{"clients transfer log interface", ByClients}, {"transfer log interface", ByLog}, {"interface balancer", ByInterface},
		{"balancer", ByBalancer}, {"", BySessions},
	} {
		for _, name := range []string{ByClients, ByLog, ByInterface, ByBalancer} {
			keep[name] = strings.Contains(c.keep, name)
		}
		run := s
		f := of(t, run)
		if f.Balance == nil || f.Balance.Source != c.want {
			t.Fatalf("%q: %+v, want %s", c.keep, f.Balance, c.want)
		}
		last := f.Curve[len(f.Curve)-1]
		require.Near(t, "share by "+c.want, last.Backends[1].Share, 0.75, 0.02)
		if (last.Backends[1].Throughput == nil) != (c.want == BySessions) {
			t.Errorf("by %s: throughput %v", c.want, last.Backends[1].Throughput)
		}
	}
}

// TestBackendsThatNobodyNamed checks the backends of a redirector and of a balancer, without any
// host in the plan; a single server has no balance.
func TestBackendsThatNobodyNamed(t *testing.T) {
	s := resultstest.Balanced(0.5, 0.5)
	s.Hosts = append([]monitor.Host{}, s.Hosts...)
	plan := s
	plan.Hosts = nil
	f := of(t, plan)
	if f.Balance == nil || f.Balance.Backends[0].Name != "192.0.2.11" || len(f.Balance.Backends) != 2 ||
		f.Curve[0].Backends[0].Sessions != nil {
		t.Errorf("%+v", f.Balance)
	}
	if f = of(t, resultstest.Typical()); f.Balance != nil || f.Curve[0].Balance != nil {
		t.Errorf("one server: %+v", f.Balance)
	}
	if f = of(t, cluster()); f.Balance == nil || len(f.Balance.Backends) != 2 {
		t.Errorf("redirector: %+v", f.Balance)
	}
}

// TestUnnamedServers checks that data servers that are not among the hosts cause a warning, and
// count.
func TestUnnamedServers(t *testing.T) {
	s := resultstest.Balanced(0.5, 0.25, 0.25)
	s.Hosts[2].Address = []string{"192.0.2.99"}
	f := of(t, s)
	if len(f.Balance.Backends) != 4 || f.Balance.Backends[3].Name != "192.0.2.13" ||
		!fact.Has(f.WarningFacts, "warning.unnamed_servers") {
		t.Errorf("%+v, %q", f.Balance, f.Warnings)
	}
}

func TestWeightsAreDue(t *testing.T) {
	s := resultstest.Balanced(0.25, 0.75)
	s.Sample = func(x *monitor.Sample) {
		if x.Balancer != nil {
			x.Balancer.Servers[1].Weight = 3
		}
	}
	f := of(t, s)
	require.Near(t, "imbalance", f.Curve[2].Balance.Imbalance, 1, 0.02)
}

// TestSessionsFillABackend checks a run in which HAProxy lets sessions wait for gftp-2, whose
// machine is idle.
func TestSessionsFillABackend(t *testing.T) {
	s := resultstest.Balanced(0.5, 0.5)
	s.Sample = func(x *monitor.Sample) {
		if x.Cores == 8 {
			x.CPU = &monitor.CPU{User: 0.1, Idle: 0.9}
		}
		if x.Balancer != nil && x.Balancer.Servers[1].Connections >= 8 {
			x.Balancer.Servers[1].Queue = 3
		}
	}
	f := of(t, s)
	if b := f.Balance.First; b == nil || b.Backend != "gftp-2" || b.From != 16 || b.Resource != LimitSessions {
		t.Errorf("%+v", b)
	}
}

func TestBackendSeries(t *testing.T) {
	s := resultstest.Balanced(0.25, 0.75)
	f, series, err := AnalyzeWithSeries(written(t, s))
	require.NoError(t, err)
	if len(series.Backends) != 2 || series.Backends[1].Name != "gftp-2" {
		t.Fatalf("%+v", series.Backends)
	}
	sum, all := 0.0, 0.0
	for i, p := range series.Backends[1].Points {
		other := series.Backends[0].Points[i]
		sum += p.Throughput * p.Seconds
		all += (p.Throughput + other.Throughput) * p.Seconds
		if p.At != other.At || p.Clients <= 0 || math.Abs(p.Sessions-0.75*p.Clients) > 1 {
			t.Fatalf("%+v, %+v", p, other)
		}
	}
	require.Near(t, "share over time", sum/all, 0.75, 0.02)
	moved := 0.0
	for _, p := range series.Points {
		moved += p.Throughput * p.Seconds
	}
	require.Near(t, "bytes over time", all, moved, 1e-9)
	if f.Balance == nil {
		t.Error("no balance")
	}
}
