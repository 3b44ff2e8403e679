package lab_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// An array of jobs runs at once, and each leaves its file and prints its output.
func TestSlurmRunsJobs(t *testing.T) {
	const jobs = 64
	begin := time.Now()
	s := labtest.Start(t, lab.SlurmConfig{CPUs: jobs})
	t.Logf("up after %.1f s", time.Since(begin).Seconds())
	labtest.Use(t, s)
	dir := t.TempDir()
	for _, name := range []string{"here", "out"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	for name, content := range map[string]string{"job": job, "input": "for its owner's eyes only\n",
		"script": "#!/bin/sh\nmkdir out/$SLURM_ARRAY_TASK_ID.d && cd out/$SLURM_ARRAY_TASK_ID.d && cp ../../input . " +
			"&& exec ../../job $SLURM_ARRAY_TASK_ID " + dir + "\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700))
	}
	begin = time.Now()
	submit := exec.CommandContext(t.Context(), "sbatch", "--parsable", fmt.Sprintf("--array=0-%d", jobs-1), "--output=out/%a", "script")
	submit.Dir = dir
	if out, err := submit.CombinedOutput(); err != nil {
		t.Fatalf("sbatch: %v\n%s", err, out)
	}
	within(t, patience, "all jobs to run at once", func() bool {
		here, _ := os.ReadDir(filepath.Join(dir, "here"))
		return len(here) == jobs
	})
	t.Logf("%d jobs run after %.1f s", jobs, time.Since(begin).Seconds())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	within(t, patience, "all jobs to end", func() bool {
		out, err := exec.CommandContext(t.Context(), "squeue", "--noheader").Output()
		return err == nil && len(out) == 0
	})
	for n := range jobs {
		made, err := os.ReadFile(filepath.Join(dir, "out", fmt.Sprintf("%d.d/out.txt", n)))
		if want := fmt.Sprintf("for its owner's eyes only\njob %d\n", n); err != nil || string(made) != want {
			t.Errorf("job %d left %q, %v", n, made, err)
		}
		said, err := os.ReadFile(filepath.Join(dir, "out", fmt.Sprint(n)))
		if want := fmt.Sprintf("job %d says goodbye\n", n); err != nil || string(said) != want {
			t.Errorf("job %d said %q, %v", n, said, err)
		}
	}
}
