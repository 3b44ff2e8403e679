package simulated

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/content"
	"weir/internal/require"
	"weir/storage"
	"weir/storage/storagetest"
)

func target(t testing.TB, text string) storage.Target {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return storage.Target{URL: u}
}

func open(t testing.TB, text string) storage.Service {
	t.Helper()
	s, err := Driver().Open(t.Context(), target(t, text))
	require.NoError(t, err)
	return s
}

func TestConformance(t *testing.T) {
	atOnce := storagetest.Options{Largest: 1 << 20, Lacks: []storagetest.Lack{storagetest.EarlyProgress}}
	for query, o := range map[string]storagetest.Options{
		"service=50us&dist=constant&bandwidth=100Gbit/s&connect=10us&servers=100": {},
		"service=0&files=0x0":                                       atOnce, // without a link, short operations are never in progress
		"service=10us&servers=1":                                    atOnce,
		"service=10us&sigma=0.1&kappa=0.001":                        atOnce,
		"service=50us&sigma=0.1&bandwidth=100Gbit/s&collapse=3x50%": {},
	} {
		o.Shared = true
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			storagetest.Run(t, Driver(), target(t, "simulated://x?"+query), o)
		})
	}
}

// TestSharedSessionConnectsOnce checks that clients that share a session connect once, for any
// number of clients, and again when it breaks.
func TestSharedSessionConnectsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := target(t, "simulated://x?service=1ms&servers=100&connect=1s&files=9x100B")
		to.Shared = true
		s, err := Driver().Open(t.Context(), to)
		require.NoError(t, err)
		begin := time.Now()
		for range 2 {
			var all sync.WaitGroup
			var connected atomic.Int64
			for range 50 {
				all.Go(func() {
					h := heard{begin: begin}
					c := s.Client()
					if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: FileName(1)}, &h); err != nil {
						t.Error(err)
					}
					if slices.Contains(h.phases, storage.Connected) {
						connected.Add(1)
					}
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if n := connected.Load(); n != 1 {
				t.Errorf("%d clients connected, want one", n)
			}
			s.(service).shared.up.Store(false) // as when the connection breaks
		}
		if d := time.Since(begin); d < 2*time.Second || d > 3*time.Second {
			t.Errorf("took %v, want twice the second that connecting takes", d)
		}
	})
}

// heard is a Progress that records the times at which bytes moved.
type heard struct {
	moved  int64
	times  []time.Duration
	phases []storage.Phase
	begin  time.Time
}

func (h *heard) Reached(p storage.Phase) { h.phases = append(h.phases, p) }
func (h *heard) Moved(n int) {
	h.moved += int64(n)
	h.times = append(h.times, time.Since(h.begin))
}
func (*heard) ServedBy(string) {}

func read(ctx context.Context, c storage.Client, op storage.Op) (storage.Result, *heard, time.Duration, error) {
	h := &heard{begin: time.Now()}
	if op.Path == "" {
		op.Path = FileName(0)
	}
	op.Size = -1
	res, err := c.Do(ctx, &op, h)
	return res, h, time.Since(h.begin), err
}

func TestTimesAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, "simulated://x?servers=1&service=10ms&dist=constant&connect=3ms&bandwidth=8Mbit/s&files=1x100kB").Client()
		for i, want := range []time.Duration{113 * time.Millisecond, 110 * time.Millisecond} { // 100 kB at 1 MB/s
			_, h, took, err := read(t.Context(), c, storage.Op{Chunk: 10_000})
			if err != nil || took != want {
				t.Errorf("read %d took %v, %v, want %v", i, took, err, want)
			}
			if len(h.times) != 10 || h.moved != 100_000 {
				t.Errorf("read %d moved %d bytes in %d pieces, want 100000 in 10", i, h.moved, len(h.times))
			}
			for k, at := range h.times {
				if want := want - time.Duration(9-k)*10*time.Millisecond; at != want {
					t.Errorf("read %d: piece %d after %v, want %v", i, k, at, want)
				}
			}
		}
	})
}

func TestLongServiceTellsOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, "simulated://x?service=10s&dist=constant&files=1x1MB").Client()
		_, h, took, err := read(t.Context(), c, storage.Op{})
		if err != nil || took != 10*time.Second || h.moved != 1_000_000 || len(h.times) < 50 {
			t.Errorf("%v, %v, %d bytes in %d pieces", took, err, h.moved, len(h.times))
		}
	})
}

