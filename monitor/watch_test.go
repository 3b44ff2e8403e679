package monitor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
)

// keep is a sink that keeps samples, by host.
type keep struct {
	mu  sync.Mutex
	all []*Sample
	err error
}

func (k *keep) Sample(s *Sample) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, s)
	return k.err
}

func (k *keep) of(host string) (out []*Sample) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.all {
		if s.Host == host {
			out = append(out, s)
		}
	}
	return out
}

// looked waits until k has a sample of this machine: the first look comes after Start, late on a
// busy machine, and earlier activity is not reported.
func looked(t *testing.T, k *keep) {
	t.Helper()
	require.Eventually(t, "a first sample", func() bool { return len(k.of("here")) > 0 })
}

// A script is a probe whose looks are functions of a test.
type script struct {
	play   func(ctx context.Context, n int) (*Sample, error)
	n      int
	closed atomic.Bool
}

func (p *script) look(ctx context.Context) (*Sample, error) { p.n++; return p.play(ctx, p.n) }
func (p *script) close()                                    { p.closed.Store(true) }

// play runs probes in a synctest bubble.
func play(sink Sink, probes map[string]*script) *Watch {
	w := &Watch{stop: make(chan struct{}), sink: sink}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	for host, p := range probes {
		r := &runner{watch: w, host: host, probe: p, timeout: 3 * time.Second}
		w.runs.Go(func() { r.run(ctx) })
	}
	return w
}

func good(_ context.Context, n int) (*Sample, error) {
	if n == 1 {
		return nil, nil
	}
	return &Sample{Time: time.Now()}, nil
}

func TestSamplesAtWholeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		<-time.After(300 * time.Millisecond)
		k := &keep{}
		w := play(k, map[string]*script{"a": {play: good}, "b": {play: good}})
		<-time.After(3500 * time.Millisecond)
		w.SetStep(4)
		require.NoError(t, w.Stop())
		for _, host := range []string{"a", "b"} {
			var offsets []time.Duration
			for _, s := range k.of(host) {
				offsets = append(offsets, s.Time.Sub(start))
			}
			want := "[1s 2s 3s 3.8s]"
			if got := fmt.Sprint(offsets); got != want {
				t.Errorf("%s: samples at %s, want %s", host, got, want)
			}
		}
		if got := k.of("a"); got[2].Step != 0 || got[3].Step != 4 {
			t.Errorf("steps %d and %d", got[2].Step, got[3].Step)
		}
	})
}

// TestHangingProbe: a probe hangs for two minutes, ignores its context, and then returns.
func TestHangingProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		bad := func(ctx context.Context, n int) (*Sample, error) {
			if n == 3 {
				<-release
			}
			return good(ctx, n)
		}
		k := &keep{}
		p := &script{play: bad}
		w := play(k, map[string]*script{"good": {play: good}, "bad": p})
		<-time.After(120*time.Second + 500*time.Millisecond)
		close(release)
		<-time.After(2 * time.Second)
		require.NoError(t, w.Stop())
		if n := len(k.of("good")); n < 120 {
			t.Errorf("the good host gave %d samples in 122 s", n)
		}
		var faults, whole int
		for _, s := range k.of("bad") {
			if strings.HasPrefix(s.Error, "no answer for") {
				faults++
			} else if s.Error == "" {
				whole++
			}
		}
		if faults != firstFaults+1 || whole < 4 {
			t.Errorf("the hanging host gave %d errors and %d samples", faults, whole)
		}
		if !p.closed.Load() {
			t.Error("the probe was not closed")
		}
	})
}

// TestStopLeavesWhatHangsForEver: Stop returns in bounded time even if a probe hangs forever.
func TestStopLeavesWhatHangsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := play(&keep{}, map[string]*script{"bad": {play: func(context.Context, int) (*Sample, error) {
			<-release
			return nil, nil
		}}})
		<-time.After(5 * time.Second)
		before := time.Now()
		require.NoError(t, w.Stop())
		if took := time.Since(before); took > 9*time.Second {
			t.Errorf("Stop took %v", took)
		}
		close(release)
	})
}

func TestFaultsAreThrottledAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keep{}
		w := play(k, map[string]*script{"bad": {play: func(ctx context.Context, n int) (*Sample, error) {
			if n <= 130 || n >= 135 {
				return nil, errors.New("refused")
			}
			return good(ctx, n)
		}}})
		<-time.After(140500 * time.Millisecond)
		require.NoError(t, w.Stop())
		faults := 0
		for _, s := range k.of("bad") {
			if s.Error == "refused" {
				faults++
			}
		}
		// Three errors at once, two for the two minutes, and three when it fails again.
		if faults != firstFaults+2+firstFaults {
			t.Errorf("%d errors reported", faults)
		}
	})
}

func TestSinkErrorAndPanicEndNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("disk full")
		k := &keep{err: full}
		w := play(k, map[string]*script{"a": {play: good}, "b": {play: func(context.Context, int) (*Sample, error) { panic("oops") }}})
		<-time.After(3 * time.Second)
		if err := w.Stop(); !errors.Is(err, full) {
			t.Errorf("Stop says %v", err)
		}
		if err := w.Stop(); !errors.Is(err, full) {
			t.Errorf("the second Stop says %v", err)
		}
		if len(k.all) != 1 || !strings.Contains(k.all[0].Error, "oops") {
			t.Errorf("after an error the sink got %d samples", len(k.all))
		}
	})
}

func TestContextEndsWatching(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	w, err := Start(ctx, nil, Options{}, &keep{})
	require.NoError(t, err)
	cancel()
	if err := w.Stop(); err != nil {
		t.Error(err)
	}
}

// TestHangingEndpoint has an endpoint that accepts and never responds, an endpoint that sends a
// byte now and then, an endpoint that refuses, and this machine, which must not be affected: it may
// be late, as a busy machine is, but goes on.
func TestHangingEndpoint(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	quit := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-quit:
		case <-r.Context().Done():
		}
	}))
	drip := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			_, err := w.Write([]byte("#"))
			if err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-quit:
				return
			case <-r.Context().Done():
				return
			case <-tick.C:
			}
		}
	}))
	defer silent.Close()
	defer drip.Close()
	defer close(quit)
	k := &keep{}
	w, err := Start(context.Background(), []Host{
		{Name: "silent", NodeExporter: silent.URL}, {Name: "drip", NodeExporter: drip.URL},
		{Name: "down", NodeExporter: fmt.Sprintf("http://127.0.0.1:%d", freePort(t))}, {Name: "here"},
	}, Options{Timeout: 300 * time.Millisecond}, k)
	require.NoError(t, err)
	late := func(s *Sample) bool { return strings.HasPrefix(s.Error, "no answer for") }
	require.Eventually(t, "this machine gave two samples", func() bool {
		return len(slices.DeleteFunc(k.of("here"), late)) >= 2
	})
	require.Eventually(t, "each of the others gave an error", func() bool {
		return len(k.of("silent")) > 0 && len(k.of("drip")) > 0 && len(k.of("down")) > 0
	})
	require.NoError(t, w.Stop())
	for host, want := range map[string]string{"silent": "deadline", "drip": "deadline", "down": "refused"} {
		for _, s := range k.of(host) {
			if !strings.Contains(s.Error, want) && !late(s) {
				t.Errorf("%s: %q", host, s.Error)
			}
		}
	}
	for _, s := range k.of("here") {
		if !late(s) && (s.Error != "" || s.CPU == nil && s.Seconds > 0.1 || s.Cost <= 0) {
			t.Errorf("this machine: %+v", s)
		}
	}
}

func TestWithSelf(t *testing.T) {
	for _, c := range []struct {
		name   string
		hosts  []Host
		serves bool
		want   string
	}{
		{"none", nil, false, "client"},
		{"none, service here", nil, true, "both"},
		{"server far", []Host{{Name: "s", Role: "server", NodeExporter: "http://s:9100"}}, false, "client server"},
		{"both here", []Host{{Role: "client"}, {Role: "server", Pids: []int{5}}}, true, "both"},
		{"as said", []Host{{Name: "x", Role: "server"}}, true, "server"},
		{"no name", []Host{{NodeExporter: "http://far:9100"}, {}}, false, "other client"},
	} {
		var roles []string
		for _, h := range withSelf(c.hosts, c.serves) {
			roles = append(roles, string(h.Role))
			if h.Name == "" {
				t.Errorf("%s: a host without a name", c.name)
			}
		}
		if got := strings.Join(roles, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
