package cluster

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/wire"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// held returns the mean number of clients in the hold of a step, and its seconds.
func (n *notes) held(step int) (clients, seconds float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, v := range n.intervals {
		if v.Step == step && v.Phase == measure.Measured {
			clients, seconds = clients+v.Clients*v.Seconds, seconds+v.Seconds
		}
	}
	return clients / max(seconds, 1e-9), seconds
}

// long reports whether tests of faults take as long as real faults: make chaos.
func long() bool { return os.Getenv("WEIR_LONG") != "" }

// A batch system kills a worker every few seconds, and starts another worker.
func TestWorkersAreKilled(t *testing.T) {
	tier.Slow(t, "starts processes")
	t.Parallel()
	patience, every, workers, kills, span := 3*time.Second, 1500*time.Millisecond, 4, 6, 4.0
	if long() { // more workers than are killed in a step, which would end with its last worker
		patience, every, workers, kills, span = 30*time.Second, 5*time.Second, 8, 12, 25
	}
	d := open(t, ServerOptions{})
	var mu sync.Mutex
	var all, living []*job
	hire := func() {
		j := submit(t, d.Pass(), patience)
		mu.Lock()
		all, living = append(all, j), append(living, j)
		mu.Unlock()
	}
	for range workers {
		hire()
	}
	conf, n := plan(stepOf(12, span), stepOf(12, span), stepOf(12, span), stepOf(12, span)), &notes{}
	conf.Sink = n
	killed := int64(0) // operations of killed workers
	over, killing := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(killing)
		for range kills {
			select {
			case <-time.After(every):
			case <-over:
				return
			}
			i := rand.IntN(len(living))
			living[i].kill()
			killed += living[i].tally.done()
			living = append(living[:i], living[i+1:]...)
			hire()
		}
	}()
	calm := watchCalm(t)
	err := control(t, d, conf, WorkerOptions{Want: workers, patience: patience})
	timely := calm()
	close(over)
	<-killing
	require.NoError(t, err)
	did, wrote := done(all), n.done()
	if wrote > did || wrote < did-killed || wrote == 0 {
		t.Errorf("%d operations were written; the workers did %d, %d of them in processes that were killed", wrote, did, killed)
	}
	once(t, n)
	lost := n.count("warning", "was lost")
	if lost < kills || timely && lost > kills { // others may be silent on a busy machine
		t.Errorf("%d workers were lost, %d were killed", lost, kills)
	}
	t.Logf("%d workers were killed, one every %v, and %d lost, after %v; they did %d operations, %d of them those that were "+
		"killed; %d were written", kills, every, lost, patience, did, killed, wrote)
	for _, e := range n.events {
		if w := e.Worker; w != nil && w.State == measure.Lost && w.Seconds > 0 && (w.Silent < 1 || timely && w.Silent > 60) {
			t.Errorf("%s: silent for %g s before", e.Text, w.Silent)
		}
	}
	for step := 1; step <= 4; step++ {
		if _, s := n.held(step); timely && (s < span-.5 || s > span+1) {
			t.Errorf("step %d was held for %.1f s", step, s)
		}
	}
	if clients, _ := n.held(4); timely && math.Abs(clients-12) > 4 {
		t.Errorf("%.1f clients in the last step: the share of the lost was not given to others", clients)
	}
}

// A network that is cut for two thirds of the time after which a worker is lost loses nothing.
func TestTheNetworkIsCut(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	patience, first, second := 6*time.Second, 4.0, 7.0
	if long() {
		patience, first, second = 30*time.Second, 12, 30
	}
	d := open(t, ServerOptions{})
	r, over := between(t, d.Pass())
	jobs := []*job{submit(t, d.Pass(), patience), submit(t, over, patience), submit(t, over, patience)}
	conf, n := plan(stepOf(9, first), stepOf(6, second)), &notes{}
	conf.Sink = n
	var once1 sync.Once
	mended := make(chan struct{})
	n.seen = func(v *measure.Interval) {
		if v.Step == 1 && v.Phase == measure.Measured {
			once1.Do(func() {
				r.cut() // also at the end of the step
				time.AfterFunc(patience*2/3, func() { r.mend(); close(mended) })
			})
		}
	}
	calm := watchCalm(t)
	require.NoError(t, control(t, d, conf, WorkerOptions{Want: 3, patience: patience}))
	timely := calm()
	<-mended
	for _, j := range jobs {
		j.end(t)
	}
	lost := !timely && n.has("warning", "was lost") // a busy machine made the silence longer
	if did := done(jobs); n.done() > did || !lost && did != n.done() {
		t.Errorf("the workers did %d operations, %d were written", did, n.done())
	}
	t.Logf("the network was cut for %v of a patience of %v; %d operations were done and written", patience*2/3, patience, n.done())
	once(t, n)
	if !lost && n.has("warning", "") || !n.has("end", measure.AllDone) {
		t.Errorf("events %v", n.events)
	}
}

