package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// serving starts weir serve as a process of its own, which runs until t ends, and returns its URL.
func serving(t *testing.T, args ...string) (cmd *exec.Cmd, url string) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), "weir", args...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // it ends with its input
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd, url
}

// Users' own tools work on real files: uproot reads a tree that uproot has written, in a scenario
// made for it.
func TestAnalysisByUproot(t *testing.T) {
	t.Setenv("PATH", labtest.Python(t)+":"+os.Getenv("PATH"))
	t.Setenv("RES_OPTIONS", "timeout:1 attempts:1") // XRootD's client queries name servers
	xrootd := labtest.Start(t, lab.XRootDConfig{})
	made := exec.CommandContext(t.Context(), "python3", "../../scenarios/jobs/make_events.py", filepath.Join(xrootd.Data, "events.root"),
		"5000")
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, http := serving(t, "serve", xrootd.Data, "--while-stdin")
	for name, c := range map[string]struct{ url, stage string }{"http": {http, ""}, "root": {xrootd.URL, ""}, "staged": {http, "--stage, "},
		"staged, root": {xrootd.URL, "--stage, "}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			code, said := weir(t, "run", "../../scenarios/jobs/analysis.yaml", "--quiet", "--out", dir, "--target", c.url, "--clients", "2", "--set",
				"load.jobs=1", "--set", "client.command=[python3, ../../scenarios/jobs/analysis.py, "+c.stage+`"{url}"]`)
			if code != exitFine && code != exitInvalid {
				t.Fatalf("exit code %d:\n%s", code, said)
			}
			t.Log(said)
			s := findings(t, dir).Curve[0]
			if s.Jobs == nil || s.Jobs.Done != 2 || s.ProgramMemory < 40e6 || s.Errors != 0 {
				t.Fatalf("%+v, %d bytes of memory, %d errors (%v)", s.Jobs, s.ProgramMemory, s.Errors, s.ErrorsBy)
			}
			if s.CPUEfficiency == nil || *s.CPUEfficiency <= 0 || *s.CPUEfficiency > 2.1 {
				t.Errorf("CPU efficiency %v", s.CPUEfficiency)
			}
		})
	}
}

// The way in which a program ends determines whether its job counts as failed or crashed.
func TestProgramsThatEndBadly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, timeout, said string
		failed, crashed       int64
	}{
		"status":  {"echo bad tree >&2; exit 3", "1m", "sh: exit status 3: bad tree", 2, 0},
		"signal":  {"kill -SEGV $$", "1m", "sh: ended by signal SIGSEGV (segmentation fault", 2, 0},
		"timeout": {"sleep 100 & wait", "300ms", "deadline exceeded", 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			code, said := weir(t, "run", "--quiet", "--out", dir, "--target", "built-in", "--clients", "1", "--duration", "50s", "--set",
				"workload.kind=command-job",
				"--set", "client={command: [sh, -c, '"+c.script+"']}", "--set", "load.jobs=2", "--set", "load.ramp=0s", "--set", "load.warmup=0s",
				"--set", "workload.timeout="+c.timeout)
			if code != exitFine && code != exitInvalid {
				t.Fatalf("exit code %d:\n%s", code, said)
			}
			j := findings(t, dir).Curve[0].Jobs
			if j == nil || j.Done != 0 || j.Failed != c.failed || j.Crashed != c.crashed {
				t.Errorf("%+v:\n%s", j, said)
			}
			if events, err := os.ReadFile(filepath.Join(dir, "events.jsonl")); err != nil || !strings.Contains(string(events), c.said) {
				t.Errorf("events %s, %v: want %q", events, err, c.said)
			}
		})
	}
}
