package ftp

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/storage"
)

// resident returns this process's resident memory without pages of files.
func resident(t testing.TB) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	_, rest, ok := strings.Cut(string(b), "RssAnon:")
	word := strings.Fields(rest)
	if !ok || len(word) == 0 {
		t.Skip("no RssAnon in /proc/self/status")
	}
	kb, err := strconv.ParseInt(word[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// TestCrowd has 2000 clients log in and read 64 KiB each, again and again, and
// looks at what they hold while they sleep. Their server is a process of its own
// (GridFTP servers have a process for each connection, too many for a test).
func TestCrowd(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("the race detector has shadow memory")
	}
	const n = 2000
	s := serviceAt(t, "ftp://"+startSink(t), storage.Credentials{})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	start := make(chan struct{})
	var done, end sync.WaitGroup
	var mu sync.Mutex
	var failed error
	op := &storage.Op{Kind: storage.Read, Path: "65536", Size: 64 << 10, Timeout: time.Minute}
	debug.FreeOSMemory() // what other tests have left must not be given to the clients
	before := resident(t)
	for range n {
		c := s.Client()
		end.Go(func() {
			var p silent
			for range start {
				if _, err := c.Do(ctx, op, &p); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
				done.Done()
			}
			_ = c.Close() // its server may be gone first
		})
	}
	for range 3 {
		done.Add(n)
		for range n {
			start <- struct{}{}
		}
		done.Wait()
	}
	debug.FreeOSMemory() // how much garbage lies about is a matter of the moment's collector
	each := (resident(t) - before) / n
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("for each client: stacks %d, heap %d in use", m.StackInuse/n, m.HeapInuse/n)
	close(start)
	end.Wait()
	if failed != nil {
		t.Fatal(failed)
	}
	t.Logf("%d bytes for each client", each)
	if each > 10<<10 {
		t.Errorf("%d clients hold %d bytes each, want at most 10240", n, each)
	}
}
