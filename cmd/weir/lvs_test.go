package main

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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

// The test of the GridFTP servers behind LVS on a small scale: up to 200 jobs of a real HTCondor
// and of a real Slurm, with one client each, read through a balancer from real GridFTP servers.
func TestClientsAsJobs(t *testing.T) {
	tier.Quiet(t, "the tests of the five reports, small")
	const most = 200
	ftp := labtest.Start(t, lab.GridFTPConfig{Servers: 3})
	for _, s := range []struct {
		name   string
		start  func() *lab.System
		submit string
		queue  []string // prints a line for each job that is left
	}{
		// The test program is large, and the pool has it already, so that it is not transferred.
		{"htcondor", func() *lab.System { return labtest.Start(t, lab.HTCondorConfig{Slots: most}) }, "[transfer_executable = False]",
			[]string{"condor_q", "-allusers", "-af", "ClusterId"}},
		{"slurm", func() *lab.System { return labtest.Start(t, lab.SlurmConfig{CPUs: most}) }, "[]", []string{"squeue", "--noheader"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			system := s.start()
			labtest.Use(t, system)
			r := newRemote(t)
			before := retrieved(t, ftp)
			scenario, err := filepath.Abs("../../scenarios/gridftp-lvs/small.yaml")
			require.NoError(t, err)
			code, said := r.start(t, "run", scenario, "--on", s.name, "--target", ftp.URL, "--set", "balancer="+ftp.BalancerBlock(),
				"--set", "hosts=["+strings.Join(ftp.HostsBlock(), ",")+"]", "--set", "on.submit="+s.submit, "--duration", "8s", "--out", "run").ended()
			if code != exitFine && code != exitInvalid {
				t.Fatalf("exit code %d\n%s", code, said)
			}
			f := findings(t, r.run())
			if asJobs(t, f); t.Failed() {
				t.Log(said)
			}
			whatBackendsGave(t, f)
			sameBytes(t, r.run(), before, retrieved(t, ftp))
			page(t, r.run())
			out, err := exec.CommandContext(t.Context(), s.queue[0], s.queue[1:]...).CombinedOutput()
			if err != nil || len(strings.TrimSpace(string(out))) > 0 {
				t.Errorf("left in the queue: %v\n%s", err, out)
			}
			r.left(t)
			empty(t, ftp.Data)
			if err := system.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// asJobs fails t unless all jobs of all four steps were present, began and ended as jobs do, and
// the parts of the steps have their function.
func asJobs(t *testing.T, f *analysis.Findings) {
	t.Helper()
	jobs := 0
	if len(f.Curve) != 4 {
		t.Fatalf("%d steps", len(f.Curve))
	}
	phases := map[string]float64{}
	for _, p := range f.Phases {
		phases[fmt.Sprint(p.Step, p.Phase)] += p.Seconds
	}
	for i, s := range f.Curve {
		jobs += s.Planned
		if s.Planned != 50*(i+1) || s.Errors > 0 || s.Done == 0 {
			t.Errorf("step %d: %d of %d clients, %d files, %d errors %v", s.Step, s.Clients, s.Planned, s.Done, s.Errors, s.ErrorsBy)
		}
		for _, phase := range []string{measure.Ramp, measure.Measured, measure.GracefulStop} {
			if phases[fmt.Sprint(s.Step, phase)] == 0 {
				t.Errorf("step %d has no %s", s.Step, phase)
			}
		}
	}
	came, whole := map[string]bool{}, 0
	for _, w := range f.Workers {
		if came[w.Job] = true; w.State != measure.Left || w.Job == "" || w.Reported == 0 {
			t.Errorf("%+v", w)
		}
		if w.Reported >= 6 {
			whole++
		}
	}
	if whole < jobs/2 { // a process that does not get the CPU for seconds reports fewer, longer intervals
		t.Errorf("%d of %d jobs told of most of their 8 seconds", whole, jobs)
	}
	if len(came) != jobs || jobs != 500 {
		t.Errorf("%d jobs told something, of %d", len(came), jobs)
	}
	if len(f.Subintervals) != 16 || f.Parts == nil || f.Parts.Total == nil || f.Parts.Each == nil || f.Parts.Total.Points != 16 {
		t.Errorf("%d parts, %+v", len(f.Subintervals), f.Parts)
	}
}

// whatBackendsGave fails t unless each backend has its figures, and their sum is the throughput of
// the clients. A machine that starts hundreds of jobs may be too busy to query the balancer in the
// eight seconds of a step. It must have been queried in three of four steps.
func whatBackendsGave(t *testing.T, f *analysis.Findings) {
	t.Helper()
	if f.Balance == nil || len(f.Balance.Backends) != 3 {
		t.Fatalf("backends %+v", f.Balance)
	}
	asked := map[string]int{}
	for _, s := range f.Curve {
		sum := 0.0
		for _, b := range s.Backends {
			if b.Clients == nil || b.Log == nil {
				t.Fatalf("step %d: %+v", s.Step, b)
			}
			if b.Sessions != nil {
				asked[b.Name]++
			}
			sum += *b.Clients
		}
		if len(s.Backends) != 3 || math.Abs(sum-s.Throughput) > 1e-3*s.Throughput {
			t.Errorf("step %d: %d backends gave %v, all together %v", s.Step, len(s.Backends), sum, s.Throughput)
		}
	}
	for _, b := range f.Balance.Backends {
		if n := asked[b.Name]; 4*n < 3*len(f.Curve) {
			t.Errorf("sessions of %s are known in %d of %d steps", b.Name, n, len(f.Curve))
		}
	}
	if state, detail := status(f, "backends agree"); state == analysis.Fail || state == "" {
		t.Errorf("%s: %s", state, detail)
	}
}

// sameBytes fails t unless the servers' own logs contain the bytes that the clients of the run
// read, plus the 16 files of 200 kB that the run read back after it had made them.
func sameBytes(t *testing.T, dir string, before, after map[string]int64) {
	t.Helper()
	run, err := results.Open(dir)
	require.NoError(t, err)
	moved, logged := int64(16*200_000), int64(0)
	for v, err := range run.Intervals() {
		require.NoError(t, err)
		if v.Kind == storage.Read {
			moved += v.Moved
		}
	}
	for name := range after {
		if logged += after[name] - before[name]; after[name] == before[name] {
			t.Errorf("%s has logged nothing", name)
		}
	}
	if moved != logged {
		t.Errorf("clients read %d bytes, the servers logged %d", moved, logged)
	}
}

// retrieved returns the number of bytes that each server has sent, according to its transfer log.
func retrieved(t *testing.T, s *lab.System) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, server := range s.Servers {
		if server.TransferLog == "" {
			continue
		}
		b := require.File(t, server.TransferLog)
		for _, m := range regexp.MustCompile(`NBYTES=(\d+) .*TYPE=RETR`).FindAllSubmatch(b, -1) {
			n, err := strconv.ParseInt(string(m[1]), 10, 64)
			require.NoError(t, err)
			all[server.Name] += n
		}
	}
	return all
}

// page fails t unless the report shows phases, backends and workers.
func page(t *testing.T, run string) {
	t.Helper()
	b := require.File(t, filepath.Join(run, "report.html"))
	for _, want := range []string{"Phases of the steps", "Backends", "Workers", "cool down", "gftp-3"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the report has no %q", want)
		}
	}
}
