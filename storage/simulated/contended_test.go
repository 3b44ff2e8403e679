package simulated

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/storage"
)

// TestContendedLoopFollowsTheory compares services whose rate depends on the number of operations
// present with the exact solution, on both sides of the maximum.
func TestContendedLoopFollowsTheory(t *testing.T) {
	tier.Slow(t, "simulates hours of many clients")
	const ms = time.Millisecond
	for query, th := range map[string]Theory{
		"service=10ms&sigma=0.05&kappa=0.002":   {Service: 10 * ms, Sigma: 0.05, Kappa: 0.002},
		"service=20ms&sigma=0&kappa=0.01":       {Service: 20 * ms, Kappa: 0.01, Think: 100 * ms},
		"service=50ms&sigma=0.3":                {Service: 50 * ms, Sigma: 0.3, Think: 50 * ms},
		"service=10ms&servers=4&collapse=8x40%": {Servers: 4, Service: 10 * ms, Think: 20 * ms, Collapse: 8, Left: 0.4},
	} {
		peak, _ := th.Best(60)
		for _, n := range []int{1, max(2, peak/2), peak + 1, 2*peak + 5} {
			t.Run(fmt.Sprintf("%s Z=%v N=%d", query, th.Think, n), func(t *testing.T) {
				x := th.Rate(n)
				seconds := time.Duration(60_000/x) * time.Second
				rate, _, residence := loop(t, "simulated://x?files=10x1kB&"+query, n, th.Think, 20*time.Second, seconds)
				within(t, "rate", rate, x, 0.02)
				within(t, "residence", residence, th.Residence(n).Seconds(), 0.03)
			})
		}
	}
}

// TestContendedLatencyIsThatOfSharing: of n operations that share one server and never pause, the
// next to end is drawn, so the time of each is geometric in ends: its variance is the variance of n
// exponential times, nearly n^2.
func TestContendedLatencyIsThatOfSharing(t *testing.T) {
	const n, rounds = 10, 4000
	synctest.Test(t, func(t *testing.T) {
		// sigma=1: n operations together are as fast as one.
		s := open(t, "simulated://x?service=10ms&sigma=1&files=1x1kB")
		var all sync.WaitGroup
		var mu sync.Mutex
		var sum, squares float64
		for range n {
			c := s.Client()
			all.Go(func() {
				for range rounds {
					_, _, took, err := read(t.Context(), c, storage.Op{})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					sum += took.Seconds()
					squares += took.Seconds() * took.Seconds()
					mu.Unlock()
				}
			})
		}
		all.Wait()
		mean := sum / (n * rounds)
		spread := math.Sqrt(squares/(n*rounds) - mean*mean)
		within(t, "mean", mean, 0.1, 0.03)
		// A geometric number of exponential times is exponential itself.
		within(t, "spread", spread, 0.1, 0.05)
	})
}

// TestContendedGivingUp cancels operations in the middle: the others are as fast as without them,
// and no operation is lost.
func TestContendedGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, "simulated://x?service=1s&kappa=1&files=1x1B")
		var all sync.WaitGroup
		for i := range 40 {
			c := s.Client()
			all.Go(func() {
				limit := time.Duration(0)
				if i%4 > 0 {
					limit = time.Duration(i) * 10 * time.Millisecond
				}
				_, _, took, err := read(t.Context(), c, storage.Op{Timeout: limit})
				if limit > 0 && took > limit || limit == 0 && err != nil {
					t.Errorf("client %d: %v after %v", i, err, took)
				}
			})
		}
		all.Wait()
		w := s.(service).w
		if n := len(w.contended.in); n != 0 {
			t.Errorf("%d operations are there for ever", n)
		}
	})
}

// TestContendedDoneAndGivenUpAtOnce runs an end and a cancellation at the same moment, many times.
func TestContendedDoneAndGivenUpAtOnce(t *testing.T) {
	begin := time.Now()
	s := newContended(Config{Servers: 2, Seed: 1}, func() time.Duration { return time.Since(begin) }, func(int) float64 { return 1e6 })
	for range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		var both sync.WaitGroup
		for range 3 {
			both.Go(func() {
				w := &waiter{start: make(chan time.Duration, 1)}
				if end, err := s.pass(ctx, w, time.Since(begin)); err == nil && end < 0 {
					t.Errorf("ended at %v", end)
				}
				if len(w.start) > 0 {
					t.Error("an end was told and not heard")
				}
			})
		}
		both.Go(cancel)
		both.Wait()
	}
	if len(s.in) > 0 {
		t.Errorf("%d operations are left", len(s.in))
	}
}

