package storagetest

import (
	"context"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/storage"
)

// TargetOf returns the target of a URL. t fails if the text is not a URL.
func TargetOf(t testing.TB, text string, cred storage.Credentials) storage.Target {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return storage.Target{URL: u, Cred: cred}
}

// Crowd makes clients of s read the 64 KiB of the file at path three times, 64 at a time, and fails
// t if the sleeping clients then hold more than most bytes each in this process: as in the engine,
// a sleeping client has no goroutine. WEIR_CROWD is the number of clients, by default the usual
// number.
func Crowd(t *testing.T, s storage.Service, path string, usual int, most int64) {
	t.Helper()
	clients := make([]storage.Client, CrowdSize(usual))
	n := int64(len(clients))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	op := &storage.Op{Kind: storage.Read, Path: path, Size: 64 << 10, Timeout: time.Minute}
	debug.FreeOSMemory() // memory that other tests have released must not be given to the clients
	before, begin := Resident(t), time.Now()
	for i := range clients {
		clients[i] = s.Client()
		defer func() { _ = clients[i].Close() }() // the suite checks its errors
	}
	for round := range 3 {
		var all sync.WaitGroup
		for first := range 64 {
			all.Go(func() {
				for i := first; i < len(clients) && !t.Failed(); i += 64 {
					if _, err := clients[i].Do(ctx, op, deaf{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		if all.Wait(); t.Failed() {
			return
		}
		t.Logf("round %d: %v after the start, %d bytes resident for each client", round, time.Since(begin).Round(time.Millisecond),
			(Resident(t)-before)/n)
	}
	for range 2 { // the amount of garbage depends on the collector at that time; pools are emptied by the second collection
		debug.FreeOSMemory()
	}
	each := (Resident(t) - before) / n
	LogMemory(t, "asleep", uint64(n))
	t.Logf("%d bytes resident for each of %d clients that sleep", each, n)
	if each > most {
		t.Errorf("%d clients hold %d bytes each, want at most %d", n, each, most)
	}
}

// CrowdSize returns the number of clients for a test of their memory: WEIR_CROWD, or else the usual
// number.
func CrowdSize(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("WEIR_CROWD")); err == nil {
		return n
	}
	return usual
}

// LogMemory logs the memory of Go's runtime for each of n clients.
func LogMemory(t *testing.T, when string, n uint64) {
	t.Helper()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%s, for each client: stacks %d, heap %d in use, %d allocated, %d idle, other %d", when, m.StackInuse/n, m.HeapInuse/n,
		m.HeapAlloc/n, (m.HeapIdle-m.HeapReleased)/n, (m.GCSys+m.OtherSys+m.MSpanSys+m.BuckHashSys)/n)
}

// deaf is a storage.Progress that keeps nothing.
type deaf struct{}

func (deaf) Reached(storage.Phase) {}
func (deaf) Moved(int)             {}
func (deaf) ServedBy(string)       {}

// Resident returns this process's resident memory without pages of files, in bytes.
func Resident(t testing.TB) int64 {
	t.Helper()
	n, err := lab.StatusBytes(os.Getpid(), "RssAnon:")
	if err != nil {
		t.Skip(err)
	}
	return n
}
