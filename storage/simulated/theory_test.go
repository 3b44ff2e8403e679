package simulated

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/tier"
	"weir/storage"
)

// loop drives a closed loop of n clients by hand, in a bubble, and returns the
// operations and bytes per second and the mean time of an operation between
// warm and warm+measured.
func loop(t *testing.T, url string, n int, think, warm, measured time.Duration) (rate, bytes, residence float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, url)
		var ops, moved, busy atomic.Int64
		begin := time.Now()
		var all sync.WaitGroup
		for i := range n {
			c, r := s.Client(), rand.New(rand.NewPCG(uint64(i), 1))
			all.Go(func() {
				op := storage.Op{Kind: storage.Read, Path: FileName(i % 10), Size: -1}
				count := &meter{begin: begin, from: warm, to: warm + measured, moved: &moved}
				for time.Since(begin) < warm+measured {
					time.Sleep(time.Duration(r.ExpFloat64() * float64(think)))
					start := time.Since(begin)
					if _, err := c.Do(t.Context(), &op, count); err != nil {
						t.Error(err)
						return
					}
					if end := time.Since(begin); end >= warm && end < warm+measured {
						ops.Add(1)
						busy.Add(int64(end - start))
					}
				}
			})
		}
		all.Wait()
		rate = float64(ops.Load()) / measured.Seconds()
		bytes = float64(moved.Load()) / measured.Seconds()
		residence = time.Duration(busy.Load()).Seconds() / float64(ops.Load())
	})
	return rate, bytes, residence
}

type meter struct {
	begin    time.Time
	from, to time.Duration
	moved    *atomic.Int64
}

func (*meter) Reached(storage.Phase) {}
func (*meter) ServedBy(string)       {}
func (m *meter) Moved(n int) {
	if at := time.Since(m.begin); at >= m.from && at < m.to {
		m.moved.Add(int64(n))
	}
}

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*want) {
		t.Errorf("%s is %.6g, theory says %.6g: %.1f%% apart, allowed are %.1f%%", what, got, want, 100*math.Abs(got-want)/want, 100*tolerance)
	}
}

// TestLoopFollowsTheory compares the service with the exact solution below,
// at and above the knee.
func TestLoopFollowsTheory(t *testing.T) {
	tier.Slow(t, "simulates hours of many clients")
	for _, th := range []Theory{
		{Servers: 1, Service: 10 * time.Millisecond, Think: 90 * time.Millisecond},
		{Servers: 4, Service: 20 * time.Millisecond, Think: 100 * time.Millisecond},
		{Servers: 16, Service: 50 * time.Millisecond, Think: 50 * time.Millisecond},
		{Servers: 2, Service: 10 * time.Millisecond},
	} {
		knee := th.Knee()
		for _, n := range []int{1, max(1, int(knee/2)), int(knee), int(2 * knee)} {
			t.Run(fmt.Sprintf("k=%d Z=%v N=%d", th.Servers, th.Think, n), func(t *testing.T) {
				x := th.Rate(n)
				seconds := time.Duration(60_000/x) * time.Second // enough operations for 2%
				url := fmt.Sprintf("simulated://x?servers=%d&service=%s&files=10x1kB", th.Servers, th.Service)
				rate, _, residence := loop(t, url, n, th.Think, 20*time.Second, seconds)
				within(t, "rate", rate, x, 0.02)
				within(t, "residence", residence, th.Residence(n).Seconds(), 0.03)
				within(t, "Little's N", rate*(residence+th.Think.Seconds()), float64(n), 0.02)
				if low, high := th.Bounds(n); rate < low*0.98 || rate > high*1.02 {
					t.Errorf("rate %v is outside of its bounds %v to %v", rate, low, high)
				}
			})
		}
	}
}

// TestFiveThousandClients runs ten minutes of 5,000 clients in no time.
func TestFiveThousandClients(t *testing.T) {
	tier.Slow(t, "simulates hours of many clients")
	th := Theory{Servers: 4, Service: 10 * time.Millisecond, Think: 10 * time.Second}
	rate, _, _ := loop(t, "simulated://x?servers=4&service=10ms&files=10x1kB", 5000, th.Think, 30*time.Second, 570*time.Second)
	within(t, "rate", rate, th.Rate(5000), 0.02)
}

// TestConstantServiceKeepsUp checks the properties that hold without exponential times: no client
// waits up to k clients, and above the knee servers are always busy.
func TestConstantServiceKeepsUp(t *testing.T) {
	const url = "simulated://x?servers=4&service=10ms&dist=constant&files=10x1kB"
	for n, want := range map[int]float64{1: 100, 3: 300, 4: 400, 5: 400, 50: 400} {
		rate, _, _ := loop(t, url, n, 0, time.Second, 20*time.Second)
		within(t, fmt.Sprintf("rate of %d", n), rate, want, 0.001)
	}
}

// TestBandwidthIsShared saturates the link: all of it is used, not more, and
// all clients get the same.
func TestBandwidthIsShared(t *testing.T) {
	const url = "simulated://x?servers=100&service=1ms&bandwidth=80Mbit/s&files=10x1MB" // 10 MB/s
	_, alone, took := loop(t, url, 1, 0, time.Second, 20*time.Second)
	within(t, "throughput of one client", alone, 1e6/0.101, 0.02)
	within(t, "time of one read", took, 0.101, 0.02)
	for _, n := range []int{8, 64} {
		_, bytes, residence := loop(t, url, n, 0, 20*time.Second, 100*time.Second)
		within(t, fmt.Sprintf("throughput of %d clients", n), bytes, 10e6, 0.005)
		within(t, fmt.Sprintf("time of a read of %d clients", n), residence, float64(n)*0.1, 0.05)
	}
}

func TestTheory(t *testing.T) {
	// One server: compared with the recursion of mean value analysis.
	th := Theory{Servers: 1, Service: 10 * time.Millisecond, Think: 35 * time.Millisecond}
	queue := 0.0
	for n := 1; n <= 300; n++ {
		r := 0.010 * (1 + queue)
		x := float64(n) / (r + 0.035)
		queue = x * r
		within(t, fmt.Sprintf("rate of %d", n), th.Rate(n), x, 1e-9)
		within(t, fmt.Sprintf("residence of %d", n), th.Residence(n).Seconds(), r, 1e-6)
	}
	// Two servers, three clients, S = Z = 1: weights 1, 3, 3, 3/2 by hand.
	th = Theory{Servers: 2, Service: time.Second, Think: time.Second}
	within(t, "rate of three", th.Rate(3), (1*3+2*3+2*1.5)/8.5, 1e-12)
	if got := th.Knee(); got != 4 {
		t.Errorf("knee %v, want 4", got)
	}
	if got := th.Rate(0); got != 0 {
		t.Errorf("rate of nobody: %v", got)
	}
	// Far beyond the range of factorials.
	th = Theory{Servers: 4, Service: 10 * time.Millisecond, Think: time.Second}
	within(t, "rate of a million", th.Rate(1_000_000), 400, 1e-9)
	for n := 1; n < 2000; n += 7 {
		if low, high := th.Bounds(n); !(low <= th.Rate(n)*(1+1e-12) && th.Rate(n) <= high*(1+1e-12)) {
			t.Errorf("rate of %d is %v, its bounds %v to %v", n, th.Rate(n), low, high)
		}
	}
}
