package webdav

import (
	"context"
	"crypto/tls"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/lab"
	"weir/storage"
	"weir/storage/storagetest"
)

// resident returns this process's resident memory without pages of files.
func resident(t testing.TB) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Skip("no RssAnon in /proc/self/status")
	return 0
}

// A crowd is many clients, each in a goroutine of its own, that do one
// operation whenever they are told.
type crowd struct {
	start chan struct{} // one token for each operation
	done  sync.WaitGroup
	mu    sync.Mutex
	err   error
}

func (c *crowd) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// live is one client's goroutine: it is what an engine would have.
func (c *crowd) live(ctx context.Context, client storage.Client, op *storage.Op, end *sync.WaitGroup) {
	defer end.Done()
	var q quiet
	for range c.start {
		if _, err := client.Do(ctx, op, &q); err != nil {
			c.fail(err)
		}
		c.done.Done()
	}
	if err := client.Close(); err != nil {
		c.fail(err)
	}
}

func crowdSize(t testing.TB) int {
	if n, err := strconv.Atoi(os.Getenv("WEIR_CROWD")); err == nil {
		return n
	}
	return 2000
}

// TestCrowd has thousands of clients read 64 KiB each, and looks at what they
// hold while they sleep. The full size is asked for by WEIR_CROWD=19000.
func TestCrowd(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("the race detector has shadow memory")
	}
	plain := lab.StartNginx(t, lab.NginxConfig{Workers: 3, Connections: 9900})
	place(t, plain.Data, "f", 1, 64<<10)
	t.Run("http", func(t *testing.T) { testCrowd(t, targetOf(t, plain.URL, storage.Credentials{}), 8<<10) })
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		secure := lab.StartNginx(t, lab.NginxConfig{Config: lab.Config{TLS: true}, Workers: 3, Connections: 9900,
			Extra: "ssl_protocols TLSv1.2 TLSv1.3;"})
		place(t, secure.Data, "f", 1, 64<<10)
		conf := trust(t, secure.CAFile)
		conf.MinVersion, conf.MaxVersion = version, version
		for _, mode := range []storage.Resumption{storage.ResumeNone, storage.ResumeOwn} {
			t.Run(tls.VersionName(version)+", "+string(mode), func(t *testing.T) {
				target := targetOf(t, secure.URLs["https"], storage.Credentials{TLS: conf})
				target.Resume = mode
				testCrowd(t, target, 16<<10)
			})
		}
	}
}

// testCrowd fails if a sleeping client holds more than so many bytes.
func testCrowd(t *testing.T, target storage.Target, most int64) {
	n := crowdSize(t)
	s := storagetest.Open(t, Driver(), target)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &crowd{start: make(chan struct{})}
	op := &storage.Op{Kind: storage.Read, Path: "f", Size: 64 << 10, Timeout: time.Minute}
	debug.FreeOSMemory() // what other tests have left must not be given to the clients
	before := resident(t)
	var end sync.WaitGroup
	begin := time.Now()
	for range n {
		end.Add(1)
		go c.live(ctx, s.Client(), op, &end)
	}
	for round := range 3 {
		c.done.Add(n)
		for range n {
			c.start <- struct{}{}
		}
		c.done.Wait()
		t.Logf("round %d: %v after the start, %d bytes resident for each client", round, time.Since(begin).Round(time.Millisecond),
			(resident(t)-before)/int64(n))
	}
	debug.FreeOSMemory() // how much garbage lies about is a matter of the moment's collector
	each := (resident(t) - before) / int64(n)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("for each client: stacks %d, heap %d in use, %d live and garbage, %d idle, other %d", m.StackInuse/uint64(n), m.HeapInuse/uint64(n),
		m.HeapAlloc/uint64(n), (m.HeapIdle-m.HeapReleased)/uint64(n), (m.GCSys+m.OtherSys+m.MSpanSys+m.BuckHashSys)/uint64(n))
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("after a collection: stacks %d, heap %d in use, %d live", m.StackInuse/uint64(n), m.HeapInuse/uint64(n), m.HeapAlloc/uint64(n))
	close(c.start)
	end.Wait()
	if c.err != nil {
		t.Fatal(c.err)
	}
	t.Logf("%d bytes resident for each of %d clients that sleep", each, n)
	if each > most {
		t.Errorf("%d clients hold %d bytes each, want at most %d", n, each, most)
	}
}
