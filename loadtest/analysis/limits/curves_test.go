package limits

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
	"weir/monitor"
	"weir/storage"
)

// step returns a step with these hosts.
func step(f steps.Figures, hosts ...hosts.Host) *steps.Working {
	for _, h := range hosts {
		f.Hosts = append(f.Hosts, h.HostFigure)
	}
	return &steps.Working{Figures: &f, Machines: hosts}
}

// TestNoiseOfALightStepIsNoPlateau checks that a light step whose noise hides the growth of the
// curve is not a plateau if heavier steps clearly grow.
func TestNoiseOfALightStepIsNoPlateau(t *testing.T) {
	type point struct {
		clients         int
		low, mean, high float64
	}
	for name, c := range map[string]struct {
		steps []point
		level int
		sure  bool
	}{
		"one slow operation in ten": {[]point{{1, 0, 24, 50}, {4, 35, 77, 120}, {16, 300, 359, 420}, {64, 1110, 1289, 1470}}, -1, false},
		"the plateau comes later":   {[]point{{1, 0, 24, 50}, {4, 70, 77, 84}, {16, 300, 310, 320}, {64, 300, 310, 320}}, 2, true},
		"all is noise":              {[]point{{1, 0, 100, 210}, {4, 0, 120, 240}, {16, 0, 300, 700}}, 0, false},
		"a dip on a plateau":        {[]point{{1, 0, 100, 250}, {4, 9, 10, 11}, {16, 98, 100, 102}}, 0, false},
	} {
		curve := steps.CurveOf(nil, steps.Rate, "", false)
		for _, s := range c.steps {
			curve.Steps = append(curve.Steps, step(steps.Figures{Clients: s.clients, ActiveClients: float64(s.clients), Done: 100,
				Operations:    s.mean,
				OperationsLow: &s.low, OperationsHigh: &s.high}))
		}
		if l := newLadder(curve, nil); l.level != c.level || l.sure != c.sure {
			t.Errorf("%s: level from step %d on, sure %v; want %d, %v", name, l.level, l.sure, c.level, c.sure)
		}
	}
}

// TestManyServersAreOneBottleneck checks that the most used of many saturated servers represents
// all of them.
func TestManyServersAreOneBottleneck(t *testing.T) {
	curve := steps.CurveOf(nil, steps.Throughput, "closed", false)
	for i, n := range []int{8, 16, 32, 64} {
		s := steps.Figures{Step: i + 1, Clients: n, ActiveClients: float64(n), Done: 100, Throughput: min(float64(n), 20) * 1e6}
		var servers []hosts.Host
		for k, host := range []string{"ds1", "ds2", "ds3"} {
			cpu := min(1, 0.99*float64(n)/20) - 0.01*float64(k)
			servers = append(servers, hosts.Host{HostFigure: hosts.HostFigure{Host: host, Role: hosts.Server, Cores: 4, CPU: &cpu}})
		}
		curve.Steps = append(curve.Steps, step(s, servers...))
	}
	got := Bottlenecks(curve, ResourcesOf(&steps.Run{}, curve), 3)
	if len(got) != 2 || got[0].Host != "ds1" || got[0].From != 32 || got[1].Host != "ds2" {
		t.Fatalf("%+v", got)
	}
	resources, _ := fact.Find(got[0].Facts, "limit.also").Values["resources"].(fact.Shown)
	also, _ := resources.Value.([]string)
	if !slices.Equal(also, []string{"the CPU of ds2", "the CPU of ds3"}) ||
		fact.Find(got[1].Facts, "limit.also.host").Values["host"] != "ds3" {
		t.Errorf("%+v", got)
	}
}

