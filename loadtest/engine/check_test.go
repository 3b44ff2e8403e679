package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/content"
	"weir/internal/require"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/workload"
	"weir/storage"
)

// sumless is a service that has no checksums and counts the reads that are to be summed on their
// way.
type sumless struct {
	storage.Service
	summed atomic.Int64
}

func (s *sumless) Client() storage.Client { return &sumlessClient{s.Service.Client(), s} }

type sumlessClient struct {
	storage.Client
	s *sumless
}

func (c *sumlessClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if op.Kind == storage.Checksum {
		return storage.Result{}, fmt.Errorf("no checksums here: %w", errors.ErrUnsupported)
	}
	if op.Sum != "" {
		c.s.summed.Add(1)
	}
	return c.Client.Do(ctx, op, p)
}

// Payload that cannot be judged is not summed again and again; it counts as unverifiable all the
// same. Files that the run has made are always judged here.
func TestPayloadThatNobodyCanJudgeIsNotSummed(t *testing.T) {
	for _, made := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			work := workload.Work{Kind: "read", Session: "kept", Verify: .5, Sum: "adler32"}
			conf, n := closed(t, "simulated://x?servers=9&service=10ms&files=100x1KiB", work, stepOf(4, 20))
			for i := range conf.Files {
				conf.Files[i].Made = made
				conf.Files[i].Size = 1024
			}
			s := &sumless{Service: conf.Service}
			conf.Service = s
			require.NoError(t, Run(t.Context(), conf))
			v := n.held(1)
			asked, summed := float64(v.Unverifiable+v.Verified+v.BadOf(storage.Checksummed))/float64(v.Done+v.Errors()),
				s.summed.Load()
			switch {
			case asked < .45 || asked > .55:
				t.Errorf("made %v: %.2f of the operations were to be checked, want half of them", made, asked)
			case made && summed < v.Done/3:
				t.Errorf("only %d of %d were summed, though their content is known", summed, v.Done)
			case !made && (summed < 1 || summed > 8):
				t.Errorf("%d reads were summed, want those that began before the service said that it has no checksums", summed)
			}
		})
	}
}

// mixedUp returns for the second and later requests of a client for checksums the result of the
// previous request, as XRootD 5 may on a kept connection.
type mixedUp struct{ storage.Service }

func (s mixedUp) Client() storage.Client { return &mixedUpClient{Client: s.Service.Client()} }

type mixedUpClient struct {
	storage.Client
	before string
}

func (c *mixedUpClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	res, err := c.Client.Do(ctx, op, p)
	if op.Kind == storage.Checksum && err == nil {
		sum := res.Sum
		if c.before != "" {
			res.Sum = c.before
		}
		c.before = sum
	}
	return res, err
}

// A payload is wrong only if the service reports the wrong checksum on a fresh connection.
func TestWrongChecksumIsAskedForAgain(t *testing.T) {
	for _, kind := range []string{"read", "checksum"} {
		synctest.Test(t, func(t *testing.T) {
			work := workload.Work{Kind: "mix", Mix: map[string]float64{kind: 1}, Session: "kept", Verify: .2, Sum: "adler32"}
			conf, n := closed(t, "simulated://x?servers=9&service=10ms&files=100x1KiB", work, stepOf(4, 10))
			conf.Service = mixedUp{conf.Service}
			for i := range conf.Files {
				conf.Files[i].Made, conf.Files[i].Seed = kind == "checksum", content.Seed(1, conf.Files[i].Path)
			}
			require.NoError(t, Run(t.Context(), conf))
			v := n.held(1)
			if v.BadOf(storage.Checksummed) > 0 || kind == "read" && v.Verified < 10 {
				t.Errorf("%s: %d payloads are called wrong, %d right", kind, v.BadOf(storage.Checksummed), v.Verified)
			}
			if asked := v.Failed[storage.Other] > 10; asked != (kind == "checksum") {
				t.Errorf("%s: %d answers are called mixed up", kind, v.Failed[storage.Other])
			}
		})
	}
}

// lying reports for each file a checksum that no file of the tests has.
type lying struct{ storage.Service }

