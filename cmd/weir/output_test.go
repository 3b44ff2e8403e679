package main

import (
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/storage"
)

// Jobs write output. With any service and access, the files have the right size, are verified,
// count as operations of their own, and are removed at the end.
func TestOutputOfJobs(t *testing.T) {
	t.Parallel()
	ng, xr := labtest.Start(t, lab.NginxConfig{}), labtest.Start(t, lab.XRootDConfig{})
	here, web := t.TempDir(), labtest.Start(t, lab.NginxConfig{})
	for _, dir := range []string{ng.Data, xr.Data, here, web.Data} {
		fill(t, dir, 4, 400<<10)
	}
	for name, args := range map[string][]string{
		"built-in": nil, "nginx": {"--target", ng.URL}, "xrootd": {"--target", xr.URL}, "local": {"--target", "file://" + here},
		"workers": {"--target", ng.URL, "--on", "local", "--workers", "2", "--set", "on.address=127.0.0.1"},
		"staged":  {"--target", ng.URL, "--set", "workload.job.access=staged"},
		"staged workers": {"--target", xr.URL, "--set", "workload.job.access=staged", "--on", "local", "--workers", "2", "--set",
			"on.address=127.0.0.1"},
		"curl": {"--target", web.URL, "--set", "workload.job.access=staged", "--set", "client=curl"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "curl" {
				labtest.Need(t, "curl")
				list := filepath.Join(t.TempDir(), "files.txt")
				require.NoError(t, os.WriteFile(list, []byte("data-00.dat\ndata-01.dat\n"), 0o600))
				args = append(args, "--set", "files.list="+list)
			}
			r := newRemote(t)
			code, said := r.start(t, append([]string{"run", "--out", "run", "--set", "workload={kind: job, verify: 100%, job: {events: 10, " +
				"event_size: 40KiB, page: 40KiB, compute: 2ms, output_share: 25%, output_files: 2}}",
				"--set", "load={clients: 3, jobs: 4, ramp: 0, warmup: 0, duration: 1m}"}, args...)...).ended()
			if code != exitFine && code != exitInvalid {
				t.Fatalf("exit code %d\n%s", code, said)
			}
			f := findings(t, r.run())
			c := &f.Curve[0]
			if c.Jobs == nil || c.Jobs.Done != 12 || c.Errors > 0 || c.Outputs != 24 || c.Output != 12*100<<10 || c.OutputSeconds == nil ||
				c.OutputShare == nil || *c.OutputShare <= 0 || *c.OutputShare >= 1 {
				t.Fatalf("jobs %+v, errors %v, %d files, %d bytes, share %v\n%s", c.Jobs, c.ErrorsBy, c.Outputs, c.Output, c.OutputShare, said)
			}
			if strings.HasPrefix(name, "staged") != (c.Staged > 0) && name != "curl" || c.UsedRatio == nil || *c.UsedRatio != 1 {
				t.Errorf("staged %d, used ratio %v", c.Staged, *c.UsedRatio)
			}
			for _, k := range f.Kinds {
				if k.Name == "write" && (k.Done != 24 || k.Moved != 12*100<<10) {
					t.Errorf("%+v", k)
				}
			}
			if len(f.Kinds) != 2 {
				t.Errorf("kinds %+v", f.Kinds)
			}
			if good, not := writesVerified(t, r.run()); good < 12 || good+not != 24 {
				t.Errorf("%d writes were verified, %d not, want 24", good, not)
			}
			for _, dir := range []string{ng.Data, xr.Data, here, web.Data} {
				if left, err := filepath.Glob(filepath.Join(dir, "weir-*/*/*.dat")); err != nil || len(left) > 0 {
					t.Errorf("%v is left, %v", left, err)
				}
				empty(t, dir) // also if curl wrote, which cannot remove folders
			}
			html := read(t, filepath.Join(r.run(), "report.html"))
			if !strings.Contains(html, "Output of jobs, step by step") {
				t.Error("the report has no table of output")
			}
		})
	}
}

// intervals returns the intervals of the run in dir.
func intervals(t *testing.T, dir string) iter.Seq[*measure.Interval] {
	t.Helper()
	run, err := results.Open(dir)
	require.NoError(t, err)
	return func(yield func(*measure.Interval) bool) {
		for v, err := range run.Intervals() {
			require.NoError(t, err)
			if !yield(v) {
				return
			}
		}
	}
}

// writesVerified returns the numbers of writes of a run that were verified and that could not be
// verified.
func writesVerified(t *testing.T, dir string) (good, not int64) {
	t.Helper()
	for v := range intervals(t, dir) {
		if v.Kind == storage.Write {
			good, not = good+v.Verified, not+v.Unverifiable
		}
	}
	return good, not
}

// workload.keep keeps the output, like other files that a run wrote.
func TestOutputIsKept(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	fill(t, data, 2, 400<<10)
	r := newRemote(t)
	code, said := r.start(t, "run", "--target", "file://"+data, "--out", "run", "--set", "workload={kind: job, keep: true, sync: true, job: "+
		"{events: 10, event_size: 40KiB, output_size: 1234B}}", "--set", "load={clients: 2, jobs: 3, ramp: 0, warmup: 0, duration: 1m}").ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	files, err := filepath.Glob(filepath.Join(data, "weir-*", "c*", "*.dat"))
	if err != nil || len(files) != 6 {
		t.Fatalf("%v, %v, want six files", files, err)
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Size() != 1234 {
			t.Errorf("%v, %v", info, err)
		}
	}
}

func TestOutputScenario(t *testing.T) {
	t.Parallel()
	runs, _, said := byLevel(t, "output.yaml", "workload.job.access", "--clients", "2", "--duration", "2s", "--set", "load.warmup=0s", "--set",
		"workload.job.compute=2ms")
	for access, r := range runs {
		c := heaviest(t, r)
		if c.Jobs == nil || c.Jobs.Done == 0 || c.Errors > 0 || c.Outputs < c.Jobs.Done*3 || c.Output < c.Outputs*200_000 {
			t.Errorf("%s: %+v, errors %v\n%s", access, c.JobFigures, c.ErrorsBy, said)
		}
	}
	if len(runs) != 2 {
		t.Errorf("%d runs", len(runs))
	}
}

// Clients that cannot write are refused before the run.
func TestOutputNeedsAWriter(t *testing.T) {
	t.Parallel()
	code, said := weir(t, "plan", "--target", "http://h/", "--set", "workload={kind: job, job: {output_size: 1MB, access: staged}}", "--set",
		`client={command: [cp, "{url}", "{dest}"]}`, "--set", "files.list=none")
	if code == exitFine || !strings.Contains(said, "client.command") || !strings.Contains(said, "{source}") {
		t.Errorf("exit code %d\n%s", code, said)
	}
}