// TestOthersBesideASimulatedService checks that programs that fill the CPU are named if the clients
// run with a simulated service, which is a part of their process. If the clients use little of the
// CPU, the limit is unknown.
func TestOthersBesideASimulatedService(t *testing.T) {
	for _, c := range []struct {
		own            float64 // cores of the clients' process
		resource, text string
	}{{0.5, hosts.ResourceCPU, "the CPU of here, 87.5% of it used by other programs"}, {0.04, LimitUnknown, "unknown"}} {
		curve := steps.CurveOf(nil, steps.Rate, "closed", false)
		for i, n := range []int{1, 2, 4, 8} {
			curve.Steps = append(curve.Steps, step(steps.Figures{Step: i + 1, Clients: n, ActiveClients: float64(n), Done: 100, Operations: 50},
				hosts.Host{HostFigure: hosts.HostFigure{Host: "here", Role: "both", Cores: 4, CPU: new(1.0), ClientCores: &c.own}, UserSystem: new(1.0),
					Simulated: true}))
		}
		got := Bottlenecks(curve, ResourcesOf(&steps.Run{}, curve), 0)
		if len(got) == 0 || got[0].Resource != c.resource || got[0].Text() != c.text {
			t.Errorf("clients use %.2f cores: %+v", c.own, got)
		}
	}
}

// TestHintsOfALimitInside checks that signs of limits that are not shares of a resource are listed
// with a limit inside the server.
func TestHintsOfALimitInside(t *testing.T) {
	curve := steps.CurveOf(nil, steps.Rate, "closed", false)
	for i, n := range []int{1, 2, 4, 8} {
		cpu := 0.2
		curve.Steps = append(curve.Steps, step(steps.Figures{Step: i + 1, Clients: n, ActiveClients: float64(n), Done: 100,
			Operations: 50, Errors: 100,
			ErrorRatio: 0.5, ErrorsBy: map[storage.Class]int64{storage.Busy: 100}, Waits: 40, Waited: 80,
			Servers: []steps.Share{{Name: "ds1:1094"}, {Name: "ds2:1094"}, {Name: "ds2:1095"}, {}}},
			hosts.Host{HostFigure: hosts.HostFigure{Host: "ds1", Role: hosts.Server, Cores: 4, CPU: &cpu, ListenDrops: 3, Retransmits: 7}},
			hosts.Host{HostFigure: hosts.HostFigure{Host: "rd:1094", Role: hosts.Server,
				Service: &hosts.ServerFigure{Kind: monitor.Redirector, Threads: 8, Refused: 5, Limited: 2, Queue: 1}}}))
	}
	got := Bottlenecks(curve, ResourcesOf(&steps.Run{}, curve), 3)
	if len(got) != 1 || got[0].Resource != LimitUnknown || got[0].Reason != ReasonUnwatched {
		t.Fatalf("%+v", got)
	}
	for code, values := range map[string]map[string]any{
		"limit.hint.errors":   {"load": "8 clients", "share": 0.5, "classes": "100 busy"},
		"limit.hint.waits":    {"load": "8 clients", "waits": int64(40), "mean": 2.0},
		"limit.hint.machines": {"servers": 2, "monitored": 1},
		"limit.hint.service":  {"host": "rd:1094", "refused": 5.0, "waiting": 1, "limited": 2.0},
		"limit.hint.use":      {"host": "ds1", "use": "a full listen queue dropped 3 connections/s"},
	} {
		if f := fact.Find(got[0].Facts, code); !maps.Equal(f.Values, values) {
			t.Errorf("%s: %v, want %v", code, f.Values, values)
		}
	}
}

// TestRedirectorIsNamed checks that a redirector whose threads are all busy is distinguished from
// its data servers.
func TestRedirectorIsNamed(t *testing.T) {
	curve := steps.CurveOf(nil, steps.Rate, "closed", false)
	for i, n := range []int{1, 4, 16, 64} {
		busy := min(8, float64(n))
		curve.Steps = append(curve.Steps, step(steps.Figures{Step: i + 1, Clients: n, ActiveClients: float64(n), Done: 100,
			Operations: 10 * busy},
			hosts.Host{HostFigure: hosts.HostFigure{Host: "ds1:1094", Role: hosts.Server,
				Service: &hosts.ServerFigure{Kind: monitor.DataServer, Threads: 40, Busy: 5}}},
			hosts.Host{HostFigure: hosts.HostFigure{Host: "rd:1094", Role: hosts.Server,
				Service: &hosts.ServerFigure{Kind: monitor.Redirector, Threads: 8, Busy: busy, QueueMean: float64(n) - busy}}}))
	}
	if got := Bottlenecks(curve, ResourcesOf(&steps.Run{}, curve), 3); len(got) != 1 || got[0].Host != "rd:1094" || got[0].From != 16 ||
		!strings.Contains(got[0].Facts[0].Text, "8 of the 8 threads of this redirector were busy") {
		t.Errorf("%+v", got)
	}
}