func (s lying) Client() storage.Client { return lyingClient{s.Service.Client()} }

type lyingClient struct{ storage.Client }

func (c lyingClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	res, err := c.Client.Do(ctx, op, p)
	if op.Kind == storage.Checksum && err == nil {
		res.Sum = "adler32:00000001"
	}
	return res, err
}

// slowSums takes a tenth of a second for each checksum.
type slowSums struct{ storage.Service }

func (s slowSums) Client() storage.Client { return slowSumsClient{s.Service.Client()} }

type slowSumsClient struct{ storage.Client }

func (c slowSumsClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if op.Kind == storage.Checksum {
		time.Sleep(100 * time.Millisecond)
	}
	return c.Client.Do(ctx, op, p)
}

// A file that a client removes or moves before its check does not count as a file that the service
// could not verify.
func TestRemovedFilesAreNotUnverifiable(t *testing.T) {
	for _, kind := range []string{"remove", "move", "mkdir"} {
		synctest.Test(t, func(t *testing.T) {
			work := workload.Work{Kind: "mix", Mix: map[string]float64{"write": 3, kind: 2}, Session: "kept", Size: workload.Dist{Fixed: 1000},
				Verify: 0.2, Sum: "adler32"}
			conf, n := closed(t, "simulated://x?servers=9&service=40ms&files=1x1KiB", work, stepOf(4, 2))
			conf.Service = slowSums{conf.Service}
			_, err := Prepare(t.Context(), conf, nil, nil)
			require.NoError(t, err)
			require.NoError(t, Run(t.Context(), conf))
			var sum measure.Interval
			for _, v := range n.intervals {
				sum.Add(v)
			}
			if sum.Verified < 20 || sum.Unverifiable > 0 || sum.Wrong > 0 {
				t.Errorf("%s: %d verified, %d unverifiable, %d wrong", kind, sum.Verified, sum.Unverifiable, sum.Wrong)
			}
		})
	}
}

// An operation whose payload is found wrong after it has ended stays done and is counted as wrong;
// an operation whose payload is found wrong at once failed. Either counts for stop.error_ratio,
// once.
func TestWrongPayloadsAreCountedOnce(t *testing.T) {
	for _, kind := range []string{"read", "write", "checksum"} {
		synctest.Test(t, func(t *testing.T) {
			work := workload.Work{Kind: "mix", Mix: map[string]float64{kind: 1}, Session: "kept", Size: workload.Dist{Fixed: 1000}, Verify: 0.2,
				Sum: "adler32"}
			conf, n := closed(t, "simulated://x?servers=9&service=10ms&files=100x1KiB", work, stepOf(4, 10))
			conf.Service = lying{conf.Service}
			for i := range conf.Files {
				conf.Files[i].Made, conf.Files[i].Seed = kind == "checksum", content.Seed(1, conf.Files[i].Path)
			}
			_, err := Prepare(t.Context(), conf, conf.Files, nil)
			require.NoError(t, err)
			for _, ratio := range []unit.Fraction{0.9, 0.05} {
				n.intervals, n.events, conf.Plan.Stop.ErrorRatio = nil, nil, ratio
				require.NoError(t, Run(t.Context(), conf))
				var sum measure.Interval
				for _, v := range n.intervals {
					sum.Add(v)
				}
				atOnce, later := sum.Failed[storage.Checksummed], sum.Wrong
				share := float64(atOnce+later) / float64(sum.Done+sum.Errors())
				if share < 0.08 || share > 0.3 || (atOnce > 0) != (kind == "checksum") ||
					(later > 0) == (kind == "checksum") {
					t.Errorf("%s: %d of %d operations failed, %d of those done are wrong, want a fifth", kind, atOnce, sum.Done+sum.Errors(), later)
				}
				if n.balanced(t); (n.events[len(n.events)-1].Outcome == measure.StoppedByRule) != (ratio < 0.2) {
					t.Errorf("%s: with stop.error_ratio %v the run %s", kind, ratio, n.events[len(n.events)-1].Text)
				}
			}
		})
	}
}

// refusesSecond refuses every request of a client for a checksum but its first, as XRootD may while
// it still computes the previous checksum.
type refusesSecond struct{ storage.Service }

