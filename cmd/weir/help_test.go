package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/campaign"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/storage"
)

// weir calls the command in this process and returns its exit code and its output.
func weir(t *testing.T, args ...string) (code exitCode, said string) {
	t.Helper()
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	code = execute(ctx, args, streams{in: strings.NewReader(""), out: &out, err: &out}, nil)
	return code, out.String()
}

// A process is a program in a process of its own, as a user starts it.
type process struct {
	*exec.Cmd
	out bytes.Buffer
}

// started starts weir in a folder of its own.
func started(t *testing.T, args ...string) *process {
	t.Helper()
	return start(t, t.TempDir(), "weir", args...) // testscript puts this binary under that name into the PATH
}

// start starts a program in dir. With -short, the test is skipped, and only tests that call the
// commands in this process remain.
func start(t *testing.T, dir, program string, args ...string) *process {
	t.Helper()
	tier.Slow(t, "starts programs")
	p := &process{Cmd: exec.CommandContext(t.Context(), program, args...)}
	p.Dir, p.Stdout, p.Stderr = dir, &p.out, &p.out
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// unwrapped returns the output of a command without the line ends of its paragraphs.
func unwrapped(said string) string {
	return strings.Join(strings.Fields(said), " ")
}

// ended waits for the end of the process and returns its exit code and its output.
func (p *process) ended() (code exitCode, said string) {
	_ = p.Wait() // its code is returned
	return exitCode(p.ProcessState.ExitCode()), p.out.String()
}

// send sends a signal.
func (p *process) send(t *testing.T, signal os.Signal) {
	t.Helper()
	require.NoError(t, p.Process.Signal(signal))
}

// kill ends the process like kill -9.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.send(t, os.Kill)
	_ = p.Wait() // killed
}

// untilHeld waits until the run in dir has written an interval of a step's hold with completed operations.
func untilHeld(t *testing.T, dir string, step int) {
	t.Helper()
	held := regexp.MustCompile(fmt.Sprintf(`"step":%d,"phase":"measure".*"done":[1-9]`, step))
	require.Eventually(t, held.String(), func() bool {
		text, err := os.ReadFile(filepath.Join(dir, results.IntervalsFile))
		return err == nil && held.Match(text)
	})
}

// killed starts weir and kills it when the step has been held for a second.
func killed(t *testing.T, dir string, step int, args ...string) {
	t.Helper()
	p := started(t, args...)
	untilHeld(t, dir, step)
	p.kill(t)
}

// measureFor calls weir run and returns its findings. A result may be invalid because of this
// machine, or miss the thresholds of a full-size scenario. The caller examines only the checks that
// it needs.
func measureFor(t *testing.T, args ...string) *analysis.Findings {
	t.Helper()
	all := measureAll(t, args...)
	if len(all) != 1 {
		t.Fatalf("%d runs, want one", len(all))
	}
	return all[0]
}