// TestFirstComeFirstServed sends clients one after the other to one server.
func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, "simulated://x?servers=2&service=1s&dist=constant&files=1x1B")
		var all sync.WaitGroup
		ends := make([]time.Duration, 9)
		begin := time.Now()
		for i := range ends {
			c := s.Client()
			all.Go(func() {
				if _, _, _, err := read(t.Context(), c, storage.Op{}); err != nil {
					t.Error(err)
				}
				ends[i] = time.Since(begin)
			})
			time.Sleep(time.Millisecond) // of the bubble: an order of arrival
		}
		all.Wait()
		for i, got := range ends {
			want := time.Duration(i/2+1)*time.Second + time.Duration(i%2)*time.Millisecond
			if got != want {
				t.Errorf("client %d is done after %v, want %v", i, got, want)
			}
		}
	})
}

// TestGivingUpFreesThePlace cancels one client in service and one in the queue: the next operations
// get the two places at once.
func TestGivingUpFreesThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, "simulated://x?servers=1&service=10s&dist=constant&files=1x1B")
		var all sync.WaitGroup
		want := []time.Duration{time.Second, time.Second, 11 * time.Second, 2 * time.Second, 21 * time.Second}
		limit := []time.Duration{time.Second, time.Second, 0, 2 * time.Second, 0}
		begin := time.Now()
		for i := range want {
			c := s.Client()
			all.Go(func() {
				_, _, _, err := read(t.Context(), c, storage.Op{Timeout: limit[i]})
				if got := time.Since(begin); got != want[i] {
					t.Errorf("client %d is back after %v, want %v", i, got, want[i])
				}
				if class := storage.Classify(err); (class == storage.Timeout) != (limit[i] > 0) {
					t.Errorf("client %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
	})
}

// TestLateTurnIsPassedOn runs the assignment of a server and a cancellation at the same moment,
// many times: the server must never be lost.
func TestLateTurnIsPassedOn(t *testing.T) {
	s := newStation(1)
	for i := range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := s.enter(t.Context(), &waiter{start: make(chan time.Duration, 1)}, 0); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			start, err := s.enter(ctx, &waiter{start: make(chan time.Duration, 1)}, 0)
			if err == nil {
				s.leave(start)
			}
		})
		both.Go(cancel)
		both.Go(func() { s.leave(1) })
		both.Wait()
		if len(s.free) != 1 || s.head != nil || s.tail != nil {
			t.Fatalf("round %d: %d servers free, queue %v", i, len(s.free), s.head)
		}
	}
}

func TestFailuresAreWhatWasAskedFor(t *testing.T) {
	const n = 20_000
	synctest.Test(t, func(t *testing.T) {
		s := open(t,
			"simulated://x?servers=9&service=1ms&files=1x1kB&error=10%&error.reset=5%&error.not-found=4%&error.timeout=3%&error.short=2%&error.checksum=20%&error.refused=1%&error.denied=2%&error.other=1%")
		want := map[storage.Class]float64{storage.Busy: 10, storage.Reset: 5, storage.NotFound: 4, storage.Timeout: 3, storage.Short: 2,
			storage.Refused: 1, storage.Denied: 2, storage.Other: 1}
		sum, err := content.Sum("adler32", content.Seed(1, FileName(0)), 0, 1000)
		require.NoError(t, err)
		c, counts, wrong := s.Client(), map[storage.Class]int{}, 0
		for range n {
			res, h, _, err := read(t.Context(), c, storage.Op{Sum: "adler32", Timeout: time.Second})
			class := storage.Classify(err)
			counts[class]++
			switch {
			case class == storage.None && res.Sum != sum:
				wrong++
			case class == storage.Short && h.moved != 500:
				t.Fatalf("a short read moved %d bytes", h.moved)
			}
		}
		good := float64(n)
		for class, percent := range want {
			expected := n * percent / 100
			good -= expected
			if math.Abs(float64(counts[class])-expected) > 4*math.Sqrt(expected) {
				t.Errorf("%d failures of class %s, want about %.0f", counts[class], class, expected)
			}
		}
		if math.Abs(float64(wrong)-n*0.2) > 4*math.Sqrt(n*0.2) || math.Abs(float64(counts[storage.None])-good) > 4*math.Sqrt(n*0.28) {
			t.Errorf("%d wrong checksums among %d good reads, want about %.0f among %.0f", wrong, counts[storage.None], n*0.2, good)
		}
	})
}

func TestSameSeedSameTimes(t *testing.T) {
	times := func(query string) (all []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, "simulated://x?service=10ms&files=1x1B&"+query).Client()
			for range 100 {
				_, _, took, err := read(t.Context(), c, storage.Op{})
				require.NoError(t, err)
				all = append(all, took)
			}
		})
		return all
	}
	a, b, other := times("seed=5"), times("seed=5"), times("seed=6")
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Error("equal seeds give different times")
	}
	if fmt.Sprint(a) == fmt.Sprint(other) {
		t.Error("different seeds give equal times")
	}
}

