package slurm

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/cluster/batch"
	"weir/loadtest/cluster/batch/batchtest"
)

func TestMain(m *testing.M) { batchtest.Main(m, New()) }

func TestSlurm(t *testing.T) {
	system := labtest.Start(t, lab.SlurmConfig{CPUs: 4})
	labtest.Use(t, system)
	t.Run("Shared", func(t *testing.T) { batchtest.Run(t, batchtest.Place{System: New()}) })
	t.Run("Apart", func(t *testing.T) {
		folder := t.TempDir()
		hide(t, system.Dir, folder)
		batchtest.Run(t, batchtest.Place{System: New(), Folder: folder, Dies: true})
	})
}

// hide hides the files in folder from the nodes of a Slurm, which have a view of mounts of their
// own.
func hide(t *testing.T, lab, folder string) {
	t.Helper()
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range lines {
		line, _ := os.ReadFile(f)
		environ, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "environ"))
		if !strings.Contains(string(line), "slurmd\x00-D") || !strings.Contains(string(environ), lab) {
			continue
		}
		cmd := exec.Command("nsenter", "--target", filepath.Base(filepath.Dir(f)), "--mount", "mount", "-t", "tmpfs", "tmpfs", folder)
		if os.Geteuid() != 0 {
			cmd.Args = append([]string{"nsenter", "--user", "--preserve-credentials"}, cmd.Args[1:]...)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	t.Fatal("no slurmd of the lab's was found")
}

// A small Slurm: of two processors, with arrays of two tasks.
func TestSmallSlurm(t *testing.T) {
	labtest.Use(t, labtest.Start(t, lab.SlurmConfig{CPUs: 2, Extra: "MaxArraySize=3"}))
	t.Run("Full", full)
	t.Run("Held", held)
	t.Run("Deaf", deaf)
	t.Run("Wrong", wrong)
}

