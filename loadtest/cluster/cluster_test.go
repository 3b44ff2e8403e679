package cluster

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
	"weir/storage/simulated"
)

type notes struct {
	mu        sync.Mutex
	intervals []*measure.Interval
	events    []measure.Event
	seen      func(*measure.Interval)
}

func (n *notes) Interval(v *measure.Interval) error {
	n.mu.Lock()
	n.intervals = append(n.intervals, v)
	n.mu.Unlock()
	if n.seen != nil {
		n.seen(v)
	}
	return nil
}

func (n *notes) Event(e measure.Event) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, e)
	return nil
}

func (n *notes) has(kind measure.EventKind, text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.events {
		if e.Kind == kind && strings.Contains(e.Text, text) {
			return true
		}
	}
	return false
}

// ended reports whether the run ended with the outcome o.
func (n *notes) ended(o measure.Outcome) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.events, func(e measure.Event) bool { return e.Kind == measure.EventEnd && e.Outcome == o })
}

// hired is a worker in this process at the other end of two pipes.
type hired struct {
	Peer
	cut func() // acts as a kill of the worker's process
	err chan error
}

func hire(t *testing.T, name string) *hired {
	t.Helper()
	orders, ordersIn := io.Pipe()
	reports, reportsIn := io.Pipe()
	ctx, fire := context.WithCancel(t.Context())
	h := &hired{Peer: Peer{Name: name, In: reports, Out: ordersIn}, err: make(chan error, 1)}
	h.cut = func() { _ = reportsIn.CloseWithError(io.ErrUnexpectedEOF); _ = orders.Close(); fire() }
	go func() {
		err := Work(ctx, orders, reportsIn, []storage.Driver{simulated.Driver()}, nil)
		_ = reportsIn.Close()
		h.err <- err
	}()
	t.Cleanup(fire)
	return h
}

// plan returns a closed run against a simulated service of its own in each worker.
func plan(steps ...scenario.Step) engine.Config {
	for i := range steps {
		steps[i].Number = i + 1
	}
	p := &scenario.Plan{
		Model: "closed", Driver: "simulated", Target: "simulated://x?servers=1000&service=20ms&dist=constant&files=10x1KiB",
		Work: workload.Work{Kind: "read", Session: "kept", Pick: "random"}, Steps: steps, Seed: 3, GracefulStop: unit.Duration(5 * time.Second),
	}
	files := []workload.File{}
	for i := range 10 {
		files = append(files, workload.File{Path: simulated.FileName(i), Size: 1024})
	}
	return engine.Config{Plan: p, Files: files, Folder: "weir-test"}
}

func stepOf(clients int, s float64) scenario.Step {
	return scenario.Step{Clients: clients, Warmup: unit.Duration(time.Second / 5), Duration: unit.Duration(s * 1e9)}
}

func peers(workers []*hired) (p []Peer) {
	for _, w := range workers {
		p = append(p, w.Peer)
	}
	return p
}

func TestWorkersAddUp(t *testing.T) {
	t.Parallel()
	workers := []*hired{hire(t, "1"), hire(t, "2"), hire(t, "3")}
	conf, n := plan(stepOf(7, 2), stepOf(3, 1)), &notes{}
	conf.Sink = n
	require.NoError(t, Control(t.Context(), conf, peers(workers), ""))
	for _, w := range workers {
		if err := <-w.err; err != nil {
			t.Errorf("worker %s: %v", w.Name, err)
		}
	}
	for step, want := range map[int]float64{1: 7, 2: 3} {
		var done, latencies int64
		var area, span float64
		for _, v := range n.intervals {
			if v.Step == step && v.Phase == measure.Measured {
				done, latencies = done+v.Done, latencies+v.Latency.Count()
				area, span = area+v.Clients*v.Seconds, span+v.Seconds
			}
		}
		// Workers' phases do not end at the very same moment, so a second in which a phase ends may
		// have one worker more or less for an instant.
		if clients := area / span; math.Abs(clients-want) > .3 {
			t.Errorf("step %d: %.2f clients, want %v", step, clients, want)
		}
		if done == 0 || done != latencies {
			t.Errorf("step %d: %d done, %d latencies: histograms were not added", step, done, latencies)
		}
	}
	if !n.has("end", "all steps are done") {
		t.Errorf("no end among %v", n.events)
	}
	slots := map[string]bool{}
	for _, v := range n.intervals {
		at := v.Start.Truncate(time.Second).String() + v.Phase + string(rune('0'+v.Step))
		if slots[at] {
			t.Errorf("two intervals for %s: workers were not added up", at)
		}
		slots[at] = true
	}
}

