package engine

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// An askingError is a response 503 with Retry-After.
type askingError struct{ after time.Duration }

func (askingError) Error() string               { return "status 503" }
func (askingError) Unwrap() error               { return storage.ErrBusy }
func (e askingError) RetryAfter() time.Duration { return e.after }

// asking returns the service that requests clients to wait in the given span.
func asking(s storage.Service, from time.Time, span, after time.Duration) storage.Service {
	return &failing{Service: s, fails: func(int64) error {
		if since := time.Since(from); since >= 0 && since < span {
			return askingError{after}
		}
		return nil
	}}
}

// A client that receives Retry-After waits, at most until the end of the step, and all of that time
// is counted. Between two steps it sends one request at most, which may count for the second step.
// With the choice to ignore, it repeats its request at once.
func TestRetryAfterIsObeyed(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			step := scenario.Step{Clients: 10, Duration: seconds(60)}
			conf, n := closed(t, "simulated://x?servers=1000&service=1ms&dist=constant&files=100x1KiB",
				workload.Work{Kind: "read", Session: "kept"}, step, step)
			conf.Service = asking(conf.Service, time.Now(), time.Hour, time.Hour)
			if ignore {
				conf.Plan.RetryAfter = scenario.IgnoreRetryAfter
			}
			require.NoError(t, Run(t.Context(), conf))
			for i := range 2 {
				v := n.held(i + 1)
				switch failed := v.Errors(); {
				case ignore && (failed < 600 || v.RetryAfter != 0 || v.Paused < 590):
					t.Errorf("step %d, ignored: %d failed, %.1f s of pauses asked for, %.1f s of others", i+1, failed, v.RetryAfter, v.Paused)
				case !ignore && (failed < 10 || failed > int64(10+10*i) || math.Abs(v.RetryAfter-600) > 1 || v.Paused > 1):
					t.Errorf("step %d: %d failed, %.1f s of pauses asked for, %.1f s of others; want 10, 600 s and 0", i+1, failed, v.RetryAfter,
						v.Paused)
				}
			}
		})
	}
}

// In the open model an arrival whose operation is repeated after a wait counts from its planned
// start, no arrival is lost, and arrivals without a client wait in the queue.
func TestRetryAfterInTheOpenModel(t *testing.T) {
	for _, c := range []struct{ clients, retries int }{{1000, 1}, {1000, 0}, {20, 1}} {
		synctest.Test(t, func(t *testing.T) {
			step := scenario.Step{Clients: c.clients, Rate: 100, Duration: seconds(60)}
			conf, n := closed(t, "simulated://x?servers=1000&service=1ms&dist=constant&files=100x1KiB",
				workload.Work{Kind: "read", Session: "kept", Retries: c.retries}, step)
			conf.Plan.Model = "open"
			conf.Service = asking(conf.Service, time.Now().Add(20*time.Second), time.Second, 2*time.Second)
			require.NoError(t, Run(t.Context(), conf))
			var done, failed, missed int64
			for _, v := range n.intervals {
				done, failed, missed = done+v.Done, failed+v.Errors(), missed+v.Missed
			}
			v := n.held(1)
			if ended := done + missed + failed*int64(1-c.retries); ended < 5990 || ended > 6001 {
				t.Errorf("%+v: %d done, %d failed, %d missed, want 6000 arrivals", c, done, failed, missed)
			}
			late := max(v.Latency.Max(), v.Late.Max())
			switch {
			case c.clients == 1000 && (failed < 95 || failed > 105 || math.Abs(v.RetryAfter-2*float64(failed)) > 1):
				t.Errorf("%+v: %d failed, %.1f s of pauses", c, failed, v.RetryAfter)
			case c.clients == 1000 && c.retries == 1 && (v.Latency.Max() < 1.99 || v.Latency.Quantile(0.98) > 0.1 || v.Latency.Quantile(0.99) < 1.9):
				t.Errorf("%+v: latency p98 %.3f s, p99 %.3f s, at most %.3f s: want 2 s for 100 of 6000", c, v.Latency.Quantile(0.98),
					v.Latency.Quantile(0.99), v.Latency.Max())
			case c.clients == 20 && (late < 1.5 || v.Latency.Quantile(0.99) < 1):
				t.Errorf("%+v: latency p99 %.3f s, at most %.3f s: arrivals waited for a client up to 2 s", c, v.Latency.Quantile(0.99), late)
			}
		})
	}
}
