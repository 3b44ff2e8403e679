package engine

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// A task that was to arrive after the end never began, let alone before its time.
func TestArrivalsPlannedForLaterDoNotArriveAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := scenario.Step{Clients: 10, Rate: .1, Duration: seconds(15)} // at 10 s and, too late, at 20 s
		conf, n := closed(t, "simulated://x?servers=1&service=20ms&dist=constant&files=100x1KiB", workload.Work{Kind: "read", Session: "kept"},
			step)
		conf.Plan.Model = "open"
		require.NoError(t, Run(t.Context(), conf))
		var sum measure.Interval
		for _, v := range n.intervals {
			sum.Add(v)
			if v.Latency.Sum() < 0 {
				t.Errorf("%s: latencies sum to %v s", v.Phase, v.Latency.Sum())
			}
		}
		if sum.Begun != 1 || sum.Done != 1 {
			t.Errorf("%d begun, %d done, want the one that arrived", sum.Begun, sum.Done)
		}
	})
}

// deaf is a service whose operations work, but that never returns a checksum.
type deaf struct{ storage.Service }

func (d deaf) Client() storage.Client { return deafClient{d.Service.Client()} }

type deafClient struct{ storage.Client }

func (c deafClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if op.Kind != storage.Checksum {
		return c.Client.Do(ctx, op, p)
	}
	ctx, cancel := context.WithTimeout(ctx, op.Timeout)
	defer cancel()
	<-ctx.Done()
	return storage.Result{}, ctx.Err()
}

// Hundreds of requests for checksums, a minute each, do not delay the end of a run.
func TestQuestionsThatNobodyAnswersDoNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := workload.Work{Kind: "write", Session: "kept", Size: workload.Dist{Fixed: 1000}, Verify: 1, Sum: "adler32"}
		conf, n := closed(t, "simulated://x?servers=4&service=20ms&dist=constant&files=1x1KiB", work, stepOf(4, 10))
		conf.Service = deaf{conf.Service}
		var err error
		if conf.Files, err = Prepare(t.Context(), conf, nil, nil); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		require.NoError(t, Run(t.Context(), conf))
		if gone := time.Since(begin); gone > 62*time.Second {
			t.Errorf("ended after %v, want 20 s + 10 s + 30 s of drain at most", gone)
		}
		var sum measure.Interval
		for _, v := range n.intervals {
			sum.Add(v)
		}
		if len(n.events) > 2 {
			t.Logf("%+v", n.events)
		}
		if sum.Done == 0 || sum.Verified != 0 || sum.Unverifiable != sum.Done {
			t.Errorf("%d written, %d verified, %d unverifiable, want all of them unverifiable", sum.Done, sum.Verified, sum.Unverifiable)
		}
	})
}

// endless is a service whose every folder holds another folder.
type endless struct{ wide bool }

func (e endless) Client() storage.Client { return e }
func (e endless) Close() error           { return nil }

func (e endless) Do(ctx context.Context, op *storage.Op, _ storage.Progress) (storage.Result, error) {
	if op.Kind != storage.List {
		return storage.Result{}, errors.ErrUnsupported
	}
	entries := []storage.Entry{{Name: "again", Dir: true}, {Name: "file", Size: 1}}
	if e.wide {
		entries = append(entries, storage.Entry{Name: "more", Dir: true})
	}
	return storage.Result{Entries: entries}, ctx.Err()
}

func TestListingsThatDoNotEndAreRefused(t *testing.T) {
	for _, wide := range []bool{false, true} {
		conf := Config{Plan: &scenario.Plan{Target: "x:/", Files: scenario.Files{Listing: true}}, Service: endless{wide}}
		if _, err := Prepare(t.Context(), conf, nil, nil); err == nil || !strings.Contains(err.Error(), "do not end") {
			t.Errorf("wide %v: error %v, want one that the folders do not end", wide, err)
		}
	}
}

// A folder whose name a manifest gives is removed only while it is empty.
func TestRemoveLeavesFoldersWithFilesOfOthersAlone(t *testing.T) {
	s := &shelf{entries: map[string][]storage.Entry{"mine": {{Name: "theirs", Size: 1}}}}
	if err := new(cleaner).remove(t.Context(), s, "mine", true); err == nil || !strings.Contains(err.Error(), "theirs") || len(s.removed) > 0 {
		t.Errorf("error %v, removed %v: want the folder left alone", err, s.removed)
	}
	// A folder that no listing finds is no error, and removed by its name: an object store may list no empty folder.
	if err := new(cleaner).remove(t.Context(), s, "gone", true); err != nil || !slices.Equal(s.removed, []string{"gone"}) {
		t.Errorf("error %v, removed %v, want the name alone", err, s.removed)
	}
}

