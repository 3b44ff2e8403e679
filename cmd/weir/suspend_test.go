package main

import (
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
)

// A run whose terminal is closed ends as with Ctrl-C: the files that it made are removed, and the
// measurements are reported. With nohup it goes on.
func TestHangup(t *testing.T) {
	t.Parallel()
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("this process was started so that hangups are ignored (nohup): its children ignore them, too")
	}
	target, dir := t.TempDir(), filepath.Join(t.TempDir(), "run")
	p := started(t, "run", "--target", "file://"+target, "--set", "files={make: {count: 4, size: 64KiB}}",
		"--clients", "1,2", "--duration", "30s", "--set", "workload.think=10ms", "--out", dir)
	untilHeld(t, dir, 1)
	p.send(t, syscall.SIGHUP)
	if code, said := p.ended(); code != exitHangup {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	empty(t, target)
	if f := findings(t, dir); len(f.Curve) != 1 {
		t.Errorf("%d steps were held", len(f.Curve))
	}
}

// A run that was stopped and goes on reports this on the screen and in its events.
func TestStopped(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	p := started(t, "run", "--target", "simulated://x?service=1ms", "--clients", "1", "--duration", "5s", "--out", dir)
	untilHeld(t, dir, 1)
	p.send(t, syscall.SIGSTOP)
	began := time.Now()
	require.Eventually(t, "1.5 s of load", func() bool { return time.Since(began) > 1500*time.Millisecond })
	p.send(t, syscall.SIGCONT)
	code, said := p.ended()
	if code != exitFine && code != exitInvalid || !strings.Contains(said, "weir was suspended for") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if !slices.ContainsFunc(findings(t, dir).Warnings, func(w string) bool { return strings.Contains(w, "weir was suspended for") }) {
		t.Error("the findings do not tell it")
	}
}