// TestContendedInRealTime checks that the machine's lateness does not lower the rate.
func TestContendedInRealTime(t *testing.T) {
	s := open(t, "simulated://x?service=100ms&servers=4000&collapse=100000x50%&files=1x1kB")
	var all sync.WaitGroup
	begin := time.Now()
	for range 4000 {
		c := s.Client()
		all.Go(func() {
			if _, _, _, err := read(t.Context(), c, storage.Op{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	// The last of n exponential times is ln(n)+0.58 means long, 0.89 s here, with a spread of 0.13
	// s; only delays of a busy machine may add to it.
	if took := time.Since(begin); took < 400*time.Millisecond || took > time.Minute {
		t.Errorf("took %v, want about 0.9 s", took)
	}
}

// TestNoise opens services repeatedly: each has a capacity of its own, with the requested spread,
// and a seed makes them the same.
func TestNoise(t *testing.T) {
	draw := func(url string) []float64 {
		var out []float64
		d := Driver()
		for range 400 {
			s, err := d.Open(t.Context(), target(t, url))
			require.NoError(t, err)
			out = append(out, math.Log(s.(service).w.capacity()))
		}
		return out
	}
	first := draw("simulated://x?noise=3%&seed=5")
	var sum, squares float64
	for _, z := range first {
		sum += z
		squares += z * z
	}
	if mean := sum / 400; math.Abs(mean) > 0.03*4/20 {
		t.Errorf("the mean is off by %v", mean)
	}
	within(t, "spread", math.Sqrt(squares/400), 0.03, 0.15)
	again, other := draw("simulated://x?noise=3%&seed=5"), draw("simulated://x?noise=3%&seed=6")
	fresh, fresher := draw("simulated://x?noise=3%"), draw("simulated://x?noise=3%")
	for i := range first {
		if first[i] != again[i] {
			t.Fatalf("opening %d has %v and %v with the same seed", i, first[i], again[i])
		}
		if first[i] == other[i] || fresh[i] == fresher[i] {
			t.Fatalf("opening %d is the same with another seed", i)
		}
	}
	for _, z := range draw("simulated://x?seed=5") {
		if z != 0 {
			t.Fatal("noise without being asked for")
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := open(t, "simulated://x?noise=20%&seed=3&service=10ms&dist=constant&bandwidth=8Mbit/s&files=1x100kB")
		_, _, took, err := read(t.Context(), s.Client(), storage.Op{})
		require.NoError(t, err)
		within(t, "time", took.Seconds(), 0.110/s.(service).w.capacity(), 1e-6)
	})
}

func TestTheoryOfContention(t *testing.T) {
	// Without pauses it is the Universal Scalability Law itself.
	th := Theory{Service: 10 * time.Millisecond, Sigma: 0.02, Kappa: 0.0005}
	within(t, "rate of 20", th.Rate(20), 100*20/(1+0.02*19+0.0005*20*19), 1e-12)
	n, rate := th.Best(300)
	if want := math.Sqrt((1 - 0.02) / 0.0005); math.Abs(float64(n)-want) > 1 {
		t.Errorf("best with %d clients, want %.1f", n, want)
	}
	within(t, "saturation", th.Saturation(300), rate/100, 1e-12)
	// sigma=1 is one server.
	one, same := Theory{Service: time.Second, Think: 3 * time.Second, Sigma: 1},
		Theory{Servers: 1, Service: time.Second, Think: 3 * time.Second}
	for n := 1; n < 40; n++ {
		within(t, "rate of one server", one.Rate(n), same.Rate(n), 1e-9)
	}
	// With pauses: two clients, S = Z = 1, kappa = 1/2: the rate of two is 2/(1+1) = 1; weights 1, 2, 2.
	th = Theory{Service: time.Second, Think: time.Second, Kappa: 0.5}
	within(t, "rate of two", th.Rate(2), (2*1+2*1)/5.0, 1e-12)
	// A plain service has no maximum: its rate only grows, so that the best number is the first
	// whose rate is indistinguishable from the limit; its saturation is N*.
	th = Theory{Servers: 4, Service: 10 * time.Millisecond, Think: 90 * time.Millisecond}
	within(t, "saturation", th.Saturation(400), th.Knee(), 0.001)
	// A collapse is a cliff.
	th = Theory{Servers: 4, Service: 10 * time.Millisecond, Collapse: 50, Left: 0.2}
	if got := th.Rate(51) / th.Rate(50); math.Abs(got-0.2) > 1e-12 {
		t.Errorf("%v is left beyond the collapse, want 0.2", got)
	}
	if n, _ := th.Best(100); n != 4 {
		t.Errorf("best with %d clients, want 4", n)
	}
}