// A folder that several servers have is removed from each of them.
func TestRemoveOfAFolderThatSeveralServersHave(t *testing.T) {
	for copies, want := range map[int]string{1: "", 3: "", mostServers + 10: "there again after each removal"} {
		s := &shelf{entries: map[string][]storage.Entry{"mine": {{Name: "c0", Dir: true}}, "mine/c0": {}}, copies: copies}
		k := &cleaner{ours: map[string]bool{"mine": true, "mine/c0": true}}
		err := k.remove(t.Context(), s, "mine", true)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && len(s.removed) != copies+1 {
			t.Errorf("%d copies: %v, removed %v", copies, err, s.removed)
		}
	}
}

type shelf struct {
	entries map[string][]storage.Entry
	copies  int // of mine/c0
	removed []string
}

func (s *shelf) Close() error { return nil }

func (s *shelf) Do(_ context.Context, op *storage.Op, _ storage.Progress) (storage.Result, error) {
	if op.Kind == storage.Remove {
		s.removed = append(s.removed, op.Path)
		if s.copies--; s.copies == 0 {
			s.entries["mine"] = nil
		}
		return storage.Result{}, nil
	}
	entries, ok := s.entries[op.Path]
	if !ok {
		return storage.Result{}, fs.ErrNotExist
	}
	return storage.Result{Entries: entries}, nil
}

// lingering is a service whose sessions take 5 ms to close.
type lingering struct{ storage.Service }

func (s lingering) Client() storage.Client { return lingeringClient{s.Service.Client()} }

type lingeringClient struct{ storage.Client }

func (c lingeringClient) Close() error {
	time.Sleep(5 * time.Millisecond)
	return c.Client.Close()
}

// The time that closing sessions takes is reported: it is the clients' time as well.
func TestClosingSessionsIsTold(t *testing.T) {
	for session, want := range map[workload.Session]float64{workload.FreshSession: 4 * 10 * 5. / 15, workload.KeptSession: 0} {
		synctest.Test(t, func(t *testing.T) {
			work := workload.Work{Kind: "read", Session: session}
			conf, n := closed(t, "simulated://x?servers=9&service=10ms&dist=constant&files=100x1B", work, stepOf(4, 10))
			conf.Service = lingering{conf.Service}
			require.NoError(t, Run(t.Context(), conf))
			if v := n.held(1); math.Abs(v.Closing-want) > .02*want {
				t.Errorf("%s: %.2f s, want %.2f", session, v.Closing, want)
			}
		})
	}
}

// lateSteps returns the first step after an hour, as a controller does that waits for workers.
type lateSteps struct{ StepSource }

func (s lateSteps) Next(ctx context.Context) (scenario.Step, error) {
	time.Sleep(time.Hour)
	return s.StepSource.Next(ctx)
}

// The time for which a run waits for its first step is not part of its load.
func TestTheLoadIsStoppedByItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf, n := closed(t, "simulated://x?servers=4&service=20ms&dist=constant&files=100x1KiB",
			workload.Work{Kind: "read", Session: "kept"}, stepOf(2, 60))
		conf.Plan.Stop.Time = seconds(30)
		conf.Steps = lateSteps{FixedSteps(conf.Plan)}
		require.NoError(t, Run(t.Context(), conf))
		if sum := n.held(1); sum.Seconds < 9 || sum.Seconds > 11 {
			t.Errorf("%v s were measured, want 30 s less 20 s of warm-up", sum.Seconds)
		}
	})
}

// A client that waits for the task of its predecessor with the same number does not run yet.
func TestClientsThatWaitForTheirNumberDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, three := stepOf(4, 10), stepOf(1, 10), stepOf(4, 10)
		conf, n := closed(t, "simulated://x?servers=4&service=100s&dist=constant&files=100x1KiB",
			workload.Work{Kind: "read", Session: "kept"}, one, two, three)
		conf.Plan.GracefulStop = seconds(300)
		require.NoError(t, Run(t.Context(), conf))
		for step := range 3 {
			if sum := n.held(step + 1); math.Abs(sum.Clients-4) > .01 {
				t.Errorf("step %d had %v clients, of which 4 run", step+1, sum.Clients)
			}
		}
	})
}
