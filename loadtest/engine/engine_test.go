package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
	"weir/storage/simulated"
)

// notes keeps the intervals and events of an engine.
type notes struct {
	intervals []*measure.Interval
	events    []measure.Event
	fail      error // returned from the next interval on
}

func (n *notes) Interval(v *measure.Interval) error {
	n.intervals = append(n.intervals, v)
	return n.fail
}

func (n *notes) Event(e measure.Event) error {
	n.events = append(n.events, e)
	return nil
}

// held sums the intervals of the hold phase of a step.
func (n *notes) held(step int) (sum measure.Interval) {
	seen := map[time.Time]bool{}
	area := 0.0
	for _, v := range n.intervals {
		if v.Step != step || v.Phase != measure.Measured {
			continue
		}
		seconds := sum.Seconds
		if !seen[v.Start] {
			seen[v.Start] = true
			seconds += v.Seconds
			area += v.Clients * v.Seconds
		}
		sum.Add(v)
		sum.Seconds = seconds
	}
	sum.Clients = area / sum.Seconds
	return sum
}

// balanced fails t unless each operation that ended, be it done or failed, had begun, and all that
// began ended if the run came to its end.
func (n *notes) balanced(t testing.TB) {
	t.Helper()
	var begun, ended int64
	for _, v := range n.intervals {
		begun += v.Begun
		ended += v.Done
		for _, failed := range v.Failed {
			ended += failed
		}
	}
	if complete := len(n.events) > 0 && n.events[len(n.events)-1].Outcome == measure.Complete; ended > begun || complete && ended != begun {
		t.Errorf("%d operations began, and %d ended", begun, ended)
	}
}

// remembered is a manifest in memory.
type remembered struct {
	mu   sync.Mutex
	left map[string]bool
	most int
}

func (m *remembered) Created(path string, _ int64, _ uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == nil {
		m.left = map[string]bool{}
	}
	m.left[path] = true
	m.most = max(m.most, len(m.left))
	return nil
}

func (m *remembered) Removed(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.left, path)
	return nil
}

// closed returns the configuration of a closed run on a simulated target.
func closed(t testing.TB, target string, work workload.Work, steps ...scenario.Step) (Config, *notes) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	service, err := simulated.Driver().Open(t.Context(), storage.Target{URL: u})
	if err != nil {
		t.Fatal(err)
	}
	for i := range steps {
		steps[i].Number = i + 1
	}
	n := &notes{}
	t.Cleanup(func() { n.balanced(t) })
	size := unit.Size(1 << 20)
	if _, text, ok := strings.Cut(u.Query().Get("files"), "x"); ok {
		if size, err = unit.ParseSize(text); err != nil {
			t.Fatal(err)
		}
	}
	var files []workload.File
	for i := range 100 {
		files = append(files, workload.File{Path: simulated.FileName(i), Size: int64(size)})
	}
	p := &scenario.Plan{Model: "closed", Work: work, Steps: steps, Seed: 7, GracefulStop: seconds(30), ErrorPause: seconds(1), Target: target}
	return Config{Plan: p, Service: service, Files: files, Folder: "weir-test", Sink: n, Pacer: Timers(), Manifest: &remembered{}}, n
}

func seconds(s float64) unit.Duration { return unit.Duration(s * 1e9) }

func stepOf(clients int, s float64) scenario.Step {
	return scenario.Step{Clients: clients, Warmup: seconds(20), Duration: seconds(s)}
}

// The measured operating point of a run agrees with theory within 5%, below, at and above the knee.
func TestOperatingPointIsTheoretical(t *testing.T) {
	for _, c := range []struct {
		servers, clients int
		think            float64
	}{{1, 1, 0}, {4, 3, 0}, {4, 64, 0}, {2, 10, .1}, {2, 24, .1}, {2, 200, .1}, {8, 5000, 10}} {
		t.Run(fmt.Sprintf("k=%d,N=%d,Z=%v", c.servers, c.clients, c.think), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				work := workload.Work{Kind: "read", Pick: "random", Session: "kept", Think: workload.Span{Exponential: seconds(c.think)}}
				target := fmt.Sprintf("simulated://x?servers=%d&service=10ms&files=100x1KiB", c.servers)
				conf, n := closed(t, target, work, stepOf(c.clients, 120))
				if err := Run(t.Context(), conf); err != nil {
					t.Fatal(err)
				}
				v := n.held(1)
				theory := simulated.Theory{Servers: c.servers, Service: 10 * time.Millisecond, Think: time.Duration(seconds(c.think))}
				rate, want := float64(v.Done)/v.Seconds, theory.Rate(c.clients)
				if math.Abs(rate/want-1) > .05 {
					t.Errorf("rate %.1f/s, theory %.1f/s", rate, want)
				}
				if math.Abs(v.Clients-float64(c.clients)) > .01 {
					t.Errorf("%v clients were active, want %d", v.Clients, c.clients)
				}
				little := rate * (v.Latency.Mean() + v.Think/float64(v.Tasks))
				if math.Abs(little/float64(c.clients)-1) > .05 {
					t.Errorf("Little's law: X(R+Z) = %.2f, N = %d", little, c.clients)
				}
			})
		})
	}
}

func TestStepsUpAndDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := workload.Work{Kind: "read", Session: "kept", Think: workload.Span{Fixed: seconds(1)}}
		ramped := scenario.Step{Clients: 40, Ramp: seconds(10), Warmup: seconds(5), Duration: seconds(10)}
		conf, n := closed(t, "simulated://x?servers=1000&service=1ms&files=100x1KiB", work, stepOf(4, 10), ramped, stepOf(2, 10),
			stepOf(0, 5), stepOf(3, 10))
		if err := Run(t.Context(), conf); err != nil {
			t.Fatal(err)
		}
		for i, want := range []float64{4, 40, 2, 0, 3} {
			if v := n.held(i + 1); math.Abs(v.Clients-want) > .01 ||
				math.Abs(v.Seconds-time.Duration(conf.Plan.Steps[i].Duration).Seconds()) > 1e-6 {
				t.Errorf("step %d: %v clients for %v s, want %v for %v", i+1, v.Clients, v.Seconds, want, conf.Plan.Steps[i].Duration)
			}
		}
		var area, span float64
		for _, v := range n.intervals {
			if v.Step == 2 && v.Phase == measure.Ramp {
				area, span = area+v.Clients*v.Seconds, span+v.Seconds
			}
		}
		if mean := area / span; math.Abs(mean-22) > .5 {
			t.Errorf("mean of the ramp from 4 to 40 is %.2f clients, want 22", mean)
		}
	})
}

func TestIntervalsCoverTheRunWithoutGapAndEndAtWholeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(300 * time.Millisecond)
		conf, n := closed(t, "simulated://x?servers=1&service=1ms&files=100x1KiB", workload.Work{Kind: "read", Session: "kept"},
			scenario.Step{Clients: 1, Warmup: seconds(1.5), Duration: seconds(2.25)})
		if err := Run(t.Context(), conf); err != nil {
			t.Fatal(err)
		}
		var end time.Time
		for i, v := range n.intervals {
			if i > 0 && !v.Start.Equal(end) {
				t.Errorf("interval %d starts at %v, the one before ended at %v", i, v.Start, end)
			}
			end = v.Start.Add(time.Duration(v.Seconds * 1e9))
			whole := end.Nanosecond() == 0
			change := i+1 == len(n.intervals) || n.intervals[i+1].Phase != v.Phase
			if !whole && !change {
				t.Errorf("interval %d (%s) ends at %v: neither a whole second nor a phase's end", i, v.Phase, end)
			}
		}
	})
}

// In the open model a stall of the service shows in the latency of all operations that were to
// arrive meanwhile.
func TestOpenModelDoesNotHideAStall(t *testing.T) {
	for _, poisson := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			work := workload.Work{Kind: "read", Session: "kept"}
			step := scenario.Step{Clients: 50, Rate: 200, Poisson: poisson, Warmup: seconds(5), Duration: seconds(60)}
			conf, n := closed(t, "simulated://x?servers=100&service=10ms&dist=constant&files=100x1KiB", work, step)
			conf.Plan.Model = "open"
			stalled := &stall{Service: conf.Service, from: time.Now().Add(20 * time.Second), to: time.Now().Add(22 * time.Second)}
			conf.Service = stalled
			if err := Run(t.Context(), conf); err != nil {
				t.Fatal(err)
			}
			v := n.held(1)
			if rate := float64(v.Done) / v.Seconds; math.Abs(rate/200-1) > .05 {
				t.Errorf("poisson %v: rate %.1f/s, want 200", poisson, rate)
			}
			// 2 of 60 s of arrivals waited 0 to 2 s: the 99th percentile is about 1.4 s.
			if p := v.Latency.Quantile(.99); p < 1.2 || p > 1.8 {
				t.Errorf("poisson %v: p99 is %.3f s, want about 1.4 s: the stall is hidden", poisson, p)
			}
			if p := v.Latency.Quantile(.5); math.Abs(p-.010) > .001 {
				t.Errorf("poisson %v: median %.4f s, want 10 ms", poisson, p)
			}
			if v.Missed > 0 {
				t.Errorf("poisson %v: %d arrivals missed", poisson, v.Missed)
			}
		})
	}
}

