package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/results"
)

// deadSeconds returns the number of intervals of a step in which no operation succeeded.
func deadSeconds(dir string, step int) (n int) {
	run, err := results.Open(dir)
	if err != nil {
		return 0
	}
	for iv, err := range run.Intervals() {
		if err == nil && iv.Step == step && iv.Phase == measure.Measured && iv.Done == 0 && iv.Moved == 0 {
			n++
		}
	}
	return n
}

// A server is unavailable for a part of a step. The findings have the times and the kind of the
// outage, the step does not count, and all other steps count.
func TestServerAwayDuringAStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start      func(t *testing.T) *lab.System
		away, back func(t *testing.T, s *lab.System)
		kind       string
	}{
		"nginx killed and started again": {
			func(t *testing.T) *lab.System { return labtest.Start(t, lab.NginxConfig{}) },
			func(_ *testing.T, s *lab.System) { s.Kill() }, restart, analysis.OutageFailed},
		"XRootD killed and started again": {
			func(t *testing.T) *lab.System { return labtest.Start(t, lab.XRootDConfig{}) },
			func(_ *testing.T, s *lab.System) { s.Kill() }, restart, analysis.OutageFailed},
		"nginx stopped and continued": {
			func(t *testing.T) *lab.System { return labtest.Start(t, lab.NginxConfig{}) },
			func(t *testing.T, s *lab.System) { sendAll(t, s, syscall.SIGSTOP) },
			func(t *testing.T, s *lab.System) { sendAll(t, s, syscall.SIGCONT) }, analysis.OutageStalled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.start(t)
			fill(t, s.Data, 4, 4096)
			dir := filepath.Join(t.TempDir(), "run")
			p := started(t, "run", "--target", s.URL, "--clients", "1,2,3", "--duration", "6s", "--set", "load.ramp=0s", "--set",
				"load.warmup=200ms", "--set", "workload.think=5ms", "--quiet", "--out", dir)
			untilHeld(t, dir, 2)
			c.away(t, s)
			require.Eventually(t, "two seconds without data", func() bool { return deadSeconds(dir, 2) >= 2 })
			c.back(t, s)
			code, said := p.ended()
			if code != exitFine && code != exitInvalid { // on a busy machine other checks may fail
				t.Fatalf("exit code %d:\n%s", code, said)
			}
			f := findings(t, dir)
			if len(f.Outages) == 0 {
				t.Fatalf("no outage was found:\n%s", said)
			}
			// On a busy machine a late response may interrupt the outage, so the longest part
			// counts.
			o := slices.MaxFunc(f.Outages, func(a, b analysis.Outage) int { return cmp.Compare(a.Seconds, b.Seconds) })
			if o.Kind != c.kind || o.Step != 2 || o.Seconds < 1 || !o.Ended {
				t.Errorf("%+v, want a %s outage of step 2 of a second or more that ended", o, c.kind)
			}
			if f.Curve[1].Excluded == "" || f.Validity.Status == analysis.Valid {
				t.Errorf("step 2 counts (%q), result %s", f.Curve[1].Excluded, f.Validity.Status)
			}
			if f.Optimum != nil && f.Optimum.Step == 2 {
				t.Error("the optimum is the step in which the server was away")
			}
		})
	}
}

func restart(t *testing.T, s *lab.System) {
	t.Helper()
	if err := s.Restart(t.Context()); err != nil {
		t.Error(err)
	}
}

func sendAll(t *testing.T, s *lab.System, sig syscall.Signal) {
	t.Helper()
	if err := s.Signal(sig); err != nil {
		t.Error(err)
	}
}

// If a server is lost in the second of three steps, no capacity is reported, and the exit code
// shows the failure.
func TestServerLost(t *testing.T) {
	t.Parallel()
	s := labtest.Start(t, lab.NginxConfig{})
	fill(t, s.Data, 4, 4096)
	dir := filepath.Join(t.TempDir(), "run")
	p := started(t, "run", "--target", s.URL, "--clients", "1,2,3", "--duration", "3s", "--set", "load.ramp=0s", "--quiet", "--out", dir)
	untilHeld(t, dir, 2)
	s.Kill()
	code, said := p.ended()
	if code != exitInvalid {
		t.Errorf("exit code %d, want %d:\n%s", code, exitInvalid, said)
	}
	f := findings(t, dir)
	if len(f.Outages) != 1 || f.Outages[0].Ended || f.Outages[0].Kind != analysis.OutageFailed {
		t.Errorf("%+v, want one outage that did not end", f.Outages)
	}
	if f.Optimum != nil || f.Knee != nil || len(f.Bottleneck) > 0 || f.Validity.Status != analysis.Invalid {
		t.Errorf("one step is left, and yet there are optimum %+v, knee %+v, bottleneck %+v, %s", f.Optimum, f.Knee, f.Bottleneck,
			f.Validity.Status)
	}
}

// A service that fails permanently in the last second of the load is lost, even if the time until
// the end is very short. The load ends in the second in which the service has completed its maximum
// number of operations.
func TestServerLostAtTheEnd(t *testing.T) {
	t.Parallel()
	const most = 1500
	var served atomic.Int64
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && served.Add(1) > most {
			_ = s.Listener.Close() // connections are refused from now on
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Length", "1000")
		if r.Method == http.MethodGet {
			_, _ = w.Write(make([]byte, 1000))
		}
	}))
	defer s.Close()
	dir := filepath.Join(t.TempDir(), "run")
	code, said := weir(t, "run", "--target", s.URL, "--clients", "4", "--duration", "1m", "--set", "load.ramp=0s", "--set", "load.warmup=0s",
		"--set", fmt.Sprintf("stop.count=%d", most), "--set", "files.list="+writeTemp(t, "f 1000\n"), "--quiet", "--out", dir)
	f := findings(t, dir)
	if code != exitInvalid || len(f.Outages) != 1 || f.Outages[0].Ended || f.Outages[0].Kind != analysis.OutageFailed ||
		!strings.Contains(f.Headline, "did not respond") {
		t.Errorf("exit code %d, outages %+v:\n%s", code, f.Outages, said)
	}
}