// measureAll is like measureFor, for all runs of a campaign.
func measureAll(t *testing.T, args ...string) []*analysis.Findings {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	code, said := weir(t, append([]string{"run", "--quiet", "--out", dir}, args...)...)
	if code != exitFine && code != exitInvalid && code != exitMissed {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	t.Log(said)
	if !campaign.Is(dir) {
		return []*analysis.Findings{findings(t, dir)}
	}
	c, err := campaign.Read(dir)
	require.NoError(t, err)
	var all []*analysis.Findings
	for _, r := range c.Runs {
		all = append(all, findings(t, filepath.Join(dir, r.Dir)))
	}
	return all
}

func findings(t *testing.T, dir string) *analysis.Findings {
	t.Helper()
	b := require.File(t, filepath.Join(dir, results.FindingsFile))
	f := &analysis.Findings{}
	require.NoError(t, json.Unmarshal(b, f))
	balanced(t, dir, f)
	return f
}

// balanced fails t unless each ended operation of the run in dir is counted once, as done or
// failed, and findings and tables have the same counts as the intervals.
func balanced(t *testing.T, dir string, f *analysis.Findings) {
	t.Helper()
	run, err := results.Open(dir)
	require.NoError(t, err)
	var all, held, steps measure.Sum // steps: without the steps that a resumed run repeated
	for v, err := range run.Intervals() {
		require.NoError(t, err)
		all.AddCounts(&v.Sum)
		if v.Phase != measure.Measured {
			continue
		}
		if held.AddCounts(&v.Sum); slices.ContainsFunc(f.Curve, func(s analysis.Step) bool { return s.Step == v.Step }) {
			steps.AddCounts(&v.Sum)
		}
	}
	if ended := all.Done + all.Errors() + all.Failed[storage.Canceled]; ended > all.Begun {
		t.Errorf("%s: %d operations ended and %d began", dir, ended, all.Begun)
	}
	var curve, kinds, servers measure.Sum
	add := func(to *measure.Sum, done, errors, wrong int64) {
		to.Add(&measure.Sum{Done: done, Wrong: wrong, Failed: map[storage.Class]int64{storage.Other: errors}})
	}
	for _, s := range f.Curve {
		add(&curve, s.Done, s.Errors, s.Wrong)
	}
	for _, p := range f.Kinds {
		add(&kinds, p.Done, p.Errors, p.Wrong)
	}
	for _, p := range f.Servers {
		add(&servers, p.Done, p.Errors, p.Wrong)
	}
	for where, sums := range map[string][2]*measure.Sum{"curve": {&curve, &steps}, "kinds": {&kinds, &held}, "servers": {&servers, &held}} {
		got, want := sums[0], sums[1]
		if got.Done != want.Done || got.Errors() != want.Errors() || got.Wrong != want.Wrong {
			t.Errorf("%s: %s has %d done, %d wrong, %d failed; its intervals have %d, %d, %d", dir, where, got.Done, got.Wrong, got.Errors(),
				want.Done, want.Wrong, want.Errors())
		}
	}
}

// want fails t unless the named check has the given status.
func want(t *testing.T, f *analysis.Findings, name, status string) {
	t.Helper()
	for _, c := range f.Validity.Checks {
		if c.Name == name {
			if c.Status != status {
				t.Errorf("check %q: %s (%s), want %s", name, c.Status, c.Detail, status)
			}
			return
		}
	}
	t.Errorf("no check %q", name)
}

// status returns the state and the detail of one check.
func status(f *analysis.Findings, name string) (string, string) {
	for _, c := range f.Validity.Checks {
		if c.Name == name {
			return c.Status, c.Detail
		}
	}
	return "", ""
}

// crowded reports whether other programs kept the machine busy during a run.
func crowded(f *analysis.Findings) bool {
	state, _ := status(f, "quiet machines")
	return state == analysis.Warn
}

// fill puts files with different content into dir. They belong to the owner of dir, because a
// server must be able to keep checksums in the attributes of its files, like XRootD.
func fill(t *testing.T, dir string, count, size int) {
	t.Helper()
	info, err := os.Stat(dir)
	require.NoError(t, err)
	for i := range count {
		name := filepath.Join(dir, fmt.Sprintf("data-%02d.dat", i))
		b := bytes.Repeat([]byte(fmt.Sprintf("file %d of a set\n", i)), size/16+1)[:size]
		require.NoError(t, os.WriteFile(name, b, 0o644))
		if owner, ok := info.Sys().(*syscall.Stat_t); ok {
			require.NoError(t, os.Chown(name, int(owner.Uid), int(owner.Gid)))
		}
	}
}

// empty fails t if files of a run are left in dir.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "weir-") {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

func grows(path string, size int64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > size
}

func contains(path, text string) bool {
	b, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(b), text)
}

// An error that occurs in addition to an invalid result is reported as well.
func TestOutcome(t *testing.T) {
	invalid, wrong := error(exit{code: exitInvalid}), errors.New("no room")
	for _, c := range []struct {
		err  error
		text string
		code exitCode
	}{
		{wrong, "no room", exitError}, {invalid, "", exitInvalid}, {exit{exitUsage, wrong}, "no room", exitUsage},
		{errors.Join(wrong, invalid), "no room", exitInvalid}, {errors.Join(invalid, wrong), "no room", exitInvalid},
	} {
		if text, code := outcome(c.err); text != c.text || code != c.code {
			t.Errorf("%v: %q and %d, want %q and %d", c.err, text, code, c.text, c.code)
		}
	}
}
