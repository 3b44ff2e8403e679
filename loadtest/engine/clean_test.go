package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// mute is a service that removes, but does not respond to the first so many removals.
type mute struct {
	storage.Service
	left *atomic.Int64
}

func (s mute) Client() storage.Client { return muteClient{s.Service.Client(), s} }

type muteClient struct {
	storage.Client
	s mute
}

func (c muteClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	res, err := c.Client.Do(ctx, op, p)
	if op.Kind == storage.Remove && c.s.left.Add(-1) >= 0 {
		select {
		case <-ctx.Done():
			return res, context.Cause(ctx)
		case <-time.After(op.Timeout):
			return res, fmt.Errorf("remove: %w", os.ErrDeadlineExceeded)
		}
	}
	return res, err
}

// A lost response to a removal costs seconds; a service that does not respond at all is given up,
// and the two events are reported.
func TestRemovalsThatAreNotAnswered(t *testing.T) {
	for _, c := range []struct {
		lost, failed int
		least, most  time.Duration
	}{{1, 0, removeTime, removeTime + time.Second}, {1 << 30, 99, mostSilence, mostSilence + 2*time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			conf, _ := closed(t, "simulated://x?service=1ms&files=100x1KiB", workload.Work{Kind: "read", Session: "kept"}, stepOf(1, 1))
			left := &atomic.Int64{}
			left.Store(int64(c.lost))
			conf.Service = mute{conf.Service, left}
			var paths []string
			for _, f := range conf.Files[:99] {
				paths = append(paths, f.Path)
			}
			var told atomic.Bool
			began := time.Now()
			failed, first := Clean(t.Context(), conf, paths, func(what string, done, total int) {
				told.Store(told.Load() || strings.HasPrefix(what, "no answer for ") && done < total && total == 99)
			})
			took := time.Since(began)
			if failed != c.failed || (first != nil) != (c.failed > 0) || took < c.least || took > c.most || !told.Load() {
				t.Errorf("%d answers lost: %d left (%v), %v, told: %v", c.lost, failed, first, took, told.Load())
			}
			if c.failed > 0 && (!errors.Is(first, context.DeadlineExceeded) && !errors.Is(first, os.ErrDeadlineExceeded)) {
				t.Errorf("%v", first)
			}
		})
	}
}

// refusing is a service whose first removals and listings end with an error.
type refusing struct {
	storage.Service
	left *atomic.Int64
	err  error
}

func (s refusing) Client() storage.Client { return refusingClient{s.Service.Client(), s} }

type refusingClient struct {
	storage.Client
	s refusing
}

func (c refusingClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if op.Kind != storage.Login && c.s.left.Add(-1) >= 0 {
		return storage.Result{}, c.s.err
	}
	return c.Client.Do(ctx, op, p)
}

// A service that is busy for three seconds, or a gateway that lost its server, leaves
// no file behind; a denial is final.
func TestRemovalsAreRepeated(t *testing.T) {
	for _, c := range []struct {
		err     error
		answers int64
		failed  int
	}{{syscall.ECONNRESET, 3, 0}, {storage.ErrCrashed, 3, 0}, {storage.ErrBusy, 3, 0}, {storage.ErrBusy, 4, 1}, {fs.ErrPermission, 1, 1}} {
		synctest.Test(t, func(t *testing.T) {
			conf, _ := closed(t, "simulated://x?service=1ms&files=1x1KiB", workload.Work{Kind: "read", Session: "kept"}, stepOf(1, 1))
			left := &atomic.Int64{}
			left.Store(c.answers)
			conf.Service = refusing{conf.Service, left, c.err}
			if failed, err := Clean(t.Context(), conf, []string{conf.Files[0].Path}, nil); failed != c.failed || (err != nil) != (failed > 0) {
				t.Errorf("%d times %v: %d not removed: %v", c.answers, c.err, failed, err)
			}
		})
	}
}

// Files are made in spite of a connection that broke or a busy service, and the run warns of it; a
// denial is final.
func TestPreparationsAreRepeated(t *testing.T) {
	for _, c := range []struct {
		err     error
		answers int64
		repeats string
	}{
		{syscall.ECONNRESET, 1, "1 operation of the preparation failed and was repeated: connection reset"},
		{storage.ErrCrashed, 1, "1 operation of the preparation failed and was repeated: the client's program crashed"},
		{storage.ErrBusy, 3, "3 operations of the preparation failed and were repeated"},
		{storage.ErrBusy, 5, ""}, {fs.ErrPermission, 1, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			conf, sink := closed(t, "simulated://x?service=1ms&files=0x0", workload.Work{Kind: "read", Session: "kept"}, stepOf(1, 1))
			conf.Plan.Files = scenario.Files{Make: &scenario.Make{Count: 1, Size: workload.Dist{Fixed: 10}}}
			left := &atomic.Int64{}
			left.Store(c.answers)
			conf.Service = refusing{conf.Service, left, c.err}
			_, err := Prepare(t.Context(), conf, nil, nil)
			if (err == nil) != (c.repeats != "") {
				t.Errorf("%d times %v: %v", c.answers, c.err, err)
			}
			told := slices.ContainsFunc(sink.events, func(e measure.Event) bool {
				return e.Kind == measure.EventWarning && strings.HasPrefix(e.Text, cmp.Or(c.repeats, "?"))
			})
			if told != (c.repeats != "") {
				t.Errorf("%d times %v: the events are %v", c.answers, c.err, sink.events)
			}
			// a folder that was denied is not there; after any other failure it may be
			if left, denied := conf.Manifest.(*remembered).left, errors.Is(c.err, fs.ErrPermission); denied != (len(left) == 0) {
				t.Errorf("%d times %v: left are %v", c.answers, c.err, left)
			}
		})
	}
}