// Transient errors of a busy Slurm neither keep workers from running nor start a worker twice.
// Programs before the real programs on PATH respond as a busy Slurm does.
func TestTransientSlurm(t *testing.T) {
	folder, state := t.TempDir(), t.TempDir()
	prolog := filepath.Join(state, "prolog")
	writeScript(t, prolog, "rm "+state+"/prolog-fails 2>/dev/null && exit 1\nexit 0")
	system := labtest.Start(t, lab.SlurmConfig{CPUs: 4, Extra: "Prolog=" + prolog})
	labtest.Use(t, system)
	t.Run("LaunchFailed", func(t *testing.T) {
		require.NoError(t, os.WriteFile(filepath.Join(state, "prolog-fails"), nil, 0o600))
		_, j, log := submit(t, batchtest.Place{}, 1, "leave")
		followed := make(chan error)
		go func() { followed <- j.Follow(t.Context(), log.Add) }()
		batchtest.Await(t, "the node is drained", func() bool {
			said, _ := batch.Run(t.Context(), nil, "sinfo", "--noheader", "--format=%t")
			return strings.HasPrefix(said, "drain")
		})
		name, err := os.Hostname()
		if err == nil {
			name, _, _ = strings.Cut(name, ".")
			_, err = batch.Run(t.Context(), nil, "scontrol", "update", "NodeName="+name, "State=RESUME")
		}
		if err := errors.Join(err, <-followed); err != nil || j.Counts().Ended != 1 {
			t.Errorf("%v: %+v", err, log.Of(0))
		}
	})
	hide(t, system.Dir, folder)
	for name, c := range map[string]struct{ program, before, after string }{
		"Pending": {program: "srun", before: "echo 'srun: error: Unable to confirm allocation for job 7: " +
			"Job is pending execution' >&2; exit 1"},
		"Revoked": {program: "srun", before: "echo 'srun: error: Task launch for StepId=7.0 failed on node weir: " +
			"Job credential revoked' >&2; exit 1"},
		"Submitted": {program: "sbatch", after: "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv " +
			"operation' >&2; exit 1"},
		"Refused": {program: "sbatch", before: "echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect " +
			"failure)' >&2; exit 1"},
		"Queue": {program: "squeue", before: "echo 'slurm_load_jobs error: Zero Bytes were transmitted or received' >&2; exit 1"},
	} {
		t.Run(name, func(t *testing.T) {
			busy(t, c.program, c.before, c.after)
			w, j, log := submit(t, batchtest.Place{Folder: folder}, 2, "leave")
			if err := errors.Join(j.Follow(t.Context(), log.Add), j.Remove(t.Context())); err != nil || j.Counts().Ended != 2 {
				t.Errorf("%v: %+v", err, log.All)
			}
			for n := range w.Count {
				if out, err := os.ReadFile(filepath.Join(w.Dir, "out", strconv.Itoa(n), "stdout")); err != nil || len(out) == 0 {
					t.Errorf("worker %d left %q: %v", n, out, err)
				}
			}
			if s, err := batch.ReadSubmission(w.Dir, "Slurm"); err != nil || len(s.IDs) != 1 {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

// busy puts a program before the real program on PATH that is busy at first: its first two calls
// run before, or the real program and then after.
func busy(t *testing.T, program, before, after string) {
	t.Helper()
	dir := t.TempDir()
	real, err := exec.LookPath(program)
	require.NoError(t, err)
	counted := "case \"$*\" in *--help*) exec " + real + " \"$@\";; esac\nmkdir " + dir + "/1 2>/dev/null || mkdir " + dir +
		"/2 2>/dev/null || exec " + real + " \"$@\"\n"
	if before != "" {
		counted += before
	} else {
		counted += real + " \"$@\" >/dev/null\n" + after
	}
	writeScript(t, filepath.Join(dir, program), counted)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func writeScript(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
}

func submit(t *testing.T, p batchtest.Place, count int, words ...string) (batchtest.Case, batch.Job, *batchtest.Log) {
	t.Helper()
	p.System = New()
	c := p.Work(t, count, words...)
	j, err := New().Submit(t.Context(), c.Work)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := j.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c, j, &batchtest.Log{}
}

// With more workers than processors and than an array may have tasks, as many run as can. The
// reason why the others wait is reported, and they run when the first have ended.
func full(t *testing.T) {
	c, j, log := submit(t, batchtest.Place{}, 5, "hang")
	followed := make(chan error)
	go func() { followed <- j.Follow(t.Context(), log.Add) }()
	batchtest.Await(t, "two run and it is told why three do not", func() bool {
		n := j.Counts()
		return n.Running == 2 && n.Queued == 3 && strings.Contains(strings.Join(n.Away, "\n"), "Resources: of 2 processors 2 are taken; ")
	})
	for n := range c.Count {
		var trace batchtest.Trace
		batchtest.Await(t, "a worker runs", func() (ok bool) { trace, ok = c.Trace(n); return ok })
		if last := log.Of(n); trace.Job != last[0].JobID || trace.Number != strconv.Itoa(n) {
			t.Errorf("worker %d: %+v, %+v", n, trace, last)
		}
		require.NoError(t, syscall.Kill(trace.Outside(c.Traces), syscall.SIGTERM))
	}
	if err := <-followed; err != nil || j.Counts().Failed != 5 {
		t.Errorf("%v: %+v", err, j.Counts())
	}
	if last := log.Of(4); !strings.HasPrefix(last[len(last)-1].Reason, "failed, exit status 7") {
		t.Errorf("%+v", last)
	}
}

// A worker that ignores the request to end leaves nothing, though Slurm kills it and its script
// after two seconds.
func deaf(t *testing.T) {
	c, j, _ := submit(t, batchtest.Place{}, 1, "deaf")
	var trace batchtest.Trace
	batchtest.Await(t, "the worker runs", func() (ok bool) { trace, ok = c.Trace(0); return ok })
	if err := j.Remove(t.Context()); err != nil || j.Counts().Removed != 1 {
		t.Errorf("%v: %+v", err, j.Counts())
	}
	if _, err := os.Stat(trace.Folder); err == nil || trace.Outside(c.Traces) > 0 {
		t.Errorf("%+v is still there", trace)
	}
}

// A job that Slurm holds is reported as held.
func held(t *testing.T) {
	_, j, log := submit(t, batchtest.Place{Options: []string{"--hold"}}, 1, "hang")
	followed := make(chan error)
	go func() { followed <- j.Follow(t.Context(), log.Add) }()
	batchtest.Await(t, "the worker is held", func() bool { return j.Counts().Held == 1 })
	if away := j.Counts().Away; len(away) != 1 || away[0] != "worker 0 is held: JobHeldUser" {
		t.Errorf("%q", away)
	}
	if err := errors.Join(j.Remove(t.Context()), <-followed); err != nil || j.Counts().Removed != 1 {
		t.Errorf("%v: %+v", err, log.All)
	}
}

// If Slurm refuses an option, the error has its message, and nothing stays.
func wrong(t *testing.T) {
	for option, want := range map[string]string{"time=3": "on.submit", "--partition=none": "invalid partition"} {
		c := batchtest.Place{Options: []string{option}}.Work(t, 1, "hang")
		_, err := New().Submit(t.Context(), c.Work)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", option, err)
		}
		if left, _ := filepath.Glob(filepath.Join(c.Dir, ".weir-*")); len(left) > 0 {
			t.Errorf("%s: left %v", option, left)
		}
	}
}
