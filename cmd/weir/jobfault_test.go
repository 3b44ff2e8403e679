package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/results"
	"weir/storage"
)

// smallJobs returns the options of a run with jobs that read and compute for some tenths of a
// second.
func smallJobs(dir, target, access string, more ...string) []string {
	return append([]string{"run", "--target", target, "--out", dir, "--set", "load.ramp=0s", "--set", "load.warmup=0s", "--set",
		"load.graceful_stop=5s",
		"--set", "workload={kind: job, job: {access: " + access + ", events: 20, event_size: 40KiB, compute: 5ms}, timeout: 5s}"}, more...)
}

// A server that dies in the middle of jobs ends these jobs, not the run. They and all later jobs
// fail, and the run counts them until its end.
func TestServerDiesUnderJobs(t *testing.T) {
	t.Parallel()
	for _, access := range []string{"direct", "staged"} {
		t.Run(access, func(t *testing.T) {
			t.Parallel()
			server, url := serving(t, "serve", "--while-stdin", "--events", "8x20x40KiB")
			dir := filepath.Join(t.TempDir(), "run")
			p := started(t, smallJobs(dir, url, access, "--clients", "3", "--duration", "8s", "--set", "thresholds=[job_failure_ratio < 1%]")...)
			done := regexp.MustCompile(`"phase":"measure".*"jobs_done":`)
			require.Eventually(t, "completed jobs", func() bool {
				b, err := os.ReadFile(filepath.Join(dir, results.IntervalsFile))
				return err == nil && done.Match(b)
			})
			require.NoError(t, server.Process.Kill())
			code, said := p.ended()
			if code != exitMissed && code != exitInvalid {
				t.Errorf("exit code %d\n%s", code, said)
			}
			f := findings(t, dir)
			if len(f.Curve) != 1 || f.Curve[0].Jobs == nil {
				t.Fatalf("what was measured is not there: %+v\n%s", f.Curve, said)
			}
			s := f.Curve[0]
			if s.Jobs.Failed == 0 || s.Jobs.Crashed > 0 || s.Jobs.Done == 0 || s.Duration < 4 || *s.JobFailureRatio <= 0 {
				t.Errorf("%+v in %v s", s.Jobs, s.Duration)
			}
			if th := f.Thresholds; len(th) != 1 || th[0].Met {
				t.Errorf("%+v", th)
			}
			if !contains(filepath.Join(dir, results.EventsFile), "connection refused") || !strings.Contains(said, "job_failure_ratio < 1%") {
				t.Errorf("it does not say what happened:\n%s", said)
			}
		})
	}
}

// Some files, found by a listing or named in a list, are shorter than the events of a job. Jobs
// fail on these files and on no other files. If no file is long enough, the run does not begin.
func TestFilesShorterThanTheirEvents(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	data := t.TempDir()
	fill(t, data, 4, 1<<20) // 25 events; a job has 20
	for i := range 2 {
		require.NoError(t, os.Truncate(filepath.Join(data, fmt.Sprintf("data-%02d.dat", i)), 500<<10))
	}
	list := filepath.Join(t.TempDir(), "files.txt")
	require.NoError(t, os.WriteFile(list, []byte("data-00.dat\ndata-02.dat\ndata-03.dat\n"), 0o600))
	for _, access := range []string{"direct", "staged"} {
		for _, files := range []string{"{listing: true}", "{list: " + list + "}"} {
			dir := filepath.Join(t.TempDir(), "run")
			code, said := weir(t, smallJobs(dir, "file://"+data, access, "--clients", "2", "--duration", "2s", "--set", "files="+files)...)
			if code != exitFine && code != exitInvalid {
				t.Fatalf("%s, files %s: exit code %d\n%s", access, files, code, said)
			}
			s := findings(t, dir).Curve[0]
			if s.Jobs.Done == 0 || s.Jobs.Failed == 0 || s.Jobs.Crashed > 0 || s.ErrorsBy[storage.Short] != s.Errors || s.Errors == 0 {
				t.Errorf("%s, files %s: %+v, errors %v\n%s", access, files, s.Jobs, s.ErrorsBy, said)
			}
		}
	}
	code, said := weir(t, smallJobs(filepath.Join(t.TempDir(), "run"), "file://"+data, "direct", "--set", "workload.job.events=30")...)
	if code != exitError || !strings.Contains(said, "a job goes through 30 events") || !strings.Contains(said, "holds 25 events") {
		t.Errorf("no file is long enough: exit code %d\n%s", code, said)
	}
}

// Jobs crash if a server responds too late or a copy is too slow. The report and the exit code show
// it.
func TestJobsCrashOfTimeouts(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	_, url := serving(t, "serve", "--while-stdin", "--events", "8x20x40KiB", "--delay", "2s")
	for access, set := range map[string]string{"direct": "workload.timeout=300ms", "staged": "workload.job.copy_timeout=300ms"} {
		dir := filepath.Join(t.TempDir(), "run")
		code, said := weir(t, smallJobs(dir, url, access, "--clients", "3", "--duration", "2s", "--set", set, "--set", "files.listing=true",
			"--set", "thresholds=[crash_ratio < 1%]")...)
		if code != exitMissed && code != exitInvalid {
			t.Errorf("%s: exit code %d\n%s", access, code, said)
		}
		f := findings(t, dir)
		s := f.Curve[0]
		if s.Jobs.Crashed == 0 || s.Jobs.Done+s.Jobs.Failed > 0 || *s.CrashRatio != 1 || len(f.Thresholds) != 1 || f.Thresholds[0].Met {
			t.Errorf("%s: %+v, %+v", access, s.Jobs, f.Thresholds)
		}
		page, err := os.ReadFile(filepath.Join(dir, results.ReportFile))
		if err != nil || !strings.Contains(string(page), "crashed") || !strings.Contains(said, "(100%)") {
			t.Errorf("%s: the report does not tell (%v)\n%s", access, err, said)
		}
	}
}