func TestALostWorkerIsToldAndTheOthersGoOn(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	workers := []*hired{hire(t, "1"), hire(t, "2")}
	conf, n := plan(stepOf(4, 2), stepOf(4, 2)), &notes{}
	conf.Sink = n
	var once sync.Once
	n.seen = func(*measure.Interval) { once.Do(workers[1].cut) }
	require.NoError(t, Control(t.Context(), conf, peers(workers), ""))
	if !n.has("warning", "worker 2 was lost") {
		t.Errorf("the loss was not told: %v", n.events)
	}
	last := n.intervals[len(n.intervals)-1]
	if last.Step != 2 {
		t.Errorf("the run ended in step %d, want 2", last.Step)
	}
}

func TestAllWorkersLostIsAnError(t *testing.T) {
	workers := []*hired{hire(t, "1"), hire(t, "2")}
	conf, n := plan(stepOf(4, 60)), &notes{}
	conf.Sink = n
	var once sync.Once
	n.seen = func(*measure.Interval) { once.Do(func() { workers[0].cut(); workers[1].cut() }) }
	err := Control(t.Context(), conf, peers(workers), "")
	if err == nil || !strings.Contains(err.Error(), "all workers were lost") {
		t.Errorf("error %v, want that all workers were lost", err)
	}
}

func TestAWorkersErrorIsTheRuns(t *testing.T) {
	conf, n := plan(stepOf(4, 60)), &notes{}
	conf.Sink = n
	conf.Plan.Driver = "none such"
	err := Control(t.Context(), conf, peers([]*hired{hire(t, "1")}), "")
	if err == nil || !strings.Contains(err.Error(), "none such") {
		t.Errorf("error %v, want the worker's", err)
	}
}

func TestFinishReachesTheWorkers(t *testing.T) {
	t.Parallel()
	workers := []*hired{hire(t, "1"), hire(t, "2")}
	conf, n := plan(stepOf(4, 3600)), &notes{}
	finish := make(chan struct{})
	conf.Sink, conf.Finish = n, finish
	var once sync.Once
	n.seen = func(*measure.Interval) { once.Do(func() { close(finish) }) }
	require.NoError(t, Control(t.Context(), conf, peers(workers), ""))
	if !n.ended(measure.Interrupted) {
		t.Errorf("events %v, want an early end", n.events)
	}
}

