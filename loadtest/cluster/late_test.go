package cluster

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/monitor"
)

// A report that arrives after its second has been written counts once, in a second that is still
// open, and each second stays one line.
func TestAReportThatComesTooLate(t *testing.T) {
	n := &notes{}
	s := newSum(n)
	a, b := newSession(0), newSession(0)
	second := func(at int64, done int64, step int) *measure.Interval {
		return &measure.Interval{Start: time.Unix(at, 0), Seconds: 1, Step: step, Phase: measure.Measured, Clients: 2,
			Sum: measure.Sum{Done: done}}
	}
	tell := func(by connection, v *measure.Interval, want addResult) {
		t.Helper()
		if got := s.add(v, claim{by, 1}); got != want {
			t.Errorf("fate %v, want %v", got, want)
		}
	}
	write := func(before int64) {
		t.Helper()
		require.NoError(t, s.before(time.Unix(before, 0)))
	}
	tell(a, second(100, 5, 1), added)
	tell(a, second(101, 7, 1), added)
	write(102)
	tell(b, second(100, 3, 1), tooLate)
	tell(b, second(101, 4, 1), tooLate)
	tell(a, second(102, 1, 1), added)
	write(103)
	tell(b, second(102, 9, 1), tooLate) // and no other worker has a report of that step
	tell(a, second(103, 2, 2), added)
	write(104)
	require.NoError(t, s.flush())
	once(t, n)
	held, _ := n.held(1)
	if n.done() != 5+7+3+4+1+9+2 || n.heldFor(1) != 3 || n.heldFor(2) != 1 || held != 2 {
		t.Errorf("%d operations in %v and %v s of hold, with %v clients", n.done(), n.heldFor(1), n.heldFor(2), held)
	}
}

// A worker was silent when a step began, and its clients continue the step before. They count among
// the clients of the new step, whose duration stays the same.
func TestAWorkerStaysInTheStepBefore(t *testing.T) {
	n := &notes{}
	s := newSum(n)
	a, b := newSession(0), newSession(0)
	add := func(by connection, at, step int, phase string, clients float64) {
		v := &measure.Interval{Start: time.Unix(int64(at), 0), Seconds: 1, Step: step, Phase: phase, Clients: clients,
			Sum: measure.Sum{Done: int64(clients)}}
		if got := s.add(v, claim{by, 1}); got != added {
			t.Errorf("step %d at %d s: %v", step, at, got)
		}
	}
	for at := range 10 {
		step := 1 + at/5
		add(a, at, step, measure.Measured, 8*float64(step))
		if at < 7 {
			add(b, at, 1, measure.GracefulStop, 2)
		}
		require.NoError(t, s.before(time.Unix(int64(at), 0)))
	}
	require.NoError(t, s.flush())
	once(t, n)
	for _, v := range n.intervals {
		want := map[int64]float64{5: 16, 6: 18, 7: 16, 8: 16, 9: 16}[v.Start.Unix()]
		if v.Step == 2 && v.Start.Unix() > 5 && (v.Clients != want || v.Done != int64(want) || v.Seconds != 1) {
			t.Errorf("%d clients did %d operations in %v s from %v on", int(v.Clients), v.Done, v.Seconds, v.Start.Unix())
		}
	}
	again := newSum(n) // another controller has read the results up to now
	again.past, again.written = map[slot]bool{}, map[int64]int{6: 2}
	v := &measure.Interval{Start: time.Unix(6, 0), Seconds: 1, Step: 1, Phase: measure.GracefulStop, Clients: 2}
	if got := again.add(v, claim{b, 1}); got != wasWritten {
		t.Errorf("a second that another controller wrote: %v", got)
	}
}

// The late report causes one warning for each worker.
func TestALateWorkerIsTold(t *testing.T) {
	n := &notes{}
	k := newController(engine.Config{Plan: &scenario.Plan{}, Sink: n}, WorkerOptions{}, time.Now)
	w := &remote{connection: newSession(0), name: "7", there: true, held: true}
	k.sum.mark = 100
	for range 3 {
		require.NoError(t, k.interval(w, &measure.Interval{Start: time.Unix(98, 0), Seconds: 1, Step: 1, Sum: measure.Sum{Done: 1}}, 1))
	}
	if n.count("warning", "worker 7 reported a second after it had been written") != 1 {
		t.Errorf("events %v", n.events)
	}
}