// TestBottleneckOfArrivals checks that the load of the open model is the planned rate of arrivals.
func TestBottleneckOfArrivals(t *testing.T) {
	curve := steps.CurveOf(nil, steps.Rate, "open", false)
	for i, rate := range []float64{100, 200, 400, 800} {
		cpu := min(0.99, rate/300)
		curve.Steps = append(curve.Steps, step(steps.Figures{Step: i + 1, Clients: 1000, Rate: rate, ActiveClients: rate / 10, Done: 100,
			Operations: min(rate, 300)},
			hosts.Host{HostFigure: hosts.HostFigure{Host: "store", Role: hosts.Server, Cores: 4, CPU: &cpu}}))
	}
	got := Bottlenecks(curve, ResourcesOf(&steps.Run{}, curve), 3)
	if len(got) != 1 || got[0].Resource != hosts.ResourceCPU || got[0].Step != 3 ||
		fact.Find(got[0].Facts, "limit.saturated").Values["load"] != "400 arrivals/s" ||
		fact.Find(got[0].Facts, "limit.growth.none").Text != "From there on the rate does not grow (300 operations/s, "+
			"then at most 300 operations/s), while the number of arrivals grows 2-fold (to 800 arrivals/s)." {
		t.Errorf("%+v", got)
	}
	curve.Steps = curve.Steps[:2]
	if got := Bottlenecks(curve, ResourcesOf(&steps.Run{}, curve), 1); len(got) != 1 || got[0].Resource != LimitNone ||
		got[0].Facts[0].Code != "limit.straight.open" {
		t.Errorf("%+v", got)
	}
}

// TestBottleneckOfStrangeCurves checks that unusual curves cause neither a panic nor a text with an
// invalid number.
func TestBottleneckOfStrangeCurves(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	strange := []float64{nan, inf, 0, -1, 1, 0.95}
	for _, x := range strange {
		for _, y := range strange {
			curve := steps.CurveOf(nil, steps.Throughput, "", false)
			a, b := stats.OrZero(x), stats.OrZero(y) // as figures of hosts always are
			for i, n := range []int{1, 1, 0, 4, 8} {
				curve.Steps = append(curve.Steps, step(steps.Figures{Step: i, Clients: n, ActiveClients: x, Throughput: y, Done: int64(i),
					Latency: &steps.Quantiles{Mean: x}},
					hosts.Host{HostFigure: hosts.HostFigure{Role: "both", CPU: &a, Cores: 2, MostUsedCore: &b, IOWait: &a, DiskBusy: &a, DiskQueue: &b,
						ClientCores: &a, ServerCores: &b, ReceivedShare: &a, SentShare: &b, NetSpeed: b, Steal: &b,
						Service: &hosts.ServerFigure{Threads: a, Busy: b, QueueMean: a, Connections: b, Cores: a}},
						Groups: []hosts.GroupFigure{{Cores: hosts.Ranged{Mean: a}, Measured: 1, Busiest: hosts.Ranged{Mean: b, Half: a}},
							{Cores: hosts.Ranged{Mean: b}}},
						UnknownTraffic: a, UserSystem: &a}))
			}
			for n := range len(curve.Steps) + 1 {
				part := curve.With(curve.Steps[:n])
				for _, b := range Bottlenecks(part, ResourcesOf(&steps.Run{}, part), n-1) {
					if said := strings.Join(b.Evidence, " "); strings.Contains(said, "NaN") || strings.Contains(said, "Inf") || said == "" {
						t.Errorf("%v and %v: %s", x, y, said)
					}
				}
			}
		}
	}
}
