package cluster

import (
	"context"
	"errors"
	"math"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/trust"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/storage"
	"weir/storage/simulated"
)

// open opens a server on the loopback that closes with the test.
func open(t *testing.T, o ServerOptions) *Server {
	t.Helper()
	if o.State == "" {
		o.State = filepath.Join(t.TempDir(), "state")
	}
	if o.Address == "" {
		o.Address = "127.0.0.1"
	}
	d, err := NewServer(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// enter connects a worker of this process.
func enter(t *testing.T, p Pass, o JoinOptions) <-chan error {
	t.Helper()
	err := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { err <- Join(ctx, p, o, []storage.Driver{simulated.Driver()}) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return err
}

// control controls a run with workers that connect to d.
func control(t *testing.T, d *Server, conf engine.Config, o WorkerOptions) error {
	t.Helper()
	if o.Wait == 0 {
		o.Wait = time.Minute
	}
	return d.Control(t.Context(), conf, o)
}

func TestWorkersComeInOverTheNetwork(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	d := open(t, ServerOptions{})
	var workers []<-chan error
	for range 3 {
		workers = append(workers, enter(t, d.Pass(), JoinOptions{}))
	}
	conf, n := plan(stepOf(7, 2), stepOf(3, 1)), &notes{}
	conf.Sink = n
	calm := watchCalm(t)
	require.NoError(t, control(t, d, conf, WorkerOptions{Want: 3}))
	timely := calm()
	for i, w := range workers {
		if err := <-w; err != nil {
			t.Errorf("worker %d: %v", i+1, err)
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
		if clients := area / span; timely && math.Abs(clients-want) > .3 {
			t.Errorf("step %d: %.2f clients, want %v", step, clients, want)
		}
		if timely && done == 0 || done != latencies {
			t.Errorf("step %d: %d done, %d latencies", step, done, latencies)
		}
	}
	if !n.has("end", measure.AllDone) || !n.has("worker", "worker 3 connected") || !n.has("step", "step 1: 7 clients on 3 workers") {
		t.Errorf("events %v", n.events)
	}
	once(t, n)
}

// once fails if a slot was written twice.
func once(t *testing.T, n *notes) {
	t.Helper()
	seen := map[slot]bool{}
	for _, v := range n.intervals {
		if seen[slotOf(v)] {
			t.Errorf("written twice: %+v", slotOf(v))
		}
		seen[slotOf(v)] = true
	}
}

func TestAWrongTokenIsRefused(t *testing.T) {
	d := open(t, ServerOptions{})
	p := d.Pass()
	p.Token = strings.Repeat("0", len(p.Token))
	if err := <-enter(t, p, JoinOptions{}); err == nil || !strings.Contains(err.Error(), "refused this pass") {
		t.Errorf("error %v", err)
	}
	p = d.Pass()
	p.Pin = strings.Repeat("0", len(p.Pin))
	if err := <-enter(t, p, JoinOptions{}); !errors.Is(err, trust.ErrPin) {
		t.Errorf("error %v", err)
	}
}

func TestNobodyComes(t *testing.T) {
	t.Parallel()
	d := open(t, ServerOptions{})
	conf, n := plan(stepOf(1, 1)), &notes{}
	conf.Sink = n
	err := d.Control(t.Context(), conf, WorkerOptions{Want: 2, Wait: time.Second, patience: time.Second,
		Absent: func() []string { return []string{"job 1.0 is held: no such file"} }})
	if err == nil || !strings.Contains(err.Error(), "no worker connected within 1s") || !strings.Contains(err.Error(), "held: no such file") {
		t.Errorf("error %v", err)
	}
}

// A run does not wait for workers whose jobs are over or held.
func TestNobodyElseComes(t *testing.T) {
	t.Parallel()
	d := open(t, ServerOptions{})
	conf, n := plan(stepOf(1, 1)), &notes{}
	conf.Sink = n
	begin := time.Now()
	err := d.Control(t.Context(), conf, WorkerOptions{Want: 2, Wait: time.Hour, Left: func() int { return 0 },
		Absent: func() []string { return []string{"2 workers failed: no such file"} }})
	if err == nil || !strings.Contains(err.Error(), "no more are expected") || !strings.Contains(err.Error(), "failed: no such file") {
		t.Errorf("error %v", err)
	}
	d, n = open(t, ServerOptions{}), &notes{}
	conf.Sink = n
	w := enter(t, d.Pass(), JoinOptions{Version: "0.9\x1b"})
	err = d.Control(t.Context(), conf, WorkerOptions{Want: 2, Version: "1.0", Wait: time.Hour, Coming: func() int { return 0 },
		Left: func() int { return 1 }, Absent: func() []string { return []string{"job 1.1 is held"} }})
	require.NoError(t, errors.Join(err, <-w))
	if !n.has("warning", `worker 1 is another version of weir, "0.9`) {
		t.Errorf("events %v", n.events)
	}
	if !n.has("warning", "begins with 1 of 2 workers: something keeps the others from connecting: job 1.1 is held") || n.done() == 0 ||
		time.Since(begin) > time.Minute {
		t.Errorf("%d operations, events %v", n.done(), n.events)
	}
}

func TestPassesAreFiles(t *testing.T) {
	p := Pass{Run: "r", URLs: []string{"https://127.0.0.1:1"}, Token: "t", Pin: "p"}
	path := filepath.Join(t.TempDir(), "pass")
	require.NoError(t, p.Write(path))
	q, err := ReadPass(path)
	if err != nil || q.Run != p.Run || q.URLs[0] != p.URLs[0] || q.Token != p.Token || q.Pin != p.Pin {
		t.Errorf("%+v, %v", q, err)
	}
	if err := p.Write(path); err == nil {
		t.Error("an old pass was written over")
	}
	if u, err := url.Parse(q.URLs[0]); err != nil || u.Scheme != "https" {
		t.Error(errors.Join(err))
	}
}
