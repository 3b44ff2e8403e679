//go:build linux

package engine

import (
	"runtime"
	"testing"
	"time"

	"weir/internal/burn"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
)

// burnt runs a step of jobs that burn, and returns its measurements, the efficiency, and the CPU
// time that this process took meanwhile.
func burnt(t *testing.T, clients int) (v measure.Interval, efficiency float64, cpu time.Duration) {
	t.Helper()
	job := workload.Job{Events: 20, Event: 8 << 10, Page: 8 << 10, Burn: true, Compute: workload.Span{Fixed: seconds(.003)}}
	conf, n := closed(t, "simulated://x?servers=100&service=1us&dist=constant&files=100x1MiB", jobbing(job),
		scenario.Step{Clients: clients, Duration: seconds(1)})
	conf.Pacer = nil
	before := burn.Process()
	require.NoError(t, Run(t.Context(), conf))
	cpu = burn.Process() - before
	v, efficiency = n.jobs(1)
	return v, efficiency, cpu
}

// Computing is counted in CPU time, regardless of other load on the machine, and if there are more
// jobs than cores, they take turns: together they get the available time.
func TestBurningIsCPUTime(t *testing.T) {
	tier.Slow(t, "keeps cores busy")
	was := runtime.GOMAXPROCS(0)
	for _, clients := range []int{1, 3 * was} {
		v, efficiency, cpu := burnt(t, clients)
		share := v.Compute / cpu.Seconds()
		t.Logf("%d clients: computed %.3f s in %.3f s of CPU time (%.1f%%), efficiency %.3f, %d events", clients, v.Compute, cpu.Seconds(),
			100*share, efficiency, v.Events)
		if share < .2 || share > 1.02 { // the engine's own share is larger where other programs have most of the machine
			t.Errorf("%d clients computed %.3f s, and the process took %.3f s of CPU time", clients, v.Compute, cpu.Seconds())
		}
		if most := min(1, float64(was)/float64(clients)); efficiency > most*1.05 {
			t.Errorf("%d clients on %d cores have an efficiency of %.3f, want up to %.3f", clients, was, efficiency, most)
		}
		near(t, "CPU time of an event", v.Compute/float64(v.Events), .003, .2)
	}
	if now := runtime.GOMAXPROCS(0); now != was {
		t.Errorf("the run leaves GOMAXPROCS at %d, it was %d", now, was)
	}
}

// Jobs that wait for a core end at once when the run is cancelled.
func TestBurningIsBrokenOff(t *testing.T) {
	job := workload.Job{Events: 1, Event: 8 << 10, Page: 8 << 10, Burn: true, Compute: workload.Span{Fixed: seconds(3600)}}
	conf, n := closed(t, "simulated://x?servers=100&service=1us&dist=constant&files=100x1MiB", jobbing(job),
		scenario.Step{Clients: 9, Duration: seconds(.3)})
	conf.Pacer, conf.Plan.GracefulStop = nil, seconds(.1)
	begin := time.Now()
	require.NoError(t, Run(t.Context(), conf))
	if gone := time.Since(begin); gone > time.Minute {
		t.Errorf("it took %v", gone)
	}
	var all measure.Interval
	for _, v := range n.intervals {
		all.Add(v)
	}
	if all.Started != 9 || all.Ended+all.JobsFailed+all.Crashed != 0 || all.Compute <= 0 {
		t.Errorf("%d begun, %d done, %d failed, %d crashed, %v s computed", all.Started, all.Ended, all.JobsFailed, all.Crashed, all.Compute)
	}
}
