package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/storage"
)

// stagedLoad returns the arguments for 20 staged jobs of ten events of 40 KiB, which compute for
// 300 ms each, on two workers.
func stagedLoad(url string, more ...string) []string {
	return append([]string{"run", "--target", url, "--out", "run", "--set",
		"workload={kind: job, verify: 100%, job: {access: staged, events: 10, event_size: 40KiB, compute: 30ms}}",
		"--set", "load={clients: 4, jobs: 5, ramp: 0, warmup: 0, duration: 1m}"}, more...)
}

// Staged jobs on the workers of a batch system give the same results as on this machine: the same
// jobs, the same bytes, the same efficiency. No copies remain.
func TestStagedJobsOnBatch(t *testing.T) {
	tier.Full(t, "runs on batch systems by the command; cluster/batch has them in the first tier")
	s := labtest.Start(t, lab.NginxConfig{})
	fill(t, s.Data, 4, 400<<10)
	here := newRemote(t)
	code, said := here.start(t, stagedLoad(s.URL)...).ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	want := &findings(t, here.run()).Curve[0]
	if want.Jobs == nil || want.Jobs.Done != 20 || want.Staged != 20*400<<10 || want.Used != want.Staged {
		t.Fatalf("here: %+v", want.JobFigures)
	}
	t.Run("local", func(t *testing.T) {
		stagedOnBatch(t, want, "", stagedLoad(s.URL, "--on", "local", "--workers", "2", "--set", "on.address=127.0.0.1"))
	})
	t.Run("htcondor", func(t *testing.T) {
		pool := labtest.Start(t, lab.HTCondorConfig{Slots: 2})
		labtest.Use(t, pool)
		stagedOnBatch(t, want, "/dir_", stagedLoad(s.URL, "--on", "htcondor", "--workers", "2"))
	})
	t.Run("slurm", func(t *testing.T) {
		nodes := labtest.Start(t, lab.SlurmConfig{CPUs: 2})
		labtest.Use(t, nodes)
		stagedOnBatch(t, want, "", stagedLoad(s.URL, "--on", "slurm", "--workers", "2"))
	})
	t.Run("ssh", func(t *testing.T) {
		nodes := labtest.Start(t, lab.SSHConfig{Nodes: 2})
		labtest.Use(t, nodes)
		stagedOnBatch(t, want, "", stagedLoad(s.URL, "--on", "ssh", "--workers", "2", "--set", "on.hosts=[node1, node2]"))
	})
}

// stagedOnBatch runs the load of want on a batch system whose jobs' scratch folders have folder in their path.
func stagedOnBatch(t *testing.T, want *analysis.Step, folder string, args []string) {
	t.Helper()
	r := newRemote(t)
	code, said := r.start(t, args...).ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	f := findings(t, r.run())
	got := &f.Curve[0]
	if got.Jobs == nil || *got.Jobs != *want.Jobs || got.Staged != want.Staged || got.Used != want.Used || got.Errors > 0 ||
		got.Verified+got.Unverified != want.Verified+want.Unverified {
		t.Fatalf("jobs %+v, staged %d, used %d, want %+v, %d and %d\n%s", got.Jobs, got.Staged, got.Used, want.Jobs, want.Staged, want.Used, said)
	}
	for _, s := range []*analysis.Step{got, want} { // independently of their duration, the jobs computed for 20 times 300 ms
		if computed := *s.CPUEfficiency * s.RunningJobs * s.Duration; math.Abs(computed-6) > 0.1 {
			t.Errorf("a CPU efficiency of %v of %v jobs for %v s is %v s of computing, want 6 s", *s.CPUEfficiency, s.RunningJobs, s.Duration,
				computed)
		}
	}
	device := ""
	for _, w := range f.Workers {
		if w.Scratch == nil {
			t.Fatalf("worker %s reports no folder of its copies", w.Name)
		}
		device = w.Scratch.Device
		if w.Scratch.Folder == "" || !strings.Contains(w.Scratch.Folder, folder) || w.Scratch.Free <= 0 {
			t.Errorf("worker %s copies to %+v, want a folder with %q", w.Name, w.Scratch, folder)
		}
		if left, err := filepath.Glob(filepath.Join(w.Scratch.Folder, "weir-scratch-*")); err != nil || len(left) > 0 && leftByUs(t, left) {
			t.Errorf("%v is left, %v", left, err)
		}
	}
	if device != "" && (got.Scratch == nil || len(got.ScratchDisks) != 1 || !strings.HasPrefix(device, got.Scratch.Disk) ||
		got.Scratch.IOWait == nil || got.Scratch.Busy == nil) {
		t.Errorf("the copies lie on %s, and its load is %+v", device, got.Scratch)
	}
	t.Logf("CPU efficiency %.3f, here %.3f, scratch %+v", *got.CPUEfficiency, *want.CPUEfficiency, got.Scratch)
	r.left(t)
}