func TestServicesOfOneURLShareFiles(t *testing.T) {
	d := Driver()
	at := target(t, "simulated://x?service=0&files=0x0")
	for i, op := range []storage.Op{{Kind: storage.Write, Path: "f", Size: 5}, {Kind: storage.Stat, Path: "f"}} {
		s, err := d.Open(t.Context(), at)
		require.NoError(t, err)
		if _, err := s.Client().Do(t.Context(), &op, &heard{}); err != nil {
			t.Errorf("operation %d: %v", i, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s, err := Driver().Open(t.Context(), at)
	require.NoError(t, err)
	if _, err := s.Client().Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "f"}, &heard{}); err == nil {
		t.Error("another driver knows the file")
	}
}

func TestParse(t *testing.T) {
	got, err := Parse(target(t,
		"simulated://n?servers=7&service=1.5s&dist=constant&bandwidth=80Mbit/s&connect=2ms&error=0.1%&seed=9&files=3x2kB").URL)
	want := Config{Servers: 7, Service: 1500 * time.Millisecond, Constant: true, Bandwidth: 10e6, Connect: 2 * time.Millisecond, Seed: 9,
		Files: 3, Size: 2000}
	want.Errors[storage.Busy], want.fixed = 0.001, true
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	got, err = Parse(target(t, "simulated://n?service=20ms&sigma=2%&kappa=0.0001&collapse=500x20%&noise=3%").URL)
	want = Config{Servers: 4, Service: 20 * time.Millisecond, Sigma: 0.02, Kappa: 0.0001, Collapse: 500, Left: 0.2, Noise: 0.03, Seed: 1,
		Files: 100, Size: 1 << 20}
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for query, say := range map[string]string{
		"sigma=0.1&servers=4": "leave it out", "sigma=0.1&dist=constant": "exponential", "collapse=5x10%&dist=constant": "exponential",
		"kappa=1%&service=0": "must take time",
		"sigma=2":            "from 0 to 1", "kappa=-1": "from 0 to 1", "noise=60%": "from 0 to 0.5", "sigma=NaN": "from 0 to 1",
		"sigma=x":    "such as 0.02",
		"collapse=5": "500x20%", "collapse=0x5%": "from 1 to", "collapse=5x0%": "more than 0%", "collapse=5x200%": "from 0 to 1",
		"sevrers=1": "use bandwidth, collapse, connect", "servers=0": "from 1 to", "servers=x": "whole number",
		"dist=normal": "constant or exponential",
		"service=10":  "10", "service=-1s": "-1s", "files=7": "1000x1MiB", "files=9999999x1B": "from 1 to", "bandwidth=1": "bandwidth",
		"error=110%": "100%", "error.lost=1%": "unknown error class", "error.none=1%": "no operation", "error.canceled=1%": "no operation",
		"error=60%&error.reset=60%": "add up", "seed=1&seed=2": "2 times", "seed=-1": "seed", "files=1x-5B": "files",
	} {
		_, err := Parse(target(t, "simulated://n?"+query).URL)
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("Parse(%s) = %v, want an error with %q", query, err, say)
		}
	}
	for _, text := range []string{"simulated:x", "simulated://n/folder", "simulated://u@n", "http://n"} {
		if _, err := Parse(target(t, text).URL); err == nil {
			t.Errorf("Parse(%s) takes it", text)
		}
	}
	if _, err := Parse(nil); err == nil {
		t.Error("Parse(nil) takes it")
	}
}

func FuzzParse(f *testing.F) {
	for _, query := range []string{"servers=4&service=10ms", "error=0.1%&files=1000x1MiB", "bandwidth=1Gbit/s&error.not-found=%31%25",
		"dist=constant&%=%", "sigma=2%&kappa=1e-4&collapse=500x20%&noise=3%"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		u := &url.URL{Scheme: "simulated", Host: "n", RawQuery: query}
		c, err := Parse(u)
		if err != nil {
			return
		}
		if c.Servers < 1 || c.Service < 0 || c.Connect < 0 || c.Files < 0 || c.Size < 0 || !(c.Bandwidth >= 0) || math.IsInf(c.Bandwidth, 0) {
			t.Errorf("%q is taken as %+v", query, c)
		}
		if !(c.Sigma >= 0 && c.Sigma <= 1 && c.Kappa >= 0 && c.Kappa <= 1 && c.Left >= 0 && c.Left <= 1 && c.Noise >= 0 && c.Noise <= 0.5) ||
			c.Collapse < 0 {
			t.Errorf("%q is taken as %+v", query, c)
		}
		for class, share := range c.Errors {
			if !(share >= 0 && share <= 1) {
				t.Errorf("%q: share of class %d is %v", query, class, share)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	c := open(b, "simulated://x?service=0&files=1x1kB").Client()
	op := storage.Op{Kind: storage.Read, Path: FileName(0), Size: -1}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Do(b.Context(), &op, discard{}); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (discard) Reached(storage.Phase) {}
func (discard) Moved(int)             {}
func (discard) ServedBy(string)       {}
