package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/cluster"
	"weir/loadtest/measure"
)

// A remote is a weir with clients on other machines. Its private state is in a folder of the test.
type remote struct{ dir, state string }

func newRemote(t *testing.T) *remote {
	t.Helper()
	return &remote{t.TempDir(), t.TempDir()}
}

// start starts weir.
func (r *remote) start(t *testing.T, args ...string) *process {
	t.Helper()
	return start(t, r.dir, "env", append([]string{"XDG_STATE_HOME=" + r.state, "weir"}, args...)...)
}

// local starts a run with workers that are processes of this machine.
func (r *remote) local(t *testing.T, args ...string) *process {
	t.Helper()
	return r.start(t, append([]string{"run", "--on", "local", "--set", "on.address=127.0.0.1", "--out", "run"}, args...)...)
}

func (r *remote) run() string { return filepath.Join(r.dir, "run") }

// left fails t if any of a run's private state is left.
func (r *remote) left(t *testing.T) {
	t.Helper()
	if all, err := filepath.Glob(filepath.Join(r.state, "weir/runs/*")); err != nil || len(all) > 0 {
		t.Errorf("private state is left: %q, %v", all, err)
	}
}

// A run with workers over the network records its workers, their hosts and the accuracy of their
// clocks. No secrets remain.
func TestRunWithWorkers(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := labtest.Start(t, lab.NginxConfig{})
	p := r.local(t, "--workers", "3", "--target", s.URL, "--clients", "2,7", "--duration", "2s", "--set",
		"workload={kind: write, size: 4KiB, think: 20ms}")
	var token string
	require.Eventually(t, "the pass of the run", func() bool {
		found, _ := filepath.Glob(filepath.Join(r.state, "weir/runs/*/pass.json"))
		if len(found) == 0 {
			return false
		}
		b, err := os.ReadFile(found[0])
		var pass cluster.Pass
		if err != nil || json.Unmarshal(b, &pass) != nil {
			return false
		}
		info, err := os.Stat(filepath.Dir(found[0]))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Fatalf("the state's folder is %v, %v", info.Mode(), err)
		}
		token = pass.Token
		return true
	})
	code, said := p.ended()
	if code != exitFine && code != exitInvalid || !strings.Contains(said, "3 workers submitted to local") ||
		!strings.Contains(said, "step 2: 7 clients on 3 workers; workers: 3 of 3 connected") {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	f := findings(t, r.run())
	// On a busy machine workers may begin a moment after each other.
	if len(f.Curve) != 2 || f.Curve[1].ActiveClients < 6 || f.Curve[1].ActiveClients > 7.01 || f.Curve[1].Done == 0 || f.Curve[1].Errors > 0 {
		t.Errorf("%+v", f.Curve)
	}
	if len(f.Workers) != 3 || f.Workers[0].State != measure.Left || f.Workers[0].Doubt == nil || f.Workers[0].Host == "" ||
		f.Workers[0].Job == "" {
		t.Errorf("%+v", f.Workers)
	}
	if status, detail := status(f, "workers"); status != analysis.OK || !strings.Contains(detail, "all 3 stayed until the end") {
		t.Errorf("%s: %s", status, detail)
	}
	r.left(t)
	empty(t, s.Data)
	if err := filepath.WalkDir(r.run(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), token) {
			t.Errorf("%s has the run's token in it (%v)", path, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// The same plan on one machine and on four workers gives the same result within the noise that weir
// compare accepts.
func TestWorkersGiveTheSameAnswer(t *testing.T) {
	tier.Full(t, "the same answer from one process and from four workers")
	t.Parallel()
	r := newRemote(t)
	s := labtest.Start(t, lab.NginxConfig{})
	fill(t, s.Data, 9, 64<<10)
	const text = "name: %s\n%starget: %s\nworkload: {kind: read, think: {exponential: 20ms}}\nload: {clients: 8, ramp: 100ms, warmup: " +
		"200ms, duration: 1200ms}\n"
	for name, on := range map[string]string{"one": "", "four": "on: {batch: local, workers: 4, address: 127.0.0.1}\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(r.dir, name+".yaml"), fmt.Appendf(nil, text, name, on, s.URL), 0o600))
	}
	code, said := r.start(t, "run", "one.yaml", "four.yaml", "--repeat", "4", "--out", "both", "-q").ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	b, err := os.ReadFile(filepath.Join(r.dir, "both/compare.json"))
	var c compare.Comparison
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || len(c.Pairs) != 1 || len(c.Groups[1].Runs) != 4 {
		t.Fatalf("%v, %+v", err, c)
	}
	pair := c.Pairs[0]
	if pair.Result == compare.Better || pair.Result == compare.Worse {
		t.Errorf("%s: %s", pair.Result, pair.Verdict)
	}
	if pair.Overall.Value < 0.7 || pair.Overall.Value > 1.4 {
		t.Errorf("%+v", pair.Overall)
	}
	r.left(t)
}

// After the first interrupt the load ends and the report is written. No process or state of the
// workers remains.
func TestInterruptedWorkersGoHome(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	p := r.local(t, "--workers", "2", "--clients", "4", "--duration", "10m", "--set", "workload.think=5ms")
	untilHeld(t, r.run(), 1)
	p.send(t, os.Interrupt)
	code, said := p.ended()
	if code != exitInterrupt {
		t.Errorf("exit code %d\n%s", code, said)
	}
	if f := findings(t, r.run()); len(f.Curve) != 1 || f.Curve[0].Done == 0 {
		t.Errorf("%+v", f.Curve)
	}
	r.left(t)
	nobody(t, r.state)
}

// nobody fails t if a process of a run with this state is left.
func nobody(t *testing.T, state string) {
	t.Helper()
	require.Eventually(t, "the end of its processes", func() bool {
		all, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, path := range all {
			b, _ := os.ReadFile(path) // it may have ended
			if strings.Contains(string(b), "XDG_STATE_HOME="+state) {
				return false
			}
		}
		return true
	})
}

// A run whose controller was killed goes on with new workers, since the workers of this machine
// ended with it.
func TestKilledRunWithWorkersIsResumed(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := labtest.Start(t, lab.NginxConfig{})
	p := r.local(t, "--workers", "2", "--target", s.URL, "--clients", "2,4", "--duration", "5s", "--set",
		"workload={kind: write, size: 4KiB, think: 5ms}", "--set", "load.cooldown=200ms")
	untilHeld(t, r.run(), 2)
	p.kill(t)
	if all, err := filepath.Glob(filepath.Join(r.state, "weir/runs/*/pass.json")); err != nil || len(all) != 1 {
		t.Fatalf("private state %q, %v", all, err)
	}
	code, said := r.start(t, "run", "--resume", "run").ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	f := findings(t, r.run())
	if len(f.Curve) != 2 || f.Curve[1].Clients != 4 || f.Curve[1].ActiveClients < 3 || f.Curve[1].Errors > 0 {
		t.Errorf("%+v\n%s", f.Curve, said)
	}
	if status, detail := status(f, "clock"); status == analysis.Fail {
		t.Errorf("%s: %s", status, detail)
	}
	r.left(t)
	empty(t, s.Data)
	nobody(t, r.state)
}

// weir clean removes the files that a killed run has left, its private state included.
func TestCleanForgetsWorkers(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := labtest.Start(t, lab.NginxConfig{})
	p := r.local(t, "--workers", "1", "--target", s.URL, "--clients", "2", "--duration", "10m", "--set",
		"workload={kind: write, size: 4KiB, think: 5ms}")
	untilHeld(t, r.run(), 1)
	if code, said := r.start(t, "clean", "run").ended(); code != exitError || !strings.Contains(said, "still goes on, with its workers") {
		t.Errorf("while it goes on: exit code %d\n%s", code, said)
	}
	p.kill(t)
	if code, said := r.start(t, "clean", "run").ended(); code != exitFine {
		t.Errorf("exit code %d\n%s", code, said)
	}
	r.left(t)
	empty(t, s.Data)
}

// If the workers cannot be started, the error contains the message of the system.
func TestWorkersThatCannotStart(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("there is no ssh")
	}
	r := newRemote(t)
	begin := time.Now()
	code, said := r.start(t, "run", "--on", "ssh", "--target", "http://127.0.0.1:9/", "--clients", "2", "--set", "on.hosts=[127.0.0.1]",
		"--set", "on.wait=5s", "--set", "on.submit=[Port 9]", "--out", "run").ended()
	if code != exitError || !strings.Contains(said, "submit to ssh: ") || !strings.Contains(said, "127.0.0.1") {
		t.Errorf("exit code %d after %v\n%s", code, time.Since(begin), said)
	}
	r.left(t)
}
