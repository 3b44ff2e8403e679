package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/storage"
)

// stagedJobs returns the options of a run of staged jobs, which copy files to scratch and read ten
// events of 40 KiB from each file.
func stagedJobs(scratch string, more ...string) []string {
	return append([]string{"--set", "workload={kind: job, verify: 100%, job: {access: staged, events: 10, event_size: 40KiB, " +
		"compute: 1ms, scratch: " + scratch + "}}"}, more...)
}

// With any service, each job copies its file and works on the copy, the copies are verified, and no
// copy remains.
func TestStagedJobs(t *testing.T) {
	t.Parallel()
	ng, xr := labtest.Start(t, lab.NginxConfig{}), labtest.Start(t, lab.XRootDConfig{})
	here := t.TempDir()
	for _, dir := range []string{ng.Data, xr.Data, here} {
		fill(t, dir, 4, 400<<10)
	}
	list := filepath.Join(t.TempDir(), "fileList.txt")
	require.NoError(t, os.WriteFile(list, []byte("data-00.dat\ndata-01.dat\ndata-02.dat\ndata-03.dat\n"), 0o600))
	for name, args := range map[string][]string{
		"built-in": nil, "nginx": {"--target", ng.URL}, "xrootd": {"--target", xr.URL},
		"local": {"--target", "file://" + here}, "curl": {"--target", ng.URL, "--set", "client=curl", "--set", "files.list=" + list},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "curl" {
				labtest.Need(t, "curl")
			}
			scratch := t.TempDir()
			f := measureFor(t, append(stagedJobs(scratch, "--clients", "3", "--duration", "3s"), args...)...)
			c := f.Curve[0]
			if c.Jobs == nil || c.Jobs.Done == 0 || c.Jobs.Failed+c.Jobs.Crashed > 0 || c.Errors > 0 {
				t.Fatalf("jobs %+v, errors %v", c.Jobs, c.ErrorsBy)
			}
			if c.Staged == 0 || c.Used == 0 || c.Staged%(400<<10) != 0 || c.Verified+c.Unverified == 0 ||
				(name == "built-in" || name == "xrootd" || name == "local") && c.Unverified > c.Verified {
				t.Errorf("%d bytes staged, %d used, %d copies verified, %d not", c.Staged, c.Used, c.Verified, c.Unverified)
			}
			if entries, err := os.ReadDir(scratch); err != nil || len(entries) > 0 {
				t.Errorf("%v is left, %v", entries, err)
			}
		})
	}
}

// If a scratch disk is too small, a warning is printed before the run, jobs that have no space fail
// with that reason, other jobs go on, and the errors are not attributed to the service.
func TestFullScratchDisk(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	disk, data := t.TempDir(), t.TempDir()
	require.NoError(t, syscall.Mount("weir-test", disk, "tmpfs", 0, "size=1m"))
	defer func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	}()
	fill(t, data, 4, 400<<10)
	dir := filepath.Join(t.TempDir(), "run")
	code, said := weir(t, append([]string{"run", "--target", "file://" + data, "--clients", "4", "--duration", "4s", "--out", dir},
		stagedJobs(disk)...)...)
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	c := findings(t, dir).Curve[0]
	if c.Jobs == nil || c.Jobs.Done == 0 || c.Jobs.Failed == 0 || c.ErrorsBy[storage.Scratch] != c.Errors ||
		max(c.Errors, c.Jobs.Failed) > min(c.Errors, c.Jobs.Failed)+4 { // an error may precede the step, its job's end follow: one per client
		t.Errorf("jobs %+v, errors %v, want some done and some failed by scratch only", c.Jobs, c.ErrorsBy)
	}
	for _, w := range []string{"no space left", disk + ": 4 clients with a copy of up to 410 kB each need 1.64 MB, and there are ",
		"memory (tmpfs)"} {
		if !strings.Contains(said, w) {
			t.Errorf("it does not say %q:\n%s", w, said)
		}
	}
	if entries, err := os.ReadDir(disk); err != nil || len(entries) > 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
	run, err := results.Open(dir)
	if err != nil || run.About.Scratch == nil || run.About.Scratch.Folder != disk || run.About.Scratch.Filesystem != "tmpfs" ||
		run.About.Scratch.Device != "" || run.About.Scratch.Free > 1<<20 {
		t.Errorf("about.json: %+v, %v", run.About.Scratch, err)
	}
}

func TestNoScratchFolder(t *testing.T) {
	t.Parallel()
	none, dir := filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "run")
	code, said := weir(t, stagedJobs(none, "run", "--target", "file://"+t.TempDir(), "--clients", "1", "--duration", "1s", "--out", dir)...)
	if code != exitError || !strings.Contains(said, "workload.job.scratch") || !strings.Contains(said, none+": no such file or directory") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a run directory was made")
	}
}