// A worker that was silent for too long is given up, and connects again as another worker.
func TestAWorkerThatWasGivenUpComesBack(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	const patience = 3 * time.Second
	d := open(t, ServerOptions{})
	r, over := between(t, d.Pass())
	jobs := []*job{submit(t, d.Pass(), patience), submit(t, over, patience)}
	conf, n := plan(stepOf(8, 8), stepOf(8, 3)), &notes{}
	conf.Sink = n
	var cut sync.Once
	n.seen = func(v *measure.Interval) {
		if v.Phase == measure.Measured {
			cut.Do(func() {
				r.cut()
				time.AfterFunc(patience+patience/2, r.mend)
			})
		}
	}
	calm := watchCalm(t)
	require.NoError(t, control(t, d, conf, WorkerOptions{Want: 2, patience: patience}))
	timely := calm()
	for _, j := range jobs {
		j.end(t)
	}
	once(t, n)
	if lost := n.count("warning", "was lost: it has not been heard of for 3s"); lost < 1 || timely && lost != 1 {
		t.Errorf("events %v", n.events)
	}
	if !n.has("worker", "worker 3 connected") || timely && !n.has("step", "step 2: 8 clients on 2 workers") {
		t.Errorf("events %v", n.events)
	}
	if clients, _ := n.held(2); timely && math.Abs(clients-8) > .5 {
		n.mu.Lock()
		for _, v := range n.intervals {
			t.Logf("step %d %v %v: %.2f clients for %.2f s", v.Step, v.Phase, v.Start, v.Clients, v.Seconds)
		}
		t.Errorf("%.1f clients in step 2, events %v", clients, n.events)
		n.mu.Unlock()
	}
	if did := done(jobs); n.done() > did {
		t.Errorf("the workers did %d operations, %d were written", did, n.done())
	}
}

// The workers' clocks are 90 s off: all times are by the controller's clock.
func TestClocksAreOff(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	ahead := func() time.Time { return time.Now().Add(90 * time.Second) }
	d := open(t, ServerOptions{clock: ahead})
	jobs := []*job{submit(t, d.Pass(), patience), submit(t, d.Pass(), patience)}
	conf, n := plan(stepOf(6, 2), stepOf(4, 2)), &notes{}
	conf.Sink = n
	begin, calm := ahead(), watchCalm(t)
	require.NoError(t, control(t, d, conf, WorkerOptions{Want: 2}))
	timely := calm()
	for _, j := range jobs {
		j.end(t)
	}
	end := ahead()
	if did := done(jobs); did != n.done() {
		t.Errorf("the workers did %d operations, %d were written", did, n.done())
	}
	for _, v := range n.intervals {
		if v.Start.Before(begin.Add(-time.Second)) || v.Start.After(end) || timely && v.Seconds > 1.5 {
			t.Errorf("an interval of %v s at %v in a run from %v to %v", v.Seconds, v.Start, begin, end)
		}
	}
	for _, e := range n.events {
		if e.Time.Before(begin.Add(-time.Second)) || e.Time.After(end) {
			t.Errorf("%v in a run from %v to %v: %s", e.Time, begin, end, e.Text)
		}
	}
	for step, want := range map[int]float64{1: 6, 2: 4} {
		if clients, s := n.held(step); timely && (math.Abs(clients-want) > .3 || math.Abs(s-2) > .3) {
			t.Errorf("step %d: %.2f clients for %.2f s, want %v for 2", step, clients, s, want)
		}
	}
	if n.count("worker", "its clock is 1m30") != 2 && n.count("worker", "its clock is 1m29.9") == 0 {
		t.Errorf("events %v", n.events)
	}
	once(t, n)
}