func (s refusesSecond) Client() storage.Client {
	return &refusesSecondClient{Client: s.Service.Client()}
}

type refusesSecondClient struct {
	storage.Client
	asked bool
}

func (c *refusesSecondClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if op.Kind == storage.Checksum {
		if c.asked {
			return storage.Result{}, &storage.OpError{Kind: op.Kind, URL: op.Path, Err: storage.ErrBusy}
		}
		c.asked = true
	}
	return c.Client.Do(ctx, op, p)
}

// A checksum that the service refuses as busy is requested again, on a new connection.
func TestRefusedChecksumIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := workload.Work{Kind: "read", Session: "kept", Verify: .2, Sum: "adler32"}
		conf, n := closed(t, "simulated://x?servers=9&service=10ms&files=100x1KiB", work, stepOf(4, 10))
		conf.Service = refusesSecond{conf.Service}
		require.NoError(t, Run(t.Context(), conf))
		if v := n.held(1); v.Unverifiable > 0 || v.Verified < 10 {
			t.Errorf("%d payloads verified, %d unverifiable", v.Verified, v.Unverifiable)
		}
	})
}

// forgetful loses every second file that it acknowledges, or shows each of them half a second late.
type forgetful struct {
	storage.Service
	late  bool
	count *atomic.Int64
	since *sync.Map // path: when it was written
}

func (s forgetful) Client() storage.Client { return forgetfulClient{s.Service.Client(), s} }

type forgetfulClient struct {
	storage.Client
	s forgetful
}

func (c forgetfulClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	switch op.Kind {
	case storage.Write:
		c.s.since.Store(op.Path, time.Now())
		if !c.s.late && c.s.count.Add(1)%2 == 0 {
			res, err := c.Client.Do(ctx, op, p)
			return res, errors.Join(err, c.remove(ctx, op.Path))
		}
	case storage.Checksum:
		if at, ok := c.s.since.Load(op.Path); ok && c.s.late && time.Since(at.(time.Time)) < time.Second/2 {
			return storage.Result{}, &storage.OpError{Kind: op.Kind, URL: op.Path, Err: fs.ErrNotExist}
		}
	}
	return c.Client.Do(ctx, op, p)
}

func (c forgetfulClient) remove(ctx context.Context, path string) error {
	_, err := c.Client.Do(ctx, &storage.Op{Kind: storage.Remove, Path: path, Timeout: time.Minute}, storage.NoProgress{})
	return err
}

// A file that is missing a second after its write was acknowledged is a wrong payload; a file that
// is shown late is not, nor is a file that clients may have removed.
func TestFilesThatAreNotThereAreWrong(t *testing.T) {
	for name, c := range map[string]struct {
		late    bool
		mix     map[string]float64
		correct float64 // share of the verified files
	}{
		"lost":    {false, nil, 0.5},
		"late":    {true, nil, 1},
		"removed": {false, map[string]float64{"write": 2, "remove": 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				work := workload.Work{Kind: "write", Session: "kept", Size: workload.Dist{Fixed: 1000}, Verify: .1, Sum: "adler32"}
				if c.mix != nil {
					work.Kind, work.Mix = "mix", c.mix
				}
				conf, n := closed(t, "simulated://x?servers=9&service=10ms&files=1x1KiB", work, stepOf(4, 10))
				conf.Service = forgetful{conf.Service, c.late, new(atomic.Int64), new(sync.Map)}
				var err error
				conf.Files, err = Prepare(t.Context(), conf, nil, nil)
				require.NoError(t, err)
				require.NoError(t, Run(t.Context(), conf))
				var sum measure.Interval
				for _, v := range n.intervals {
					sum.Add(v)
				}
				verified, wrong := float64(sum.Verified), float64(sum.BadOf(storage.Checksummed))
				if share := verified / (verified + wrong); verified < 20 || math.Abs(share-c.correct) > 0.2 || c.correct == 1 && wrong > 0 {
					t.Errorf("%v verified, %v wrong, %d unverifiable", verified, wrong, sum.Unverifiable)
				}
			})
		})
	}
}
