package lab_test

import (
	"bytes"
	"fmt"
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
)

// patience is the time that hundreds of processes may need on a machine with a hundred other tasks.
const patience = 5 * time.Minute

// job is a script that reports its start, waits until it may end, and leaves a file.
const job = `#!/bin/sh
cat input >out.txt && echo "job $1" >>out.txt && : >"$2/here/$1"
for n in $(seq 200); do
	[ ! -e "$2/go" ] || break
	sleep 2
done
echo "job $1 says goodbye"
`

// As many jobs as there are slots run at once, and each returns its output files. The files sent
// with a job may be readable for their owner only.
func TestHTCondorRunsJobs(t *testing.T) {
	jobs := 25
	if tier.IsFull() {
		jobs = 100
	}
	s := labtest.Start(t, lab.HTCondorConfig{Slots: jobs})
	labtest.Use(t, s)
	dir := t.TempDir()
	for _, name := range []string{"here", "out"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	for name, content := range map[string]string{"job": job, "input": "for its owner's eyes only\n", "submit": fmt.Sprintf(`executable = job
arguments = $(Process) %s
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
transfer_input_files = input
transfer_output_files = out.txt
transfer_output_remaps = "out.txt = out/$(Process)"
output = out/$(Process).said
log = events
queue %d
`, dir, jobs)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700))
	}
	events := func(kind string) int {
		b, _ := os.ReadFile(filepath.Join(dir, "events"))
		return bytes.Count(b, []byte("\n"+kind+" ("))
	}
	begin := time.Now()
	submit := exec.CommandContext(t.Context(), "condor_submit", "submit")
	submit.Dir = dir
	if out, err := submit.CombinedOutput(); err != nil {
		t.Fatalf("condor_submit: %v\n%s", err, out)
	}
	within(t, patience, "all jobs to run at once", func() bool {
		here, _ := os.ReadDir(filepath.Join(dir, "here"))
		return len(here) == jobs || events("012") > 0
	})
	t.Logf("%d jobs run after %.1f s", jobs, time.Since(begin).Seconds())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	within(t, patience, "all jobs to end", func() bool { return events("005") == jobs || events("012") > 0 })
	if n := events("012"); n > 0 {
		t.Errorf("%d jobs were held", n)
	}
	for n := range jobs {
		made, err := os.ReadFile(filepath.Join(dir, "out", fmt.Sprint(n)))
		if want := fmt.Sprintf("for its owner's eyes only\njob %d\n", n); err != nil || string(made) != want {
			t.Errorf("job %d left %q, %v", n, made, err)
		}
		said, err := os.ReadFile(filepath.Join(dir, "out", fmt.Sprintf("%d.said", n)))
		if want := fmt.Sprintf("job %d says goodbye\n", n); err != nil || string(said) != want {
			t.Errorf("job %d said %q, %v", n, said, err)
		}
	}
	if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), s.Dir) {
		t.Errorf("the pool's mounts are seen outside of it: %v", err)
	}
}