// A worker sends each report twice and in the wrong order, with invalid reports in between.
func TestAWorkerThatReportsTwice(t *testing.T) {
	t.Parallel()
	d := open(t, ServerOptions{})
	p := d.Pass()
	conf, n := plan(stepOf(1, 1)), &notes{}
	conf.Sink = n
	ended := make(chan error, 1)
	go func() { ended <- control(t, d, conf, WorkerOptions{Want: 1}) }()
	c := wire.NewClient(p.URLs, p.Token, p.Pin, time.Minute)
	defer c.Close()
	ask := func(path string, in, out any) {
		t.Helper()
		require.NoError(t, c.Insist(t.Context(), path, in, out, time.Minute))
	}
	h := registration{identity: identity{Session: "a session"}}
	for range 2 {
		ask(registerPath, h, &registrationResponse{})
	}
	raw := func(r report) json.RawMessage { b, _ := json.Marshal(r); return b }
	ready := reportsRequest{h.Session, []json.RawMessage{raw(report{No: 1, Ready: true})}}
	for range 3 {
		ask(reportsPath, ready, &ordersResponse{})
	}
	var orders ordersResponse
	ask(ordersPath, ordersRequest{h.Session, 0}, &orders)
	if len(orders.Orders) != 1 || orders.Orders[0].Order.Step == nil {
		t.Fatalf("orders %+v", orders)
	}
	start := orders.Orders[0].Order.Step.Begin.Truncate(time.Second)
	second := func(no int64) json.RawMessage {
		return raw(report{No: no, Interval: &measure.Interval{Start: start.Add(time.Duration(no) * time.Second), Seconds: 1, Step: 1,
			Phase: measure.Measured, Clients: 1, Sum: measure.Sum{Done: no}}})
	}
	var wg sync.WaitGroup
	for _, batch := range [][]json.RawMessage{
		{second(3)}, {second(2)}, {second(2), second(3)}, {second(2)}, {second(4), second(3)}, {second(3), second(4), second(5)},
		{second(5), second(4), second(3)},
	} {
		ask(reportsPath, reportsRequest{h.Session, batch}, &ordersResponse{})
	}
	for range 8 { // all at once
		wg.Go(func() {
			_ = c.Insist(t.Context(), reportsPath, reportsRequest{h.Session, []json.RawMessage{second(4), second(5), second(6)}},
				&ordersResponse{}, time.Minute)
		})
	}
	wg.Wait()
	far := raw(report{No: 7, Interval: &measure.Interval{Start: start.AddDate(1, 0, 0), Seconds: 1, Step: 1, Phase: measure.Measured}})
	for _, bad := range []json.RawMessage{far, json.RawMessage(`{"no":7,"interval":{"latency_seconds":{"count":1,"hdr":"nonsense"}}}`),
		json.RawMessage(`7`)} {
		if err := c.Ask(t.Context(), reportsPath, reportsRequest{h.Session, []json.RawMessage{bad}}, &ordersResponse{}); wire.Status(err) != 400 {
			t.Errorf("%s was taken: %v", bad, err)
		}
	}
	last := reportsRequest{h.Session,
		[]json.RawMessage{raw(report{No: 7, Event: &measure.Event{Time: start, Kind: measure.EventError, Text: "once"}}),
			raw(report{No: 8, Ready: true, After: 1})}}
	ask(reportsPath, last, &ordersResponse{})
	ask(reportsPath, last, &ordersResponse{})
	ask(reportsPath, reportsRequest{h.Session, []json.RawMessage{raw(report{No: 9, Done: true})}}, &ordersResponse{})
	require.NoError(t, <-ended)
	once(t, n)
	if n.done() != 2+3+4+5+6 || n.count("error", "once") != 1 {
		t.Errorf("%d operations were written, want %d; events %v", n.done(), 2+3+4+5+6, n.events)
	}
}

