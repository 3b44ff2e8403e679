package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis/campaign"
	"weir/loadtest/measure"
	"weir/loadtest/results"
)

// A campaign that was killed in the middle of a run goes on: complete runs are kept, the incomplete
// run is moved aside, and its files on the target are removed.
func TestKilledCampaignGoesOn(t *testing.T) { testKilledCampaign(t, false) }

func TestKilledCampaignIsCleaned(t *testing.T) { testKilledCampaign(t, true) }

func testKilledCampaign(t *testing.T, clean bool) {
	t.Helper()
	t.Parallel()
	target := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(target, "others.txt"), []byte("not ours"), 0o600))
	dir := filepath.Join(t.TempDir(), "campaign")
	p := started(t, "run", "--target", "file://"+target, "--clients", "2", "--duration", "4s", "--repeat", "2", "--out", dir,
		"--set", "workload={kind: write, think: 2ms}", "--set", "matrix.workload.size=[16KiB, 32KiB]", "--set", "load.warmup=100ms")
	untilHeld(t, filepath.Join(dir, "002-b"), 1)
	p.send(t, syscall.SIGSTOP) // the run does not end while the next command starts
	if code, said := weir(t, "run", "--resume", dir); code != exitError || !strings.Contains(said, "another weir works on this campaign") {
		t.Errorf("resume of a campaign that runs: exit code %d\n%s", code, said)
	}
	p.kill(t)
	if made, err := filepath.Glob(filepath.Join(target, "weir-*")); err != nil || len(made) == 0 {
		t.Fatalf("nothing was left on the target by the kill: %v", err)
	}
	first, partial := content(t, dir, "001-a"), content(t, dir, "002-b")
	planned, err := campaign.Read(dir)
	if err != nil || len(planned.Runs) != 4 {
		t.Fatalf("%+v, %v", planned, err)
	}

	if clean {
		if code, said := weir(t, "clean", dir); code != exitFine || strings.Count(said, "removed ") != 2 {
			t.Errorf("clean: exit code %d\n%s", code, said)
		}
		if left, err := os.ReadDir(target); err != nil || len(left) != 1 {
			t.Errorf("left by clean: %v (%v), want only others.txt", left, err)
		}
		return
	}
	code, said := weir(t, "run", "--resume", dir)
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	for _, w := range []string{"1 of 4 runs are done already", "002-b is not finished", "run 2 of 4: 32KiB", "run 4 of 4: 32KiB"} {
		if !strings.Contains(said, w) {
			t.Errorf("it does not say %q:\n%s", w, said)
		}
	}
	if content(t, dir, "001-a") != first || content(t, dir, "002-b.unfinished") != partial {
		t.Error("what was measured before the kill was touched")
	}
	for _, r := range planned.Runs {
		run, err := results.Open(filepath.Join(dir, r.Dir))
		require.NoError(t, err)
		if end, err := run.Ending(); err != nil || end == nil || end.Outcome != measure.Complete {
			t.Errorf("run %d: %v, %v", r.Number, end, err)
		}
		if f := findings(t, filepath.Join(dir, r.Dir)); f.Curve[0].Done == 0 {
			t.Errorf("run %d measured nothing", r.Number)
		}
	}
	left, err := os.ReadDir(target)
	if err != nil || len(left) != 1 || left[0].Name() != "others.txt" {
		t.Errorf("left in the target: %v (%v), want only others.txt", left, err)
	}
	if code, said = weir(t, "run", "--resume", dir); code != exitFine && code != exitInvalid || strings.Contains(said, "run 1 of 4") {
		t.Errorf("resume of a whole campaign: exit code %d\n%s", code, said)
	}
}

func content(t *testing.T, dir, run string) string {
	t.Helper()
	b := require.File(t, filepath.Join(dir, run, results.IntervalsFile))
	return string(b)
}

// The first interrupt ends the current run, with the measurements so far, and the campaign. The
// second interrupt ends them at once.
func TestInterruptEndsTheCampaign(t *testing.T) {
	t.Parallel()
	for _, signals := range []int{1, 2} {
		dir := filepath.Join(t.TempDir(), "campaign")
		p := started(t, "run", "--target", "simulated://x?servers=2&service=5ms&files=9x1KiB", "--clients", "2", "--duration", "10m", "--repeat",
			"3", "--out", dir)
		untilHeld(t, filepath.Join(dir, "001-a"), 1)
		for range signals {
			p.send(t, os.Interrupt)
		}
		code, said := p.ended()
		if code != exitInterrupt {
			t.Errorf("%d signals: exit code %d\n%s", signals, code, said)
		}
		if !strings.Contains(said, "3 of 3 runs are not done; weir run --resume "+dir) {
			t.Errorf("%d signals: it does not say how to go on:\n%s", signals, said)
		}
		if f := findings(t, filepath.Join(dir, "001-a")); len(f.Curve) != 1 {
			t.Errorf("%d signals: what was measured is lost: %+v", signals, f.Curve)
		}
		if _, err := os.Stat(filepath.Join(dir, "002-a")); err == nil {
			t.Errorf("%d signals: the next run began", signals)
		}
	}
}

// Runs that fail in the middle are reported and the campaign goes on. After three failed runs in a
// row it ends, and repeats them when it is resumed.
func TestFailedRuns(t *testing.T) {
	t.Parallel()
	target := t.TempDir()
	fill(t, target, 2, 4096)
	dir := filepath.Join(t.TempDir(), "campaign")
	args := []string{"run", "--target", "file://" + target, "--clients", "1", "--duration", "1s", "--repeat", "8", "--out", dir, "--set",
		"workload={think: 10ms, verify: 0%}", "--set", "load.warmup=100ms"}
	p := started(t, args...)
	untilHeld(t, filepath.Join(dir, "002-a"), 1)
	require.NoError(t, os.Rename(target, target+"-gone"))
	if code, said := p.ended(); code != exitError || !strings.Contains(said, "3 runs in a row failed; weir run --resume") {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	c, err := campaign.Read(dir)
	if err != nil || c.Runs[0].Error != "" || failedRuns(c) != 3 {
		t.Fatalf("%+v, %v", c, err)
	}
	require.NoError(t, os.Rename(target+"-gone", target))
	if code, said := weir(t, "run", "--resume", dir); code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	if c, err = campaign.Read(dir); err != nil || failedRuns(c) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

func failedRuns(c *campaign.Campaign) int {
	n := 0
	for _, r := range c.Runs {
		if r.Error != "" {
			n++
		}
	}
	return n
}
