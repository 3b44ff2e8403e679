package analysis

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// told analyzes a run of two steps of 8 and 16 clients in processes, with additional events. The
// share gone of the clients of the second step is absent.
func told(t *testing.T, gone float64, events ...measure.Event) *Findings {
	t.Helper()
	s := resultstest.Typical()
	s.Clients, s.Duration = []int{8, 16}, 6
	s.Interval = func(iv *measure.Interval) {
		if iv.Step == 2 {
			iv.Clients *= 1 - gone
		}
	}
	d, err := load(written(t, s))
	require.NoError(t, err)
	for i := range events {
		d.run.Events = append(d.run.Events, &events[i])
	}
	return d.findings()
}

func TestLostWorkers(t *testing.T) {
	begin := measure.Event{Kind: measure.EventStep, Step: 1, Time: resultstest.Start(), Text: "step 1: 8 clients", Processes: 4}
	lost := measure.Event{Kind: measure.EventWarning, Time: resultstest.Start().Add(12500 * time.Millisecond),
		Worker: &measure.Worker{Name: "3", State: measure.Lost}}
	came := measure.Event{Kind: "worker", Time: begin.Time, Worker: &measure.Worker{Name: "3", State: measure.Came}}
	for name, c := range map[string]struct {
		gone   float64
		events []measure.Event
		status string
		say    string
	}{
		"none": {0, []measure.Event{begin}, OK, "check.workers.all"},
		"a few": {0.05, []measure.Event{begin, came, lost}, Warn, "lost worker 3 during the measurement of step 2; on average 15.2 of the 16 " +
			"clients were active, 5% were missing"},
		"a quarter": {0.25, []measure.Event{begin, came, lost}, Fail, "25% were missing; the curve"},
		"given up later": {0.25, []measure.Event{begin, came,
			{Kind: "warning", Time: lost.Time.Add(30 * time.Second), Worker: &measure.Worker{Name: "3", State: measure.Lost,
				Silent: 30}}}, Fail, "lost worker 3 during the measurement of step 2; on average 12.0 of the 16 clients were active, 25% were missing"},
		"at the end": {0, []measure.Event{begin, came, {Kind: "warning", Time: lost.Time.Add(time.Hour), Worker: lost.Worker}}, Warn,
			"check.workers.lost_outside"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := find(t, told(t, c.gone, c.events...), "workers"); got.Status != c.status || !shows(&got, c.say) {
				t.Errorf("%+v, want %s: %s", got, c.status, c.say)
			}
		})
	}
	for _, c := range told(t, 0).Validity.Checks {
		if c.Name == "workers" {
			t.Errorf("a run of one process has a check of its workers: %+v", c)
		}
	}
}

// TestMissingWorkersAreCounted checks that the number of workers, and the average number of
// clients, that a step lacked is recorded.
func TestMissingWorkersAreCounted(t *testing.T) {
	came := func(name string, after time.Duration) measure.Event {
		return measure.Event{Kind: measure.EventWorker, Time: resultstest.Start().Add(after),
			Worker: &measure.Worker{Name: name, State: measure.Came}}
	}
	gone := came("3", 12500*time.Millisecond)
	gone.Worker.State = measure.Lost
	begin := measure.Event{Kind: measure.EventStep, Step: 1, Time: resultstest.Start(), Text: "step 1: 8 clients", Processes: 4}
	for name, c := range map[string]struct {
		share          float64
		events         []measure.Event
		first, second  int
		clientsMissing float64
	}{
		"none":      {0, []measure.Event{begin, came("3", 0), came("4", 0)}, 0, 0, 0},
		"lost":      {0.25, []measure.Event{begin, came("3", 0), came("4", 0), gone}, 0, 1, 4},
		"came late": {0, []measure.Event{begin, came("3", 0), came("4", 9*time.Second)}, 1, 0, 0},
		"not begun": {0.5, []measure.Event{begin, {Kind: "warning", Step: 2, Time: resultstest.Start(), Text: "pending", Missing: 3}}, 0, 3,
			8},
		"left orderly": {0, []measure.Event{begin, came("3", 0),
			{Kind: "worker", Time: gone.Time, Worker: &measure.Worker{Name: "3", State: measure.Left}}}, 0, 0, 0},
	} {
		f := told(t, c.share, c.events...)
		a, b := &f.Curve[0], &f.Curve[1]
		if a.WorkersMissing != c.first || b.WorkersMissing != c.second || b.ClientsMissing < c.clientsMissing-0.01 ||
			b.ClientsMissing > c.clientsMissing+0.01 {
			t.Errorf("%s: %d, then %d workers and %g clients are missing", name, a.WorkersMissing, b.WorkersMissing, b.ClientsMissing)
		}
	}
}