// A worker whose controller is gone ends by itself.
func TestAWorkerDoesNotOutliveItsController(t *testing.T) {
	w := hire(t, "1")
	go func() { _, _ = io.Copy(io.Discard, w.In) }()
	if _, err := io.WriteString(w.Out, `{"begin":{}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-w.err; err == nil {
		t.Error("an order without a plan is accepted")
	}
	idle := hire(t, "2")
	go func() { _, _ = io.Copy(io.Discard, idle.In) }()
	require.NoError(t, idle.Out.Close())
	if err := <-idle.err; err != nil {
		t.Errorf("a worker that gets no orders ends with %v", err)
	}
}

func TestACanceledControllerReturns(t *testing.T) {
	t.Parallel()
	conf, n := plan(stepOf(4, 3600)), &notes{}
	ctx, cancel := context.WithCancel(t.Context())
	conf.Sink = n
	n.seen = func(*measure.Interval) { cancel() }
	if err := Control(ctx, conf, peers([]*hired{hire(t, "1")}), ""); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestServicesAreOpenedAsThePlanSays(t *testing.T) {
	for session, want := range map[workload.Session]bool{workload.KeptSession: false, workload.FreshSession: false,
		workload.SharedSession: true} {
		var got storage.Target
		driver := storage.Driver{Name: "d", Open: func(_ context.Context, t storage.Target) (storage.Service, error) {
			got = t
			return nil, nil
		}}
		p := &scenario.Plan{Target: "root://a//b", Driver: "d", Work: workload.Work{Session: session}}
		if _, err := OpenService(t.Context(), p, []storage.Driver{driver}, nil); err != nil || got.Shared != want || got.URL.Host != "a" {
			t.Errorf("session %s: opened as %+v, %v", session, got, err)
		}
	}
}

// Of two workers, the second is 40 ms late at the end of the ramp. The result begins and ends at
// the mean of the two, without a gap, and has the clients of both workers, whichever server they
// used.
func TestPhasesOfManyWorkersFollowEachOther(t *testing.T) {
	told := &notes{}
	s := newSum(told)
	at := time.Unix(100, 0)
	tell := func(by connection, phase, server string, from, to time.Duration, clients float64) {
		v := measure.Interval{Start: at.Add(from), Seconds: (to - from).Seconds(), Step: 1, Phase: phase, Kind: storage.Read, Server: server,
			Clients: clients, Sum: measure.Sum{Done: 1}}
		s.add(&v, claim{by, 0})
	}
	const ms = time.Millisecond
	early, late := &stream{}, &stream{}
	tell(early, measure.Ramp, "a", 0, 980*ms, 1)
	tell(early, measure.Measured, "a", 980*ms, 1000*ms, 2)
	tell(early, measure.Measured, "a", 1000*ms, 2000*ms, 2)
	tell(early, measure.Measured, "b", 1000*ms, 2000*ms, 2)
	tell(late, measure.Ramp, "a", 2*ms, 1000*ms, 3)
	tell(late, measure.Ramp, "a", 1000*ms, 1020*ms, 4)
	tell(late, measure.Measured, "b", 1020*ms, 2000*ms, 4)
	require.NoError(t, s.flush())
	end, clients := at.Add(ms), 0.0
	for i, v := range told.intervals {
		if i > 0 && v.Start.Equal(told.intervals[i-1].Start) {
			if p := told.intervals[i-1]; v.Seconds != p.Seconds || v.Clients != p.Clients {
				t.Errorf("one second has %v s with %v clients and %v s with %v", p.Seconds, p.Clients, v.Seconds, v.Clients)
			}
			continue
		}
		if gap := v.Start.Sub(end); gap.Abs() > 2*time.Nanosecond {
			t.Errorf("%s begins %v after the end of what was before it", v.Phase, gap)
		}
		end = v.Start.Add(time.Duration(v.Seconds * float64(time.Second)))
		clients += v.Clients * v.Seconds
	}
	if d := end.Sub(at.Add(2 * time.Second)); d.Abs() > ms+2*time.Nanosecond {
		t.Errorf("all ends %v after the workers do", d)
	}
	if want := 0.98 + 1.02*2 + 0.998*3 + 4; math.Abs(clients-want) > 1e-9 {
		t.Errorf("clients were there for %v s in all, want %v", clients, want)
	}
	if len(told.intervals) != 5 {
		t.Errorf("%d intervals, want 5: a ramp and a hold in each second, the last of two servers", len(told.intervals))
	}
}

// A job whose worker was stalled for two seconds reports all three seconds at once: its client
// counts in each of them, and not three times in the first.
func TestClientsOfLateTellersAreInTheirSeconds(t *testing.T) {
	told := &notes{}
	s := newSum(told)
	s.phase = func(int64) string { return measure.Measured }
	early, late := &stream{}, &stream{}
	tell := func(by connection, from, seconds float64) {
		v := measure.Interval{Start: time.Unix(100, int64(from*1e9)), Seconds: seconds, Step: 1, Phase: measure.Measured, Kind: storage.Read,
			Clients: 1, Sum: measure.Sum{Done: 1}}
		s.add(&v, claim{by, 0})
	}
	tell(late, 0.5, 2.5)
	tell(early, 0, 1)
	tell(early, 1, 1)
	tell(early, 2, 0.25)
	require.NoError(t, s.flush())
	want := []float64{1.5, 2, 1.25}
	for i, v := range told.intervals {
		if math.Abs(v.Clients-want[i]) > 1e-9 || v.Seconds != 1 || v.Start.Unix() != 100+int64(i) {
			t.Errorf("second %d: %v clients for %v s, want %v", v.Start.Unix(), v.Clients, v.Seconds, want[i])
		}
	}
	if len(told.intervals) != len(want) {
		t.Errorf("%d intervals, want %d", len(told.intervals), len(want))
	}
}