// leftByUs reports whether one of these scratch folders does not belong to another test.
func leftByUs(t *testing.T, folders []string) bool {
	t.Helper()
	for _, dir := range folders {
		f, err := os.Open(filepath.Join(dir, "manifest.json"))
		if err != nil {
			continue
		}
		free := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
		require.NoError(t, f.Close())
		if free {
			return true
		}
	}
	return false
}

// workerPids returns the processes of a run's workers, which it identifies by the run's private
// state.
func workerPids(t *testing.T, state string) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, dir := range all {
		environ, _ := os.ReadFile(filepath.Join(dir, "environ")) // it may have ended
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && strings.Contains(string(environ), "XDG_STATE_HOME="+state) && strings.Contains(string(cmdline), "worker\x00--pass") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A worker that is killed while it copies leaves its copies. The other worker on its machine
// removes them at its end, and removes only files of killed workers.
func TestScratchOfAKilledWorker(t *testing.T) {
	t.Parallel()
	r, disk := newRemote(t), t.TempDir()
	data := t.TempDir()
	fill(t, data, 4, 400<<10)
	foreign := filepath.Join(disk, "weir-scratch-not-ours")
	require.NoError(t, os.Mkdir(foreign, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "copy-000000"), []byte("years of work"), 0o600))
	p := r.local(t, append(stagedJobs(disk), "--workers", "2", "--target", "file://"+data, "--clients", "4", "--duration", "10m", "--set",
		"workload.job.compute=50ms")...)
	untilHeld(t, r.run(), 1)
	folders := func() []string {
		all, err := filepath.Glob(filepath.Join(disk, "weir-scratch-[0-9]*"))
		require.NoError(t, err)
		return all
	}
	pids := workerPids(t, r.state)
	if len(pids) != 2 || len(folders()) != 2 {
		t.Fatalf("%d workers, folders %v, want two of each", len(pids), folders())
	}
	require.NoError(t, syscall.Kill(pids[0], syscall.SIGKILL))
	require.Eventually(t, "one worker is left", func() bool { return len(workerPids(t, r.state)) == 1 })
	if len(folders()) != 2 {
		t.Errorf("left are %v", folders())
	}
	p.send(t, os.Interrupt)
	code, said := p.ended()
	if code != exitInterrupt {
		t.Errorf("exit code %d\n%s", code, said)
	}
	if entries, err := os.ReadDir(disk); err != nil || len(entries) != 1 {
		t.Errorf("left are %v (%v), want only the foreign folder", entries, err)
	}
	if _, err := os.Stat(filepath.Join(foreign, "copy-000000")); err != nil {
		t.Error(err)
	}
	r.left(t)
}

// Workers that share a machine share its quota. With room for two copies, two of four jobs at a
// time go on, and the other jobs fail with the reason.
func TestScratchQuotaOfWorkers(t *testing.T) {
	t.Parallel()
	data, disk := t.TempDir(), t.TempDir()
	fill(t, data, 4, 400<<10)
	for name, args := range map[string][]string{
		"workers":   {"--on", "local", "--set", "on.address=127.0.0.1", "--workers", "2"},
		"processes": {"--processes", "2"}, "alone": {"--processes", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t)
			code, said := r.start(t, append(append([]string{"run", "--target", "file://" + data, "--clients", "4", "--duration", "2s", "--out",
				"run",
				"--set", "load.error_pause=20ms"}, stagedJobs(disk, "--set", "workload.job.compute=5ms", "--set",
				"workload.job.scratch_quota=820kB")...), args...)...).ended()
			if code != exitFine && code != exitInvalid {
				t.Fatalf("exit code %d\n%s", code, said)
			}
			c := &findings(t, r.run()).Curve[0]
			const clients = 4 // the measurement can end between the end of an operation and the end of its job
			if c.Jobs == nil || c.Jobs.Done == 0 || c.Jobs.Failed == 0 || len(c.ErrorsBy) != 1 ||
				max(c.ErrorsBy[storage.Scratch]-c.Jobs.Failed, c.Jobs.Failed-c.ErrorsBy[storage.Scratch]) > clients {
				t.Errorf("jobs %+v, errors %v, want some done and some failed by scratch only", c.Jobs, c.ErrorsBy)
			}
			if c.ClusterThroughput == nil || *c.ClusterThroughput > 2 {
				t.Errorf("%v jobs computed at once: there is room for two copies", *c.ClusterThroughput)
			}
			for _, w := range []string{"4 clients with a copy of up to 410 kB each need 1.64 MB, and the quota is 820 kB", "of the quota of "} {
				if !strings.Contains(said, w) {
					t.Errorf("it does not say %q:\n%s", w, said)
				}
			}
		})
	}
}