// orders records the orders to a worker.
type orders struct {
	connection
	all []order
}

func (o *orders) say(more order) error { o.all = append(o.all, more); return nil }

// A worker that connects after all have got the order to leave, or after the last step, gets that
// order as well: otherwise the run would not end.
func TestAWorkerThatComesAtTheEnd(t *testing.T) {
	for _, leaving := range []bool{true, false} {
		k := newController(engine.Config{Plan: &scenario.Plan{}, Sink: &notes{}}, WorkerOptions{}, time.Now)
		k.leaving, k.ended = leaving, !leaving
		told := &orders{connection: newSession(0)}
		k.admit(&remote{connection: told})
		if !slices.ContainsFunc(told.all, func(o order) bool { return o.Leave == leaving && o.End != leaving }) {
			t.Errorf("leaving %v: it was told %+v", leaving, told.all)
		}
	}
}

// samples records the times of samples.
type samples []time.Time

func (s *samples) Sample(v *monitor.Sample) error { *s = append(*s, v.Time); return nil }

// A second of a machine that a killed controller had written is not written again.
func TestSamplesAreWrittenOnce(t *testing.T) {
	var got samples
	at := time.Unix(1000, 0)
	k := newController(engine.Config{Plan: &scenario.Plan{}, Sink: &notes{}}, WorkerOptions{Samples: &got}, time.Now)
	past := &ResumeState{
		Intervals: func(func(*measure.Interval, error) bool) {}, Events: func(func(*measure.Event, error) bool) {},
		Samples: func(yield func(*monitor.Sample, error) bool) {
			_ = yield(&monitor.Sample{Host: "a", Time: at}, nil) && yield(&monitor.Sample{Host: "b", Time: at.Add(time.Second)}, nil)
		},
	}
	require.NoError(t, k.loadState(past, nil))
	for i := range 3 {
		for _, host := range []string{"a", "b"} {
			require.NoError(t, k.sample(&monitor.Sample{Host: host, Time: at.Add(time.Duration(i) * time.Second)}))
		}
	}
	if len(got) != 3 {
		t.Errorf("%v", got)
	}
}

// Workers of a run that goes on at another server have names of their own.
func TestNamesAreGivenOnce(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	d := open(t, ServerOptions{State: filepath.Join(t.TempDir(), "state"), Came: 5})
	worker := enter(t, d.Pass(), JoinOptions{})
	conf, n := plan(stepOf(1, 1)), &notes{}
	conf.Sink = n
	require.NoError(t, control(t, d, conf, WorkerOptions{Want: 1}))
	if err := <-worker; err != nil || !n.has("worker", "worker 6 connected") {
		t.Errorf("%v, events %v", err, n.events)
	}
}

// One of ten workers is stalled for 15 s and reports them as one interval: each of these seconds
// counts as one second, with the clients in the phase of the other workers.
func TestAWorkerIsStalled(t *testing.T) {
	workers := make([]*session, 10)
	for i := range workers {
		workers[i] = newSession(0)
	}
	for _, c := range []struct {
		name string
		at   func(second int) (step int, phase string) // step and phase of the others
		want float64                                   // clients in each later second
	}{
		{"in a phase", func(int) (int, string) { return 1, measure.Measured }, 20},
		{"over the end of a phase", func(s int) (int, string) { return 1, []string{measure.Warmup, measure.Measured}[min(s/6, 1)] }, 18},
		{"over the end of a step", func(s int) (int, string) { return 1 + min(s/6, 1), measure.Measured }, 18},
	} {
		n := &notes{}
		s := newSum(n)
		add := func(by connection, start, seconds float64, step int, phase string, done int64) {
			v := &measure.Interval{Start: time.UnixMilli(int64(1000 * start)), Seconds: seconds, Step: step, Phase: phase, Clients: 2,
				Sum: measure.Sum{Done: done}}
			if got := s.add(v, claim{by, 1}); got != added {
				t.Errorf("%v s: %v", start, got)
			}
		}
		for second := range 30 {
			step, phase := c.at(second)
			for i, w := range workers {
				switch {
				case i > 0 || second < 3 || second > 18:
					add(w, float64(second), 1, step, phase, 1)
				case second == 3:
					add(w, float64(second), 15.25, step, phase, 1)
				case second == 18:
					add(w, 18.25, .75, step, phase, 1)
				}
			}
			if second < 3 || second >= 18 {
				require.NoError(t, s.before(time.Unix(int64(second), 0)))
			}
		}
		require.NoError(t, s.flush())
		once(t, n)
		sum := 0.0
		for _, v := range n.intervals {
			want := 20.0
			if second := v.Start.Unix(); second > 5 && second < 18 {
				want = c.want
			}
			if sum += v.Seconds; v.Seconds < .9 || v.Seconds > 1.1 || v.Clients < want-.5 || v.Clients > want+.5 {
				t.Errorf("%s: %v clients for %v s at %v, want %v for 1 s", c.name, v.Clients, v.Seconds, v.Start.Unix(), want)
			}
		}
		if sum < 29.95 || sum > 30.05 {
			t.Errorf("%s: %v s were written, want 30", c.name, sum)
		}
	}
}

