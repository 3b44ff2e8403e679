package tpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// computes is a server that computes a limited number of checksums at once, each in 10 ms, and lets
// other requests wait for 30 s, like XRootD. It sends a computed checksum at once.
type computes struct {
	slots       int
	out, most   atomic.Int64
	held, asked atomic.Int64
}

func (c *computes) ask(ctx context.Context) error {
	c.asked.Add(1)
	n := c.out.Add(1)
	defer c.out.Add(-1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	wait := 10 * time.Millisecond
	if n > int64(c.slots) {
		c.held.Add(1)
		wait = 30 * time.Second
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sendAll sends n requests, 200 at a time.
func sendAll(t *testing.T, s *Sums, c *computes, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			for range n / 200 {
				if err := s.Ask(t.Context(), "a:1", 1<<16, c.ask); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// The number of requests grows to the number that a server serves in time, and the server delays
// few of them.
func TestLimitIsLearned(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{1, 2, 4, 16, 64, 1000} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s Sums
				c := &computes{slots: slots}
				began := time.Now()
				sendAll(t, &s, c, 40_000)
				took := time.Since(began)
				if limit := s.servers["a:1"].limit; limit > slots || limit < min(slots, 128)/2 {
					t.Errorf("the limit is %d", limit)
				}
				if c.most.Load() > int64(max(2*slots, firstSums)) {
					t.Errorf("%d were asked at once", c.most.Load())
				}
				best := 40_000 / min(slots, 200) * int(10*time.Millisecond)
				t.Logf("%v, %.1f times the best; %d of %d were held", took, float64(took)/float64(best), c.held.Load(), c.asked.Load())
				if took > 4*time.Duration(best)+20*time.Second || c.held.Load() > 200 {
					t.Errorf("%v instead of %v, %d held", took, time.Duration(best), c.held.Load())
				}
			})
		})
	}
}

// A request that its server holds is sent again. A caller that stops waiting leaves no slot
// occupied.
func TestHeldQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sums
		calls := 0
		began := time.Now()
		err := s.Ask(t.Context(), "a:1", 100<<20, func(ctx context.Context) error {
			if calls++; calls < 3 {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return errStalled
		})
		if took := time.Since(began); !errors.Is(err, errStalled) || calls != 3 || took != 3*(heldAfter+10*time.Second) {
			t.Errorf("%v after %d calls, %v", err, calls, took)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				err := s.Ask(ctx, "a:1", 0, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if k := s.servers["a:1"]; k.out != 0 || len(k.waiting) != 0 {
			t.Errorf("%+v", k)
		}
	})
}

// The checksum of another file, as XRootD 5.5.3 sends it on a connection with earlier requests, is
// not accepted.
func TestStaleChecksums(t *testing.T) {
	for _, w := range []Wish{{Want: "00000002"}, {}} {
		seen := map[string]bool{}
		var mu sync.Mutex
		s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if digest := "adler32=00000002"; seen[r.RemoteAddr] {
				rw.Header().Set("Digest", "adler32=00000001")
			} else if r.Header.Get("Want-Digest") != "" {
				rw.Header().Set("Digest", digest)
			}
			seen[r.RemoteAddr] = true
		}))
		c := client(t, Options{})
		to := Target{URL: s.URL + "/f"}
		for range 3 {
			if info, err := c.Stat(t.Context(), to); err != nil || info.Adler != "" {
				t.Errorf("%+v, %v", info, err)
			}
			if info, err := c.Checksum(t.Context(), to, w); err != nil || info.Adler != "00000002" {
				t.Errorf("%+v: %+v, %v", w, info, err)
			}
		}
		s.Close()
	}
}