// stall delays all operations that begin in a span of time.
type stall struct {
	storage.Service
	from, to time.Time
}

func (s *stall) Client() storage.Client { return &stalled{s.Service.Client(), s} }

type stalled struct {
	storage.Client
	s *stall
}

func (c *stalled) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if now := time.Now(); now.After(c.s.from) && now.Before(c.s.to) {
		time.Sleep(c.s.to.Sub(now))
	}
	return c.Client.Do(ctx, op, p)
}

func TestOverloadedOpenModelCountsWhatNeverStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := scenario.Step{Clients: 10, Rate: 100, Duration: seconds(60)}
		conf, n := closed(t, "simulated://x?servers=1&service=20ms&dist=constant&files=100x1KiB", workload.Work{Kind: "read", Session: "kept"},
			step)
		conf.Plan.Model = "open"
		if err := Run(t.Context(), conf); err != nil {
			t.Fatal(err)
		}
		var done, missed int64
		for _, v := range n.intervals {
			done, missed = done+v.Done, missed+v.Missed
		}
		if sum := done + missed; sum < 5990 || sum > 6001 || missed < 2900 || missed > 3000 {
			t.Errorf("%d done and %d missed, want 6000 together, half of each", done, missed)
		}
	})
}

func TestStopRulesAndFinishEndTheRunEarly(t *testing.T) {
	finish := make(chan struct{})
	for name, c := range map[string]struct {
		stop   scenario.Stop
		target string
		finish bool
		end    measure.Outcome
		reason string
	}{
		"time":   {stop: scenario.Stop{Time: seconds(5)}, end: measure.FinishedEarly, reason: "stop.time"},
		"count":  {stop: scenario.Stop{Count: 500}, end: measure.FinishedEarly, reason: "stop.count"},
		"bytes":  {stop: scenario.Stop{Bytes: 500 << 10}, end: measure.FinishedEarly, reason: "stop.bytes"},
		"errors": {stop: scenario.Stop{ErrorRatio: .3}, target: "&error=50%", end: measure.StoppedByRule, reason: "stop.error_ratio"},
		"finish": {finish: true, end: measure.Interrupted, reason: "SIGTERM"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conf, n := closed(t, "simulated://x?servers=1&service=10ms&files=100x1KiB"+c.target, workload.Work{Kind: "read", Session: "kept"},
					stepOf(1, 3600))
				conf.Plan.Stop = c.stop
				if c.finish {
					finish = make(chan struct{})
					conf.Finish = finish
					conf.Why = func() measure.Ending { return measure.InterruptedBy("SIGTERM") }
					time.AfterFunc(5*time.Second, func() { close(finish) })
				}
				begin := time.Now()
				if err := Run(t.Context(), conf); err != nil {
					t.Fatal(err)
				}
				if gone := time.Since(begin); gone > 30*time.Second {
					t.Errorf("ended after %v", gone)
				}
				end := n.events[len(n.events)-1]
				if end.Kind != "end" || end.Outcome != c.end || end.Reason != c.reason {
					t.Errorf("last event %+v, want an end because of %s", end, c.reason)
				}
			})
		})
	}
}

func TestRetriesAreOffUnlessAskedForAndCounted(t *testing.T) {
	for _, retries := range []int{0, 5} {
		synctest.Test(t, func(t *testing.T) {
			work := workload.Work{Kind: "read", Session: "kept", Retries: retries}
			conf, n := closed(t, "simulated://x?servers=9&service=10ms&error=20%&files=100x1KiB", work, stepOf(4, 60))
			if err := Run(t.Context(), conf); err != nil {
				t.Fatal(err)
			}
			v := n.held(1)
			failed := v.Failed[storage.Busy]
			ratio := float64(failed) / float64(failed+v.Done)
			if math.Abs(ratio-.2) > .03 {
				t.Errorf("retries %d: %.3f of all tries failed, want 0.2", retries, ratio)
			}
			if (retries == 0) != (v.Retried == 0) {
				t.Errorf("retries %d: %d counted", retries, v.Retried)
			}
		})
	}
}