// All workers are stalled for some seconds, at different times: no time is lost.
func TestAllWorkersAreStalled(t *testing.T) {
	for _, jobs := range []bool{false, true} {
		n := &notes{}
		s := newSum(n)
		if jobs {
			s.phase = func(int64) string { return measure.Measured }
		}
		a, b := newSession(0), newSession(0)
		add := func(by connection, start, seconds float64) {
			v := &measure.Interval{Start: time.Unix(int64(start), 0), Seconds: seconds, Step: 1, Phase: measure.Measured, Clients: 2,
				Sum: measure.Sum{Done: 1}}
			if got := s.add(v, claim{by, 1}); got != added {
				t.Errorf("%v s: %v", start, got)
			}
		}
		add(a, 0, 10)
		add(b, 0, 1)
		add(b, 1, 1)
		require.NoError(t, s.before(time.Unix(1, 0)))
		add(a, 10, 1)
		require.NoError(t, s.before(time.Unix(1, 0)))
		add(b, 2, 6)
		require.NoError(t, s.before(time.Unix(2, 0)))
		add(b, 8, 1)
		add(b, 9, 1)
		add(b, 10, 1)
		require.NoError(t, s.before(time.Unix(10, 0)))
		require.NoError(t, s.flush())
		once(t, n)
		if clients, seconds := n.held(1); clients < 3.99 || clients > 4.01 || seconds < 10.99 || seconds > 11.01 {
			t.Errorf("%v clients for %v s, want 4 for 11 s", clients, seconds)
		}
	}
}

// The last jobs end shortly after a second has begun: this second is not added to the run, and no
// time of clients is lost.
func TestJobsEndAfterASecondBegan(t *testing.T) {
	n := &notes{}
	s := newSum(n)
	s.phase = func(int64) string { return measure.GracefulStop }
	for i := range 2 {
		v := &measure.Interval{Start: time.UnixMilli(7500), Seconds: .5 + .25*float64(i), Step: 1, Clients: 2, Sum: measure.Sum{Done: 1}}
		if got := s.add(v, claim{newSession(0), 1}); got != added {
			t.Error(got)
		}
	}
	require.NoError(t, s.flush())
	once(t, n)
	if len(n.intervals) != 1 || n.intervals[0].Seconds != 1 || n.intervals[0].Clients != 2.5 {
		t.Errorf("%+v", n.intervals[0])
	}
}

// If all workers give the same warning, it is written once in a step.
func TestWorkersGiveTheSameWarning(t *testing.T) {
	n := &notes{}
	k := newController(engine.Config{Plan: &scenario.Plan{}, Sink: n}, WorkerOptions{}, time.Now)
	for step := range 2 {
		k.number = step
		for range 3 {
			w := &remote{connection: newSession(0), there: true}
			require.NoError(t, k.report(w, &report{Event: &measure.Event{Kind: measure.EventWarning, Text: "broken off"}}))
		}
	}
	if n.count(measure.EventWarning, "broken off") != 2 {
		t.Errorf("events %v", n.events)
	}
}