// The copies of a run that is killed while it copies are removed by the next run, or by weir clean.
// Files that do not belong to weir are kept.
func TestCopiesOfAKilledRun(t *testing.T) {
	t.Parallel()
	data, disk := t.TempDir(), t.TempDir()
	fill(t, data, 4, 400<<10)
	foreign := filepath.Join(disk, "weir-scratch-not-ours")
	require.NoError(t, os.Mkdir(foreign, 0o700))
	for _, name := range []string{"copy-000000", "thesis.tex"} {
		require.NoError(t, os.WriteFile(filepath.Join(foreign, name), []byte("years of work"), 0o600))
	}
	copies := func() []string {
		all, err := filepath.Glob(filepath.Join(disk, "weir-scratch-[0-9]*", "copy-*"))
		require.NoError(t, err)
		return all
	}
	for i, processes := range []string{"1", "2"} {
		dir := filepath.Join(t.TempDir(), "run")
		args := stagedJobs(disk, "--target", "file://"+data, "--clients", "4", "--set", "workload.job.compute=50ms", "--processes", processes)
		p := started(t, append([]string{"run", "--duration", "10m", "--out", dir}, args...)...)
		untilHeld(t, dir, 1)
		require.Eventually(t, "a copy", func() bool { return len(copies()) > 0 })
		workers := children(t, p.Process.Pid)
		p.kill(t)
		for _, pid := range workers { // they end with the run, and may remove copies until then
			require.Eventually(t, "the end of a process", func() bool { return syscall.Kill(pid, 0) != nil })
		}
		command := []string{"clean", dir}
		if i == 0 {
			if len(copies()) == 0 {
				t.Error("no copies are left by kill -9")
			}
			command = append([]string{"run", "--duration", "1s", "--out", filepath.Join(t.TempDir(), "next")}, args...)
		}
		code, said := weir(t, command...)
		if code != exitFine && code != exitInvalid {
			t.Errorf("exit code %d", code)
		}
		for _, w := range []string{"a run that was killed had left ", foreign + " stays"} {
			if !strings.Contains(said, w) {
				t.Errorf("weir %s does not say %q:\n%s", command[0], w, said)
			}
		}
		entries, err := os.ReadDir(disk)
		if err != nil || len(entries) != 1 {
			t.Errorf("left are %v (%v), want only the foreign folder", entries, err)
		}
	}
	if entries, err := os.ReadDir(foreign); err != nil || len(entries) != 2 {
		t.Errorf("in the foreign folder are %v, %v", entries, err)
	}
}

// After an interrupt, or if a service is killed and restarted, jobs fail, later jobs go on, and no
// copy remains.
func TestStagedJobsInterrupted(t *testing.T) {
	t.Parallel()
	s, disk := labtest.Start(t, lab.NginxConfig{}), t.TempDir()
	fill(t, s.Data, 4, 400<<10)
	dir := filepath.Join(t.TempDir(), "run")
	p := started(t, append([]string{"run", "--target", s.URL, "--clients", "4", "--duration", "10m", "--out", dir}, stagedJobs(disk)...)...)
	untilHeld(t, dir, 1)
	s.Kill()
	require.Eventually(t, "a failed job", func() bool { return contains(filepath.Join(dir, results.IntervalsFile), `"jobs_failed"`) })
	require.NoError(t, s.Restart(t.Context()))
	done := func() int { return strings.Count(read(t, filepath.Join(dir, results.IntervalsFile)), `"jobs_done"`) }
	before := done()
	require.Eventually(t, "two more completed jobs", func() bool { return done() > before+1 })
	p.send(t, os.Interrupt)
	if code, said := p.ended(); code != exitInterrupt {
		t.Errorf("exit code %d\n%s", code, said)
	}
	if c := findings(t, dir).Curve[0]; c.Jobs == nil || c.Jobs.Done == 0 || c.Jobs.Failed == 0 || c.ErrorsBy[storage.Scratch] > 0 {
		t.Errorf("jobs %+v, errors %v", c.Jobs, c.ErrorsBy)
	}
	if entries, err := os.ReadDir(disk); err != nil || len(entries) > 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
	var a struct{ Scratch measure.Scratch }
	if err := json.Unmarshal([]byte(read(t, filepath.Join(dir, results.AboutFile))), &a); err != nil || a.Scratch.Folder != disk {
		t.Errorf("%+v, %v", a, err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b := require.File(t, path)
	return string(b)
}