// A pool has fewer slots than workers: the run begins with the connected workers, reports this, and
// gives later workers clients in the next step.
func TestFewerWorkersThanWanted(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	d := open(t, ServerOptions{})
	jobs := []*job{submit(t, d.Pass(), patience), submit(t, d.Pass(), patience)}
	conf, n := plan(stepOf(6, 2), stepOf(6, 2)), &notes{}
	conf.Sink = n
	var third atomic.Int64 // times that worker 3 is shown as waiting: registered, then for a step
	conf.Steps = &afterAll{StepSource: engine.FixedSteps(conf.Plan), ready: func() bool { return third.Load() > 1 }}
	shown := func(w WorkerState) {
		if w.Name == "3" && w.State == Waiting {
			third.Add(1)
		}
	}
	var late sync.Once
	n.seen = func(*measure.Interval) { late.Do(func() { jobs = append(jobs, submit(t, d.Pass(), patience)) }) }
	absent := func() []string { return []string{"job 7.2 is held: Disk quota exceeded"} }
	require.NoError(t, control(t, d, conf, WorkerOptions{Want: 3, Wait: 3 * time.Second, Absent: absent, Worker: shown}))
	for _, j := range jobs {
		j.end(t)
	}
	if !n.has("warning", "the run begins with 2 of 3 workers: the others had not connected after 3s: job 7.2 is held: Disk quota exceeded") ||
		!n.has("step", "step 1: 6 clients on 2 workers") || !n.has("step", "step 2: 6 clients on 3 workers") {
		t.Errorf("events %v", n.events)
	}
	if did := done(jobs); did != n.done() {
		t.Errorf("the workers did %d operations, %d were written", did, n.done())
	}
	once(t, n)
}

// afterAll returns the steps after the first when ready returns true.
type afterAll struct {
	engine.StepSource
	ready func() bool
	asked int
}

func (p *afterAll) Next(ctx context.Context) (scenario.Step, error) {
	for p.asked++; p.asked == 2 && !p.ready(); {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return scenario.Step{}, ctx.Err()
		}
	}
	return p.StepSource.Next(ctx)
}

// Stop rules apply to all workers together.
func TestTheRunStopsForAll(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	d := open(t, ServerOptions{})
	jobs := []*job{submit(t, d.Pass(), patience), submit(t, d.Pass(), patience), submit(t, d.Pass(), patience)}
	conf, n := plan(stepOf(6, 600)), &notes{}
	conf.Sink = n
	conf.Plan.Stop = scenario.Stop{Count: 500}
	require.NoError(t, control(t, d, conf, WorkerOptions{Want: 3}))
	for _, j := range jobs {
		j.end(t)
	}
	if n.done() < 500 || n.done() > 2500 || !n.ended(measure.FinishedEarly) {
		t.Errorf("%d operations; events %v", n.done(), n.events)
	}
}

// Numbers of clients are never given twice.
func TestNumbersOfClients(t *testing.T) {
	k := newController(engine.Config{Plan: &scenario.Plan{First: 100}}, WorkerOptions{}, time.Now)
	seen := map[int]bool{}
	a, b, c := &remote{}, &remote{}, &remote{}
	for _, ask := range []struct {
		w *remote
		n int
	}{{a, 3}, {b, 2}, {a, 2}, {a, 5}, {c, 4}, {b, 6}, {b, 0}, {c, 4}} {
		for _, s := range k.allot(ask.w, ask.n) {
			for i := range s.Count {
				if seen[s.First+i] {
					t.Errorf("number %d was given twice", s.First+i)
				}
				seen[s.First+i] = true
			}
		}
	}
	if len(seen) != 5+6+4 || !seen[100] || !seen[114] {
		t.Errorf("%v", seen)
	}
}

func TestDeal(t *testing.T) {
	for _, c := range []struct {
		n     int
		rooms []int
		want  string
	}{{7, []int{0, 0, 0}, "[3,2,2]"}, {7, []int{1, 0, 0}, "[1,3,3]"}, {7, []int{1, 1, 1}, "[1,1,1]"}, {0, []int{0}, "[0]"},
		{10, []int{2, 3, 100}, "[2,3,5]"}, {3, nil, "[]"}} {
		workers := make([]*remote, len(c.rooms))
		for i, room := range c.rooms {
			workers[i] = &remote{room: room}
		}
		if got, _ := json.Marshal(distribute(c.n, 0, workers, &scenario.Plan{})); string(got) != c.want {
			t.Errorf("%d to %v: %s, want %s", c.n, c.rooms, got, c.want)
		}
	}
}
