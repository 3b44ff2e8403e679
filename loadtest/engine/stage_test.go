package engine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"weir/internal/content"
	"weir/internal/require"
	"weir/internal/unit"
	"weir/loadtest/engine/scratch"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// staging returns the configuration of closed for jobs of ten events of 40 KiB that are staged from
// files of 400 KiB; query is appended to the service's.
func staging(t *testing.T, query string, clients int) (Config, *notes) {
	t.Helper()
	work := jobbing(workload.Job{Access: workload.Staged, Events: 10, Event: 40 << 10, Page: 8 << 10,
		Compute: workload.Span{Fixed: seconds(.03)}})
	work.Verify = 1
	conf, n := closed(t, "simulated://x?servers=100&service=100ms&dist=constant&seed=5&files=100x400KiB"+query, work,
		scenario.Step{Clients: clients, Duration: seconds(40)})
	for i := range conf.Files {
		f := &conf.Files[i]
		f.Size, f.Seed, f.Made = 400<<10, content.Seed(5, f.Path), true
	}
	conf.Scratch = t.TempDir()
	return conf, n
}

func nothingLeft(t *testing.T, folder string) {
	t.Helper()
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
}

// sum adds up all intervals.
func (n *notes) sum() (all measure.Interval) {
	for _, i := range n.intervals {
		all.Add(i)
	}
	return all
}

// Copying takes 100 ms and computing 300: the service receives one read of the whole file for each
// job, and the events come from the copy, in no time.
func TestStagedJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf, n := staging(t, "", 5)
		require.NoError(t, Run(t.Context(), conf))
		v, efficiency := n.jobs(1)
		near(t, "efficiency", efficiency, .75, .02)
		near(t, "a job's wall clock time", v.Wall.Mean(), .4, .01)
		near(t, "jobs", float64(v.Ended), 500, .01)
		all := n.sum()
		jobs := all.Ended
		if want := jobs * (400 << 10); all.Staged != want || all.Moved != want || all.Used != want || all.Done != jobs || all.Verified != jobs ||
			all.Events != 10*jobs {
			t.Errorf("%d jobs of 400 KiB: %d staged, %d moved, %d used, %d reads, %d verified, %d events", jobs, all.Staged, all.Moved, all.Used,
				all.Done, all.Verified, all.Events)
		}
		if all.Discarded > 0 || all.Errors() > 0 {
			t.Errorf("%d bytes discarded, errors %v", all.Discarded, all.Failed)
		}
		nothingLeft(t, conf.Scratch)
	})
}

// The outcome of the copy is the outcome of the job, and the client goes on with the next job.
func TestStagedJobsThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		class storage.Class
		spoil func(t *testing.T, conf *Config)
	}{
		"dying service":  {"&error.reset=100%", storage.Reset, nil},
		"short":          {"&error.short=100%", storage.Short, nil},
		"wrong checksum": {"&error.checksum=100%", storage.Checksummed, nil},
		"no scratch folder": {"", storage.Scratch, func(t *testing.T, conf *Config) {
			conf.Scratch = filepath.Join(conf.Scratch, "none")
			t.Cleanup(func() { _ = os.Mkdir(conf.Scratch, 0o700) })
		}},
		"full disk": {"", storage.Scratch, func(t *testing.T, conf *Config) {
			for i := range 3 { // not removed by a failed job but with its folder: the device must not be, so a link is
				require.NoError(t, os.Symlink("/dev/full", scratch.Copy(conf.Scratch, i)))
			}
		}},
		"events behind the end": {"", storage.Short, func(_ *testing.T, conf *Config) {
			for i := range conf.Files {
				conf.Files[i].Size, conf.Files[i].Made = -1, false
			}
			conf.Plan.Work.Verify, conf.Plan.Work.Job.Events = 0, 11
		}},
		"timeout": {"&error.timeout=100%", storage.Timeout, func(_ *testing.T, conf *Config) {
			conf.Plan.Work.Job.Copy = unit.Duration(seconds(2))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conf, n := staging(t, c.query, 3)
				if c.spoil != nil {
					c.spoil(t, &conf)
				}
				require.NoError(t, Run(t.Context(), conf))
				v, _ := n.jobs(1)
				first := c.class == storage.Scratch && name == "full disk" // whose links the first jobs have removed
				switch {
				case first:
					if v.JobsFailed != 3 || v.Failed[c.class] != 3 || v.Ended < 200 {
						t.Errorf("%d done, %d failed: %v, want 3 failed", v.Ended, v.JobsFailed, v.Failed)
					}
				case v.Ended > 0 || v.Crashed+v.JobsFailed < 10 || v.Crashed+v.JobsFailed != v.Failed[c.class] ||
					(v.Crashed > 0) != (c.class == storage.Timeout):
					t.Errorf("%d done, %d crashed, %d failed: %v, want all %v", v.Ended, v.Crashed, v.JobsFailed, v.Failed, c.class)
				}
				if c.query != "" && v.Staged > 0 {
					t.Errorf("%d bytes staged", v.Staged)
				}
				if name != "no scratch folder" {
					nothingLeft(t, conf.Scratch)
				}
			})
		})
	}
}

func TestStagedJobsNeedAFolder(t *testing.T) {
	conf, _ := staging(t, "", 1)
	conf.Scratch = ""
	if err := Run(t.Context(), conf); !errors.Is(err, errNoScratch) {
		t.Error(err)
	}
}

// A run that is cancelled in the middle of copies leaves no copy.
func TestStagedJobsBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf, n := staging(t, "&bandwidth=1MB/s", 4)
		conf.Plan.Steps[0].Duration, conf.Plan.GracefulStop = seconds(1), seconds(.1)
		require.NoError(t, Run(t.Context(), conf))
		if all := n.sum(); all.Moved == 0 || all.Ended+all.JobsFailed+all.Crashed > 4 {
			t.Errorf("%d bytes moved, %d jobs done, %d failed, %d crashed", all.Moved, all.Ended, all.JobsFailed, all.Crashed)
		}
		nothingLeft(t, conf.Scratch)
	})
}

func TestReadingACopyAllocatesNothing(t *testing.T) {
	l, f, op, job := copyOf(t, 4<<20, 8<<10)
	if got := testing.AllocsPerRun(100, func() {
		op.Ranges[0] = storage.Range{Offset: 40 << 10, Length: 40 << 10}
		require.NoError(t, l.readCopy(f, op, job))
	}); got > 0 {
		t.Errorf("%v allocations for 5 pages", got)
	}
}

func copyOf(t testing.TB, size, page int) (*clientRunner, copyFile, *storage.Op, *workload.Job) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
	f, err := openCopy(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return &clientRunner{}, f, &storage.Op{Kind: storage.Read, Ranges: make([]storage.Range, 1)}, &workload.Job{Page: unit.Size(page)}
}

// BenchmarkCopyPages compares pages of a copy with the barest loop of the same
// system calls.
func BenchmarkCopyPages(b *testing.B) {
	const size, page = 4 << 20, 8 << 10
	l, f, op, job := copyOf(b, size, page)
	b.Run("weir", func(b *testing.B) {
		for i := range b.N {
			op.Ranges[0] = storage.Range{Offset: int64(i) * page % size, Length: page}
			require.NoError(b, l.readCopy(f, op, job))
		}
	})
	b.Run("bare", func(b *testing.B) {
		buf := make([]byte, page)
		for i := range b.N {
			if _, err := f.ReadAt(buf, int64(i)*page%size); err != nil {
				b.Fatal(err)
			}
		}
	})
}
