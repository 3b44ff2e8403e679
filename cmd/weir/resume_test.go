package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/loadtest/analysis"
	"weir/loadtest/results"
)

// A run that was killed goes on at the step in which it stopped. Steps that were held before count,
// the interrupted step does not, and the time in between is not a fault.
func TestKilledRunIsResumed(t *testing.T) {
	t.Parallel()
	target := t.TempDir()
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--target", "file://" + target, "--out", dir, "--duration", "4s",
		"--set", "load={clients: [1, 2, 3], ramp: 0, warmup: 0, cooldown: 300ms}", "--set", "workload={kind: write, size: 4KiB, think: 5ms}"}
	killed(t, dir, 2, args...)
	left, err := filepath.Glob(filepath.Join(target, "weir-*", "*", "*"))
	if err != nil || len(left) == 0 {
		t.Fatalf("nothing was on the target when the run was killed: %v", err)
	}
	code, said := weir(t, "run", "--resume", dir, "-q")
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	f := findings(t, dir)
	var clients, numbers []int
	for _, s := range f.Curve {
		clients, numbers = append(clients, s.Clients), append(numbers, s.Step)
		if s.Done == 0 || s.Duration < 3.6 {
			t.Errorf("step %d: %d operations in %v s", s.Step, s.Done, s.Duration)
		}
	}
	if len(clients) != 3 || clients[0] != 1 || clients[1] != 2 || clients[2] != 3 || numbers[0] != 1 || numbers[1] != 4 || numbers[2] != 5 {
		t.Errorf("clients %v of steps %v, want 1, 2, 3 of steps 1, 4, 5", clients, numbers)
	}
	if s, detail := status(f, "data"); s != analysis.OK || !strings.Contains(detail, "resumed once; the interrupted part of step 2") {
		t.Errorf("data: %s: %s", s, detail)
	}
	if s, detail := status(f, "clock"); s == analysis.Fail { // a busy machine's seconds may overlap a little
		t.Errorf("clock: %s: %s", s, detail)
	}
	if entries, err := os.ReadDir(target); err != nil || len(entries) > 0 {
		t.Errorf("left on the target: %v (%v)", entries, err)
	}
	code, said = weir(t, "run", "--resume", dir)
	if code != exitUsage || !strings.Contains(said, "the run is over") {
		t.Errorf("resumed once more: exit code %d\n%s", code, said)
	}
}

// The built-in server of a killed run has ended. A new server replaces it, and a run with several
// processes goes on like a run with one process.
func TestKilledRunOfTheBuiltInServerIsResumed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	killed(t, dir, 2, "run", "--out", dir, "--clients", "1,4", "--duration", "4s", "--processes", "2",
		"--set", "load={ramp: 100ms, warmup: 0, cooldown: 200ms}", "--set", "workload.think=5ms")
	code, said := started(t, "run", "--resume", dir, "--processes", "2").ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	if !strings.Contains(said, "step 2 was broken off and is held again") {
		t.Errorf("it does not say what it does:\n%s", said)
	}
	f := findings(t, dir)
	if len(f.Curve) != 2 || f.Curve[1].Clients != 4 || f.Curve[1].Done == 0 || f.Curve[1].Errors > 0 {
		t.Errorf("curve %+v", f.Curve)
	}
}

func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	if code, said := weir(t, "run", "--resume", t.TempDir()); code != exitError || !strings.Contains(said, "is not a run directory") {
		t.Errorf("an empty folder: exit code %d: %s", code, said)
	}
	if code, said := weir(t, "run", "--resume", dir, "--clients", "3", "--set", "seed=2"); code != exitUsage ||
		!strings.Contains(said, "leave --clients --set out") {
		t.Errorf("other flags: exit code %d: %s", code, said)
	}
	p := started(t, "run", "--out", dir, "--target", "simulated://x?servers=4&service=1ms&files=9x1KiB", "--clients", "1", "--duration", "10m")
	untilHeld(t, dir, 1)
	if code, said := weir(t, "run", "--resume", dir); code != exitError || !strings.Contains(said, results.ErrBusy.Error()) {
		t.Errorf("a run that goes on: exit code %d: %s", code, said)
	}
	p.kill(t)
}
