package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// failing fails the operations for which fails, called with their number, returns an error.
type failing struct {
	storage.Service
	fails func(n int64) error
	count atomic.Int64
}

func (f *failing) Client() storage.Client { return &failingClient{f.Service.Client(), f} }

type failingClient struct {
	storage.Client
	f *failing
}

func (c *failingClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if err := c.f.fails(c.f.count.Add(1)); err != nil {
		return storage.Result{}, err
	}
	return c.Client.Do(ctx, op, p)
}

// heldWith runs clients for 60 s against a service of 1 ms an operation.
func heldWith(t *testing.T, clients int, pause float64, fails func(n int64) bool) (done, failed int64, paused float64) {
	t.Helper()
	conf, n := closed(t, "simulated://x?servers=1000&service=1ms&dist=constant&files=100x1KiB", workload.Work{Kind: "read", Session: "kept"},
		scenario.Step{Clients: clients, Duration: seconds(60)})
	conf.Plan.ErrorPause = seconds(pause)
	conf.Service = &failing{Service: conf.Service, fails: func(n int64) error {
		if fails(n) {
			return errors.New("status 500")
		}
		return nil
	}}
	require.NoError(t, Run(t.Context(), conf))
	v := n.held(1)
	return v.Done, v.Errors(), v.Paused
}

// An error now and then costs a healthy service nothing: the rate is that
// without errors.
func TestIsolatedErrorsCostNoTime(t *testing.T) {
	for _, every := range []int64{500, 16} {
		synctest.Test(t, func(t *testing.T) {
			done, failed, paused := heldWith(t, 1, 1, func(n int64) bool { return n%every == 0 })
			if failed == 0 || paused != 0 {
				t.Errorf("every %d-th: %d errors, %.3f s paused, want none", every, failed, paused)
			}
			if done < 59_000 {
				t.Errorf("every %d-th: %d operations of 1 ms in 60 s", every, done)
			}
		})
	}
}

// A service that refuses everything receives about one request in the longest pause from each
// client, and all of that time is counted as pauses.
func TestRefusingServiceIsNotHammered(t *testing.T) {
	all := func(int64) bool { return true }
	synctest.Test(t, func(t *testing.T) {
		done, failed, paused := heldWith(t, 10, 1, all)
		if done != 0 || failed > 10*(60+failuresBeforePause+12) {
			t.Errorf("%d operations failed in 60 s of 10 clients", failed)
		}
		if paused < 599 || paused > 600.001 {
			t.Errorf("%.3f s of pauses, want those of 10 clients for 60 s", paused)
		}
	})
}

func TestErrorPause(t *testing.T) {
	for _, c := range []struct {
		failures      int
		longest, want time.Duration
	}{
		{0, time.Second, 0}, {2, time.Second, 0}, {3, time.Second, time.Millisecond}, {5, time.Second, 4 * time.Millisecond},
		{13, time.Second, time.Second}, {1 << 40, time.Second, time.Second}, {9, 0, 0}, {3, time.Microsecond, time.Microsecond},
	} {
		if got := errorPause(c.failures, c.longest); got != c.want {
			t.Errorf("errorPause(%d, %v) = %v, want %v", c.failures, c.longest, got, c.want)
		}
	}
}
