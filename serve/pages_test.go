package serve

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/burn"
	"weir/internal/tier"
	"weir/serve/servetest/requests"
)

// pagesServed returns the number of pages that a server has served.
func pagesServed(s *Server) int64 { return s.pages.served.Load() }

// Each page that is read counts as one page, at any position; pages that are not read cost nothing.
func TestPagesAreCounted(t *testing.T) {
	dir := t.TempDir()
	requests.Write(t, requests.Content(1, 20_000), dir, "f")
	for _, size := range []int64{8 << 10, 0} {
		s := start(t, Config{Dir: dir, PageCPU: time.Microsecond, Page: size})
		for _, c := range []struct {
			method, ranges string
			pages          int64 // with pages of 8 KiB; of one page per request it is 1, if any
			code           int
		}{
			{"GET", "bytes=0-8191", 1, 206},
			{"GET", "bytes=100-8291", 1, 206}, // as long as a page
			{"GET", "bytes=0-8192", 2, 206},
			{"GET", "bytes=0-9,5000-5009,9000-9009", 3, 206}, // each part is a page
			{"GET", "", 3, 200},
			{"HEAD", "", 0, 200},
			{"GET", "bytes=30000-", 0, 416},
			{"PROPFIND", "", 0, 207},
		} {
			before, want := pagesServed(s), c.pages
			if size == 0 {
				want = min(want, 1)
			}
			header := map[string]string{"Depth": "0"}
			if c.ranges != "" {
				header["Range"] = c.ranges
			}
			check(t, s, exchange{Method: c.method, Path: "/f", Header: header, Code: c.code})
			if got := pagesServed(s) - before; got != want {
				t.Errorf("page %d: %s %s: %d pages, want %d", size, c.method, c.ranges, got, want)
			}
		}
		if got, body := do(t, s, exchange{Method: "GET", Path: "/f"}); got.StatusCode != 200 || body != requests.Content(1, 20_000) {
			t.Errorf("page %d: %d, %d bytes that are not the file", size, got.StatusCode, len(body))
		}
		_, text := do(t, s, exchange{Method: "GET", Path: "/metrics"})
		if line := fmt.Sprintf("weir_serve_pages_total %d\n", pagesServed(s)); !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

func TestPagesAreChecked(t *testing.T) {
	for name, c := range map[string]Config{
		"negative":         {PageCPU: -1},
		"more than it is":  {PageCPU: time.Hour},
		"threads for what": {Threads: 2},
		"size for what":    {Page: 8 << 10},
		"many threads":     {PageCPU: 1, Threads: 1e6},
	} {
		c.Dir = t.TempDir()
		if s, err := New(c); err == nil {
			t.Errorf("%s: accepted", name)
			_ = s.Close()
		}
	}
}

// busyTime returns the number of cores that the given number of threads gets if they only compute
// for d.
func busyTime(threads int, d time.Duration) float64 {
	var used [8]time.Duration
	var all sync.WaitGroup
	begin := time.Now()
	for i := range threads {
		all.Go(func() {
			var b burn.Burner
			for time.Since(begin) < d {
				used[i] += b.For(time.Millisecond)
			}
		})
	}
	all.Wait()
	sum := time.Duration(0)
	for _, u := range used {
		sum += u
	}
	return sum.Seconds() / time.Since(begin).Seconds()
}

// With one thread, the throughput corresponds to its CPU time: pages x cost = time. With two
// threads it is twice as much. The CPU time that other programs leave is measured before and after.
func TestPagesCostCPUTime(t *testing.T) {
	tier.Slow(t, "it computes for seconds")
	const cost, span, page = 2 * time.Millisecond, time.Second, 8 << 10
	for _, threads := range []int{1, 2} {
		s := start(t, Config{Synthetic: []Set{{Count: 1, Size: 100 * page}}, PageCPU: cost, Page: page, Threads: threads})
		var cores, free float64
		for try := range 5 {
			free = busyTime(threads, span/5)
			before, begin := pagesServed(s), time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), span)
			var clients sync.WaitGroup
			for range 4 * threads {
				clients.Go(func() {
					for readPage(ctx, s.URL()+"/file000000.dat", page) == nil {
					}
				})
			}
			clients.Wait()
			cancel()
			cores = float64(pagesServed(s)-before) * cost.Seconds() / time.Since(begin).Seconds()
			free = min(free, busyTime(threads, span/5))
			t.Logf("%d threads, try %d: pages x cost = %.3f of the time; %.2f cores were free", threads, try, cores, free)
			if cores > float64(threads) {
				t.Fatalf("%d threads served more pages than their CPU time allows: %.3f", threads, cores)
			}
			if cores > 0.85*free {
				break
			}
		}
		if cores <= 0.7*free {
			t.Errorf("%d threads served pages for %.2f cores, where %.2f were free", threads, cores, free)
		}
	}
}

func readPage(ctx context.Context, url string, size int) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Range", fmt.Sprintf("bytes=0-%d", size-1))
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if n, err := io.Copy(io.Discard, a.Body); err != nil || n != int64(size) {
		return fmt.Errorf("%d bytes: %w", n, err)
	}
	return nil
}

// A server whose clients wait for pages ends without them.
func TestWaitingPagesEnd(t *testing.T) {
	tier.Slow(t, "waits for pages")
	dir := t.TempDir()
	requests.Write(t, requests.Content(1, 100), dir, "f")
	s := start(t, Config{Dir: dir, PageCPU: 2 * time.Second, Grace: time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	for range 20 { // they would take 40 s
		all.Go(func() {
			if err := readPage(ctx, s.URL()+"/f", 100); err == nil {
				t.Error("a page was served in less time than it costs")
			}
		})
	}
	all.Wait()
	begin := time.Now()
	for s.pages.waiting.Load() > 0 {
		if time.Since(begin) > 30*time.Second {
			t.Fatal("requests of clients that are gone wait on")
		}
		pause(10*time.Millisecond, nil)
	}
	if n := pagesServed(s); n > 2 {
		t.Errorf("%d pages were served to clients that are gone", n)
	}
}
