package xrootd

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"weir/lab"
	"weir/storage"
)

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
	for range c.start {
		if _, err := client.Do(ctx, op, silent{}); err != nil {
			c.fail(err)
		}
		c.done.Done()
	}
	if err := client.Close(); err != nil {
		c.fail(err)
	}
}

// TestCrowd has a thousand clients with a session each read 64 KiB, and looks
// at what they hold while they sleep. Another size is asked for by WEIR_CROWD.
func TestCrowd(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("the race detector has shadow memory")
	}
	for _, scheme := range []string{"root", "roots"} {
		t.Run(scheme, func(t *testing.T) { testCrowd(t, scheme) })
	}
}

func testCrowd(t *testing.T, scheme string) {
	n := 1000
	if more, err := strconv.Atoi(os.Getenv("WEIR_CROWD")); err == nil {
		n = more
	}
	xr := lab.StartXRootD(t, lab.XRootDConfig{Config: lab.Config{TLS: scheme == "roots"}})
	if err := xr.WriteFile("f", made(64<<10)); err != nil {
		t.Fatal(err)
	}
	url, cred := xr.URL, storage.Credentials{}
	if scheme == "roots" {
		url, cred = xr.URLs[scheme], credentials(t, storage.Auth{CAFile: xr.CAFile})
	}
	s := serviceAt(t, url, cred)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &crowd{start: make(chan struct{})}
	op := &storage.Op{Kind: storage.Read, Path: "f", Size: 64 << 10, Timeout: time.Minute}
	debug.FreeOSMemory() // what other tests have left must not be given to the clients
	before := resident(t)
	var end sync.WaitGroup
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
		t.Logf("round %d: %d bytes resident for each client", round, (resident(t)-before)/int64(n))
	}
	debug.FreeOSMemory() // how much garbage lies about is a matter of the moment's collector
	each := (resident(t) - before) / int64(n)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("for each client: stacks %d, heap %d in use, %d live and garbage", m.StackInuse/uint64(n), m.HeapInuse/uint64(n),
		m.HeapAlloc/uint64(n))
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("after a collection: stacks %d, heap %d in use, %d live", m.StackInuse/uint64(n), m.HeapInuse/uint64(n), m.HeapAlloc/uint64(n))
	close(c.start)
	end.Wait()
	if c.err != nil {
		t.Fatal(c.err)
	}
	t.Logf("%d bytes resident for each of %d clients that sleep", each, n)
	if each > 16<<10 { // the aim is 8 KiB for 19,000 of them
		t.Errorf("%d clients hold %d bytes each, want at most 16384", n, each)
	}
}
