package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir/monitor"
	"weir/results"
	"weir/search"
)

// peaked is a simulated service whose throughput is highest with 44 clients
// (the Universal Scalability Law: sqrt((1-sigma)/kappa)).
const peaked = "simulated://peaked?service=10ms&sigma=0.02&kappa=0.0005&files=100x1MiB"

// foundSteps are the steps that the search in dir has held.
func foundSteps(t *testing.T, dir string) []search.Step {
	t.Helper()
	run, err := results.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := stepsOf(run, func(int) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// The whole search on a simulated service, killed in the middle: it goes on with
// all that was held before, and never goes beyond its limits.
func TestFindIsResumed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	killed(t, dir, 3, "find", peaked, "--hold", "1s", "--time", "40s", "--max", "400", "--out", dir)
	before := foundSteps(t, dir)
	if len(before) < 2 {
		t.Fatalf("%d steps before the kill", len(before))
	}
	code, said := started(t, "find", "--resume", dir, "--time", "30s").ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	after := foundSteps(t, dir)
	for i, s := range before {
		if len(after) <= len(before) || after[i].Clients != s.Clients || after[i].Yield != s.Yield {
			t.Fatalf("the steps before the kill were %+v, after the resumed search %+v", before, after)
		}
	}
	seen := map[int]bool{}
	for _, s := range after {
		seen[s.Clients] = true
		if s.Clients > 400 {
			t.Errorf("a step of %d clients, --max was 400", s.Clients)
		}
	}
	if f := findings(t, dir); len(f.Curve) < len(after) || f.Optimum == nil || f.Optimum.Clients < 15 || f.Optimum.Clients > 150 {
		t.Errorf("%d points of %d steps, optimum %+v, want one near 44", len(f.Curve), len(after), f.Optimum)
	}
	if !strings.Contains(said, "\nsearch  ") || !strings.Contains(said, "a search from 1 to 400 clients") {
		t.Errorf("it does not say what it found:\n%s", said)
	}
	if code, said := weir(t, "run", "--resume", dir); code != exitUsage || !strings.Contains(said, "weir find --resume") {
		t.Errorf("weir run --resume of a search: exit code %d: %s", code, said)
	}
}

func TestFindIsInterrupted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	p := started(t, "find", peaked, "--hold", "1s", "--out", dir)
	untilHeld(t, dir, 3)
	p.send(t, os.Interrupt)
	code, said := p.ended()
	if code != exitInterrupt {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(said, "search         it was interrupted: no maximum so far") {
		t.Errorf("it does not say what is known:\n%s", said)
	}
}

// The built-in server, with clients in two processes: the search steers them all.
func TestFindWithSeveralProcesses(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	code, said := started(t, "find", "--hold", "1s", "--time", "12s", "--max", "8", "--set", "workload.think=20ms", "--processes", "2", "--out", dir).ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	steps, f := foundSteps(t, dir), findings(t, dir)
	if len(steps) < 2 || len(f.Curve) != len(steps) || steps[0].Clients != 1 {
		t.Fatalf("steps %+v, curve of %d, want 1 client first and more later", steps, len(f.Curve))
	}
	for i, s := range steps[:2] { // how far apart depends on the time that is left
		if s.Clients <= i || s.Done == 0 || f.Curve[i].Clients != s.Clients {
			t.Errorf("step %+v, in the curve %d clients", s, f.Curve[i].Clients)
		}
	}
}

// The servers are waited for until they are as calm as they were.
func TestTheNextStepWaitsForCalmServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher()
		busy, over := 0.05, make(chan bool)
		go func() { // the monitor
			for tick := time.NewTicker(time.Second); ; {
				select {
				case <-tick.C:
					w.Sample(&monitor.Sample{Time: time.Now(), Seconds: 1, Host: "server", Role: "server", CPU: &monitor.CPU{User: busy}})
					w.Sample(&monitor.Sample{Time: time.Now(), Seconds: 1, Host: "client", Role: "client", CPU: &monitor.CPU{User: 1}})
				case <-over:
					return
				}
			}
		}()
		defer close(over)
		w.learn(t.Context(), learnFor)
		waits := func(most time.Duration) time.Duration {
			begin := time.Now()
			w.calm(t.Context(), most)
			return time.Since(begin)
		}
		if d := waits(time.Minute); d > 2*time.Second {
			t.Errorf("waited %v for a calm server", d)
		}
		busy = 0.9
		time.Sleep(2 * time.Second) // of the bubble
		if d := waits(7 * time.Second); d != 7*time.Second {
			t.Errorf("waited %v for a server that stays busy, want the most", d)
		}
		time.AfterFunc(5500*time.Millisecond, func() { busy = 0.1 })
		if d := waits(time.Minute); d < 5*time.Second || d > 8*time.Second {
			t.Errorf("waited %v for a server that is busy for 5.5 s", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		busy = 0.9
		time.Sleep(2 * time.Second) // of the bubble
		begin := time.Now()
		if w.calm(ctx, time.Minute); time.Since(begin) > 0 {
			t.Error("an interrupt did not end the waiting")
		}
		if newWatcher().calm(t.Context(), time.Minute); time.Since(begin) > 0 {
			t.Error("nobody tells how the servers are, and it waited")
		}
	})
}