// TestGeneratorIsThrottled checks that a generator that its CPU quota stops is not ok, however
// little of its machine it uses. If the service is in the same group, the CPU of the two processes
// is the limit.
func TestGeneratorIsThrottled(t *testing.T) {
	for name, c := range map[string]struct {
		quota, clients, servers float64 // cores
		throttled               int64
		status, limit           string
	}{
		"most of the time":   {0.06, 0.0598, 0, 5, Fail, ResourceGenerator},
		"seldom":             {2, 0.5, 0, 1, Warn, ""},
		"never":              {2, 0.5, 0, 0, OK, ""},
		"with its service":   {1, 0.3, 0.69, 8, Warn, ResourceCPU},
		"beside its service": {0.3, 0.3, 2, 8, Fail, ResourceGenerator},
	} {
		s := resultstest.Typical()
		s.Clients = s.Clients[len(s.Clients)-1:]
		s.Sample = func(m *monitor.Sample) {
			if m.Role == hosts.Server {
				m.Procs = nil
				return
			}
			m.Quota = &monitor.Quota{Cores: c.quota, Group: "/job", Periods: 10, Throttled: c.throttled}
			m.CPU = &monitor.CPU{User: (c.clients + c.servers) / 4, Idle: 1 - (c.clients+c.servers)/4}
			m.Procs = []monitor.Proc{{Name: "weir", Role: hosts.Client, Count: 1, Threads: 5, User: c.clients}}
			if c.servers > 0 {
				m.Role = "both"
				m.Procs = append(m.Procs, monitor.Proc{Name: "stored", Role: hosts.Server, Count: 1, Threads: 5, User: c.servers})
			}
		}
		f := of(t, s)
		if got := find(t, f, "generator"); got.Status != c.status || !shows(&got, "check.generator.quota") {
			t.Errorf("%s: %+v", name, got)
		}
		if c.limit != "" && f.Bottleneck[0].Resource != c.limit {
			t.Errorf("%s: %+v", name, f.Bottleneck[0])
		}
	}
}

// TestGeneratorWithAQuota checks that a generator that may use one core of four is saturated at one
// core.
func TestGeneratorWithAQuota(t *testing.T) {
	s := limit(func(x *monitor.Sample, _, _ float64) {
		if x.Role == hosts.Client {
			x.Procs[0].User, x.Procs[0].Files = 0.97, 300
		}
	})
	r := s.service()
	d, err := load(written(t, r))
	require.NoError(t, err)
	d.run.About.Environment = json.RawMessage(`{"cores":4,"cores_used":1,"open_files_soft":1024,"ephemeral_port_low":32768,` +
		`"ephemeral_port_high":60999}`)
	f := d.findings()
	if c := find(t, f, "generator"); c.Status != Fail || !strings.Contains(c.Detail, "used 0.97 of the 1 cores it may use") {
		t.Errorf("%+v", c)
	}
	files := 0
	for _, u := range f.Curve[0].Resources {
		if u.Resource == ResourceFiles && strings.Contains(u.Detail, "300 files and sockets open, of at most 1024") && *u.Share == 300./1024 &&
			!u.Saturated {
			files++
		}
		if u.Resource == ResourceGenerator && (!u.Saturated || math.Abs(*u.Share-0.97) > 1e-9) {
			t.Errorf("%+v", u)
		}
	}
	if files != 1 {
		t.Errorf("open files: %+v", f.Curve[0].Resources)
	}
	if fact.Find(f.Bottleneck[0].Facts, "limit.not.growth").Code == "" {
		t.Errorf("it was full before the curve began, and named: %v", f.Bottleneck[0].Evidence)
	}
}
