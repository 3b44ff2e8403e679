package engine

import (
	"os"
	"testing"
	"testing/synctest"

	"weir/internal/require"
	"weir/loadtest/engine/scratch"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// Ten events of 30 ms and three writes of 100 ms each: the writes are operations of their own and
// part of the job's time, and its efficiency includes them.
func TestOutputOfJobs(t *testing.T) {
	for _, access := range []string{workload.Direct, workload.Staged} {
		t.Run(access, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conf, n := staging(t, "", 5)
				homes(t, conf)
				j := conf.Plan.Work.Job
				j.Access, j.Page, j.OutputShare, j.OutputFiles = access, 40<<10, 0.3, 3
				require.NoError(t, os.WriteFile(scratch.Output(conf.Scratch, 99), nil, 0o600))
				require.NoError(t, Run(t.Context(), conf))
				reads := 1.0
				if access == workload.Direct {
					reads = 10
				}
				v, efficiency := n.jobs(1)
				near(t, "a job's wall clock time", v.Wall.Mean(), .1*reads+.3+.3, .02)
				near(t, "efficiency", efficiency, .3/(.1*reads+.6), .03)
				all := n.sum()
				if all.Outputs != 3*all.Ended || all.Output != all.Ended*(120<<10) || all.Errors() > 0 || all.Used != all.Ended*(400<<10) {
					t.Errorf("%d jobs of 400 KiB: %d files of %d bytes together, %d used, errors %v", all.Ended, all.Outputs, all.Output, all.Used,
						all.Failed)
				}
				near(t, "time of a write", all.OutputTime/float64(all.Outputs), .1, .02)
				writes := int64(0)
				for _, i := range n.intervals {
					if i.Kind == storage.Write {
						writes += i.Done
					}
				}
				if writes != all.Outputs {
					t.Errorf("%d writes, %d files of output", writes, all.Outputs)
				}
				entries, err := os.ReadDir(conf.Scratch)
				if err != nil || len(entries) != 1 {
					t.Errorf("on the scratch disk are %v, %v, want only what was there", entries, err)
				}
			})
		})
	}
}

// A job whose output cannot be written has failed.
func TestOutputThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf, n := staging(t, "", 2)
		homes(t, conf)
		j := conf.Plan.Work.Job
		j.OutputSize, conf.Room = 500<<10, scratch.NewRoom(1000<<10) // two copies of 400 KiB, and no output
		require.NoError(t, Run(t.Context(), conf))
		v, _ := n.jobs(1)
		if v.Ended > 0 && v.JobsFailed == 0 || v.JobsFailed != v.Failed[storage.Scratch] || v.JobsFailed == 0 {
			t.Errorf("%d done, %d failed: %v", v.Ended, v.JobsFailed, v.Failed)
		}
		if err := conf.Room.Take(1000 << 10); err != nil {
			t.Errorf("not all was given back: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		work := jobbing(workload.Job{Events: 2, Event: 40 << 10, Page: 40 << 10, OutputSize: 1000})
		conf, n := closed(t, "simulated://x?servers=100&service=100ms&dist=constant&seed=5&files=100x400KiB&error.busy=50%", work,
			scenario.Step{Clients: 3, Duration: seconds(40)})
		homes(t, conf)
		require.NoError(t, Run(t.Context(), conf))
		all := n.sum()
		if all.JobsFailed == 0 || all.JobsFailed != all.Failed[storage.Busy] || all.Outputs != all.Ended {
			t.Errorf("%d failed, %v, %d files, %d done", all.JobsFailed, all.Failed, all.Outputs, all.Ended)
		}
	})
}

// homes makes the folders that clients write to.
func homes(t *testing.T, conf Config) {
	t.Helper()
	s := conf.Service.Client()
	for _, path := range []string{conf.Folder, workload.Home(conf.Folder, 0), workload.Home(conf.Folder, 1), workload.Home(conf.Folder, 2),
		workload.Home(conf.Folder, 3), workload.Home(conf.Folder, 4)} {
		for storage.Classify(mkdir(t, s, path)) == storage.Busy {
		}
	}
}

func mkdir(t *testing.T, s storage.Client, path string) error {
	t.Helper()
	_, err := s.Do(t.Context(), &storage.Op{Kind: storage.Mkdir, Path: path}, storage.NoProgress{})
	return err
}