// A service that refuses at once must not make its clients spin.
func TestClientsPauseAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf, n := closed(t, "simulated://x?servers=9&service=0ms&error=100%&files=100x1KiB", workload.Work{Kind: "read", Session: "kept"},
			stepOf(10, 60))
		if err := Run(t.Context(), conf); err != nil {
			t.Fatal(err)
		}
		v := n.held(1)
		if rate := float64(v.Failed[storage.Busy]) / v.Seconds; rate < 9 || rate > 11 {
			t.Errorf("10 clients failed %.1f times a second, want 10", rate)
		}
	})
}

func TestSessionsAreKeptOrFresh(t *testing.T) {
	for session, want := range map[workload.Session]int64{workload.KeptSession: 0, workload.FreshSession: 1} {
		synctest.Test(t, func(t *testing.T) {
			conf, n := closed(t, "simulated://x?servers=9&service=10ms&connect=5ms&files=100x1KiB", workload.Work{Kind: "read", Session: session},
				stepOf(4, 30))
			if err := Run(t.Context(), conf); err != nil {
				t.Fatal(err)
			}
			v := n.held(1)
			if got := v.Sessions * 2 / (v.Done + 1); got != want && (want == 0 || v.Sessions < v.Done-4 || v.Sessions > v.Done+4) {
				t.Errorf("%s: %d sessions for %d operations", session, v.Sessions, v.Done)
			}
		})
	}
}

func TestASinkThatFailsEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf, n := closed(t, "simulated://x?servers=1&service=10ms&files=100x1KiB", workload.Work{Kind: "read", Session: "kept"}, stepOf(3, 3600))
		n.fail = errors.New("no space left")
		begin := time.Now()
		if err := Run(t.Context(), conf); !errors.Is(err, n.fail) {
			t.Errorf("error %v, want the sink's", err)
		}
		if gone := time.Since(begin); gone > time.Minute {
			t.Errorf("ended after %v", gone)
		}
	})
}

func TestACanceledRunEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf, n := closed(t, "simulated://x?servers=1&service=1h&files=100x1KiB", workload.Work{Kind: "read", Session: "kept"}, stepOf(3, 7200))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		if err := Run(ctx, conf); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
		if gone := time.Since(begin); gone > 11*time.Second {
			t.Errorf("ended after %v", gone)
		}
		for _, v := range n.intervals {
			for class, k := range v.Failed {
				if class != storage.Canceled && k > 0 {
					t.Errorf("%d failures of class %v: what we broke off is no failure of the service", k, class)
				}
			}
		}
	})
}

// Operations that outlast the last step are cancelled after the drain time.
func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf, n := closed(t, "simulated://x?servers=9&service=1h&dist=constant&files=100x1KiB", workload.Work{Kind: "read", Session: "kept"},
			stepOf(3, 10))
		begin := time.Now()
		if err := Run(t.Context(), conf); err != nil {
			t.Fatal(err)
		}
		if gone := time.Since(begin); gone < time.Minute || gone > 62*time.Second {
			t.Errorf("ended after %v, want 20 s + 10 s + 30 s of drain", gone)
		}
		if e := n.events[len(n.events)-2]; e.Kind != measure.EventWarning {
			t.Errorf("last event but one %+v, want a warning", e)
		}
		canceled := int64(0)
		for _, v := range n.intervals {
			if v.Phase == measure.GracefulStop {
				canceled += v.Failed[storage.Canceled]
			}
		}
		if canceled != 3 {
			t.Errorf("%d operations were broken off in the drain, want 3", canceled)
		}
	})
}

func TestTwoRunsOfOnePlanDoTheSame(t *testing.T) {
	run := func() (moved, done int64) {
		synctest.Test(t, func(t *testing.T) {
			work := workload.Work{Kind: "read", Session: "kept", Think: workload.Span{Exponential: seconds(1)},
				Part: &workload.Part{Size: 100, Count: 3}}
			conf, n := closed(t, "simulated://x?servers=100&service=1ms&dist=constant&files=100x1KiB", work, stepOf(20, 60))
			if err := Run(t.Context(), conf); err != nil {
				t.Fatal(err)
			}
			v := n.held(1)
			moved, done = v.Moved, v.Done
		})
		return moved, done
	}
	m1, d1 := run()
	m2, d2 := run()
	if m1 != m2 || d1 != d2 || d1 < 1000 {
		t.Errorf("moved %d and %d bytes in %d and %d operations, want the same twice", m1, m2, d1, d2)
	}
}
