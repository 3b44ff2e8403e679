package htcondor

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/cluster/batch"
	"weir/loadtest/cluster/batch/batchtest"
)

func TestMain(m *testing.M) { batchtest.Main(m, New()) }

func TestPool(t *testing.T) {
	pool := labtest.Start(t, lab.HTCondorConfig{Slots: 4})
	labtest.Use(t, pool)
	batchtest.Run(t, batchtest.Place{System: New()})
	t.Run("WithoutOutputs", withoutOutputs)
}

// A worker that leaves no files has ended nevertheless.
func withoutOutputs(t *testing.T) {
	c := batchtest.Place{}.Work(t, 1)
	j, log := submit(t, c)
	if err := j.Follow(t.Context(), log.Add); err != nil || j.Counts().Ended != 1 {
		t.Errorf("%v: %v", err, log.All)
	}
}

func submit(t *testing.T, c batchtest.Case) (batch.Job, *batchtest.Log) {
	t.Helper()
	j, err := New().Submit(t.Context(), c.Work)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := j.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return j, &batchtest.Log{}
}

// A pool with two slots, whose logs have the dates of older versions.
func TestSmallPool(t *testing.T) {
	pool := labtest.Start(t, lab.HTCondorConfig{Slots: 2, Extra: "DEFAULT_USERLOG_FORMAT_OPTIONS ="})
	labtest.Use(t, pool)
	t.Run("Full", full)
	t.Run("Held", held)
	t.Run("Refused", refused)
}

// follow follows j until ok returns true, and then removes it.
func follow(t *testing.T, j batch.Job, log *batchtest.Log, what string, ok func() bool) {
	t.Helper()
	followed := make(chan error)
	go func() { followed <- j.Follow(t.Context(), log.Add) }()
	batchtest.Await(t, what, ok)
	if err := j.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-followed; err != nil {
		t.Error(err)
	}
	if j.Counts().Removed == 0 {
		t.Errorf("none was removed: %+v", j.Counts())
	}
}

// With fewer slots than workers, as many run as can, and the reason why the others wait is
// reported.
func full(t *testing.T) {
	j, log := submit(t, batchtest.Place{}.Work(t, 3, "hang"))
	want := "the pool has room for 2 jobs of one processor, and all of it is taken, 2 by this run"
	follow(t, j, log, "the third worker is told to wait", func() bool {
		c := j.Counts()
		return c.Running == 2 && len(c.Away) == 1 && strings.HasSuffix(c.Away[0], want)
	})
	for _, c := range log.All {
		if ago := time.Since(c.Time); ago < -time.Minute || ago > 10*time.Minute {
			t.Errorf("%v ago: %+v", ago, c)
		}
	}
}

// HTCondor holds a job whose file is gone; the reason is reported.
func held(t *testing.T) {
	c := batchtest.Place{}.Work(t, 1, "hang")
	j, log := submit(t, c)
	require.NoError(t, os.Remove(c.Files[0]))
	follow(t, j, log, "the worker is held", func() bool { return j.Counts().Held == 1 })
	i := slices.IndexFunc(log.All, func(c batch.Change) bool { return c.State == batch.Held })
	if i < 0 || !strings.Contains(log.All[i].Reason, "secret.json") || !strings.Contains(log.All[i].Reason, "(code 13, subcode 2)") {
		t.Errorf("%+v", log.All)
	}
}

// If no machine can run a job, this is reported. Options that HTCondor does not accept are refused.
func refused(t *testing.T) {
	c := batchtest.Place{Options: []string{`requirements = (Name == "nowhere")`}}.Work(t, 1, "hang")
	j, log := submit(t, c)
	follow(t, j, log, "the worker is told that no machine fits", func() bool {
		away := j.Counts().Away
		return len(away) == 1 && strings.Contains(away[0], "none of the pool's")
	})
	for option, want := range map[string]string{"queue 7": "on.submit", "Arguments=x": "leave it out", "env = A=1;B=2": "double quotes",
		"environment = \"": "double quotes", "request_cpus = many of them": "condor_submit"} {
		c := batchtest.Place{Options: []string{option}}.Work(t, 1, "hang")
		j, err := New().Submit(t.Context(), c.Work)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", option, err)
		}
		if err == nil {
			_ = j.Remove(t.Context())
		}
	}
}

// The user's environment and ours are combined.
func TestEnvironmentsAreAdded(t *testing.T) {
	w := &batch.Work{Program: "/bin/true", Dir: "/tmp/x", Count: 1, Options: []string{"request_cpus = 2", `Env = "A=1 B='x ""y""'"`}}
	text, err := describe(w, &batch.Submission{})
	require.NoError(t, errors.Join(checkOptions(w.Options), err))
	want := "environment = \"A=1 B='x \"\"y\"\"' WEIR_WORKER=$(Process) WEIR_JOB=$(Cluster).$(Process)\"\n"
	if !strings.Contains(text, want) {
		t.Errorf("%s\nwant %s", text, want)
	}
}