// A worker whose disk has no room for a single copy reports this and does not begin.
func TestScratchOfAWorkerIsTooSmall(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	disk, data := t.TempDir(), t.TempDir()
	require.NoError(t, syscall.Mount("weir-test", disk, "tmpfs", 0, "size=200k"))
	defer func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	}()
	fill(t, data, 4, 400<<10)
	for name, args := range map[string][]string{"here": nil, "worker": {"--on", "local", "--set", "on.address=127.0.0.1", "--workers", "1"}} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t)
			code, said := r.start(t, append(append([]string{"run", "--target", "file://" + data, "--clients", "1", "--duration", "2s", "--out",
				"run"}, stagedJobs(disk)...), args...)...).ended()
			said = unwrapped(said)
			if code != exitError || !strings.Contains(said, fmt.Sprintf("a job copies up to 410 kB, and %s has only ", disk)) {
				t.Errorf("exit code %d\n%s", code, said)
			}
			if entries, err := os.ReadDir(disk); err != nil || len(entries) > 0 {
				t.Errorf("%v is left, %v", entries, err)
			}
		})
	}
}

// The samples of a machine contain the name of the disk with the copies.
func TestScratchDeviceInSamples(t *testing.T) {
	t.Parallel()
	r, data := newRemote(t), t.TempDir()
	fill(t, data, 4, 400<<10)
	code, said := r.local(t, append(stagedJobs(t.TempDir()), "--workers", "1", "--target", "file://"+data, "--clients", "2", "--duration",
		"3s")...).ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	run, err := results.Open(r.run())
	require.NoError(t, err)
	device := ""
	for e, err := range run.Events() {
		require.NoError(t, err)
		if e.Worker != nil && e.Worker.State == measure.Stages {
			device = e.Worker.Scratch.Device
		}
	}
	if device == "" {
		t.Skip("the temporary folder lies on no block device")
	}
	named := 0
	for x, err := range run.Samples() {
		require.NoError(t, err)
		if x.Scratch == device {
			named++
		}
	}
	if named == 0 {
		t.Errorf("no sample names %s", device)
	}
}

// Jobs read directly, or copy files, from servers with limited disks and onto nodes with limited
// disks.
func TestDisksScenario(t *testing.T) {
	tier.Full(t, "the scenarios on the services that they are for")
	if os.Geteuid() != 0 {
		tier.Without(t, "root", "limited disks are for root")
	}
	disk := lab.Config{Disk: lab.Disk{Rate: 20e6, Size: 1e9, Memory: 192e6}}
	s := labtest.Start(t, lab.XRootDConfig{Config: disk, Servers: 2})
	nodes := labtest.Start(t, lab.SSHConfig{Config: disk, Nodes: 2})
	labtest.Use(t, nodes)
	for _, access := range []string{"direct", "staged"} {
		r := newRemote(t)
		code, said := r.start(t, "run", filepath.Join(scenarios(t), "jobs/disks.yaml"), "--target", s.URL, "--set", "on="+nodes.OnBlock(),
			"--out", "run", "--set", "access="+access, "--set", "files.make.count=8", "--set", "workload.job.compute=20ms", "--clients", "4",
			"--duration", "6s", "--set", "load.ramp=0s", "--set", "load.warmup=0s").ended()
		if code != exitFine && code != exitInvalid {
			t.Fatalf("exit code %d\n%s", code, said)
		}
		got := &findings(t, r.run()).Curve[0]
		if got.Jobs == nil || got.Jobs.Done == 0 || got.Jobs.Failed+got.Jobs.Crashed > 0 || (got.Staged > 0) != (access == "staged") {
			t.Errorf("%s: jobs %+v, %d bytes staged\n%s", access, got.Jobs, got.Staged, said)
		}
	}
}
