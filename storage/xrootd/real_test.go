package xrootd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
)

// killer kills a server as soon as the first bytes of a file have arrived.
type killer struct {
	events
	kill func()
	once sync.Once
}

func (k *killer) Moved(n int) {
	k.events.Moved(n)
	k.once.Do(k.kill)
}

// TestServerIsKilled kills a real server in the middle of reads and a write,
// and starts it again.
func TestServerIsKilled(t *testing.T) {
	const size = 64 << 20
	xr := labtest.Start(t, lab.XRootDConfig{})
	require.NoError(t, xr.WriteFile("big", made(size)))
	c := clientAt(t, xr.URL, storage.Credentials{})
	ops := reads(size)
	ops["write"] = storage.Op{Kind: storage.Write, Size: 8 * size, Seed: 7, Timeout: 20 * time.Second}
	ops["kept"] = storage.Op{Kind: storage.Read, Size: size, Keep: true, Chunk: 1 << 20, Timeout: 20 * time.Second}
	for name, op := range ops {
		t.Run(name, func(t *testing.T) {
			op.Path = "big"
			if op.Kind == storage.Write {
				op.Path = "new"
			}
			k := &killer{kill: xr.Kill}
			res, err := c.Do(t.Context(), &op, k)
			if class := storage.Classify(err); class != storage.Reset && class != storage.Short {
				t.Errorf("class %q, error %v", class, err)
			}
			if k.moved >= op.Size || res.Wire <= 0 || res.Reopened != 0 {
				t.Errorf("moved %d, result %+v", k.moved, res)
			}
			if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Ping, Timeout: 20 * time.Second},
				&events{}); storage.Classify(err) != storage.Refused {
				t.Errorf("while it is down: %v", err)
			}
			require.NoError(t, xr.Restart(t.Context()))
			var e events
			again := storage.Op{Kind: storage.Read, Path: "big", Size: size, Sum: "crc32c", Timeout: 20 * time.Second}
			res, err = c.Do(t.Context(), &again, &e)
			right(t, &again, res, &e, err)
		})
	}
}

// TestServerStartsAgainBetweenReads restarts a server during the lifetime of a kept session and of
// a file that stays open.
func TestServerStartsAgainBetweenReads(t *testing.T) {
	xr := labtest.Start(t, lab.XRootDConfig{})
	require.NoError(t, xr.WriteFile("x", made(fileSize)))
	c := clientAt(t, xr.URL, storage.Credentials{})
	for _, keep := range []bool{true, false} {
		op := storage.Op{Kind: storage.Read, Path: "x", Size: fileSize, Sum: "md5", Keep: keep, Timeout: 20 * time.Second}
		for range 2 {
			var e events
			res, err := c.Do(t.Context(), &op, &e)
			right(t, &op, res, &e, err)
			xr.Kill()
			require.NoError(t, xr.Restart(t.Context()))
		}
	}
}

// TestServerIsStopped stops a server's process, so that its connections remain but do nothing.
func TestServerIsStopped(t *testing.T) {
	xr := labtest.Start(t, lab.XRootDConfig{})
	require.NoError(t, xr.WriteFile("x", made(fileSize)))
	kept, fresh := clientAt(t, xr.URL, storage.Credentials{}), clientAt(t, xr.URL, storage.Credentials{})
	wellAgain(t, kept)
	require.NoError(t, xr.Signal(syscall.SIGSTOP))
	// A signal stops threads one by one: some may still answer.
	for range 50 {
		other := clientAt(t, xr.URL, storage.Credentials{})
		if _, err := other.Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "x", Timeout: 100 * time.Millisecond}, &events{}); err != nil {
			break
		}
	}
	for _, c := range []storage.Client{kept, fresh} {
		for _, op := range []storage.Op{{Kind: storage.Read, Size: -1}, {Kind: storage.Stat}, {Kind: storage.Write, Path: "y", Size: 1 << 20}} {
			if op.Path == "" {
				op.Path = "x"
			}
			op.Timeout = 100 * time.Millisecond
			_, err := c.Do(t.Context(), &op, &events{})
			if storage.Classify(err) != storage.Timeout || !strings.Contains(err.Error(), "100ms") {
				t.Errorf("%s: %v", op.Kind, err)
			}
		}
	}
	require.NoError(t, xr.Signal(syscall.SIGCONT))
	wellAgain(t, kept)
	wellAgain(t, fresh)
}

// TestOperationsAllocateNothing measures the allocations of a further operation on an existing
// session.
func TestOperationsAllocateNothing(t *testing.T) {
	xr := labtest.Start(t, lab.XRootDConfig{})
	require.NoError(t, xr.WriteFile("x", made(1<<20)))
	page := func(op storage.Op) storage.Op {
		op.Kind, op.Size, op.Keep, op.Ranges = storage.Read, -1, true, []storage.Range{{Offset: 8192, Length: 4096}}
		return op
	}
	tests := map[string]struct {
		op   storage.Op
		most float64 // the sum's text, the opened file, a generated name
	}{
		"page read, kept":           {page(storage.Op{}), 0},
		"plain read, kept":          {page(storage.Op{Plain: true}), 0},
		"page read, kept, crc32c":   {page(storage.Op{Sum: "crc32c"}), 4},
		"stat":                      {storage.Op{Kind: storage.Stat}, 0},
		"ping":                      {storage.Op{Kind: storage.Ping}, 0},
		"page read, opened, closed": {storage.Op{Kind: storage.Read, Size: -1, Ranges: []storage.Range{{Length: 4096}}}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := clientAt(t, xr.URL, storage.Credentials{})
			tt.op.Path, tt.op.Timeout = "x", time.Minute
			ctx := t.Context()
			got := testing.AllocsPerRun(300, func() {
				if _, err := c.Do(ctx, &tt.op, storage.NoProgress{}); err != nil {
					t.Error(err)
				}
			})
			if t.Log(got, "allocations"); got > tt.most && !raceEnabled {
				t.Errorf("%v allocations, want at most %v", got, tt.most)
			}
		})
	}
}

// TestRealDataServerIsLost kills the data server that a real redirector has named, in the middle of
// a read of a file that a second server has as well. The test has several attempts: cmsd identifies
// the tried servers by their IP address alone, which here is the same for both servers, so that it
// may avoid the wrong server and make the client wait for the dead server.
func TestRealDataServerIsLost(t *testing.T) {
	const size = 32 << 20
	xr := labtest.Start(t, lab.XRootDConfig{Servers: 2})
	names := map[string]string{}
	for _, s := range xr.Servers {
		if s.Role == lab.DataServer {
			names[s.Address] = s.Name
		}
	}
	for i := range 6 {
		op := storage.Op{Kind: storage.Read, Path: fmt.Sprint("big", i), Size: size, Sum: "crc32c", Timeout: 6 * time.Second}
		for _, s := range xr.Servers {
			if s.Role == lab.DataServer {
				require.NoError(t, os.WriteFile(filepath.Join(s.Data, op.Path), made(size), 0o644))
			}
		}
		killed := ""
		k := &killer{}
		k.kill = func() {
			killed = names[k.server]
			if err := xr.KillPart(killed); err != nil {
				t.Error(err)
			}
		}
		res, err := clientAt(t, xr.URL, storage.Credentials{}).Do(t.Context(), &op, k)
		t.Logf("%s was killed, served by %s in the end, opened again %d times, waited %d times, error %v", killed, names[k.server], res.Reopened,
			res.Waits, err)
		if res.Reopened < 1 {
			t.Errorf("opened again %d times", res.Reopened)
		}
		if storage.Classify(err) != storage.Busy {
			right(t, &op, res, &k.events, err)
			return
		}
		require.NoError(t, xr.RestartPart(t.Context(), killed))
	}
	t.Error("it never went on at the other server")
}

// TestListingAndFileAsTarget checks that names that a path cannot contain are left out of listings
// and counted, and that the target of a read can be a file.
func TestListingAndFileAsTarget(t *testing.T) {
	for _, servers := range []int{0, 1} { // 1: behind a redirector
		xr := labtest.Start(t, lab.XRootDConfig{Servers: servers})
		for _, name := range []string{"d/x", "d/what?now", "d/b\\c"} {
			require.NoError(t, xr.WriteFile(name, made(fileSize)))
		}
		c := clientAt(t, xr.URL, storage.Credentials{})
		res, err := c.Do(t.Context(), &storage.Op{Kind: storage.List, Path: "d", Timeout: 20 * time.Second}, &events{})
		if err != nil || len(res.Entries) != 2 || res.Omitted != 1 || !strings.Contains(fmt.Sprint(res.Omission), "question mark") {
			t.Errorf("%+v, %v", res, err)
		}
		c = clientAt(t, strings.TrimRight(xr.URL, "/")+"/d/x", storage.Credentials{})
		if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.List, Timeout: 20 * time.Second}, &events{}); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("list of a file: %v", err)
		}
		for _, kind := range []storage.Kind{storage.Stat, storage.Read} {
			res, err := c.Do(t.Context(), &storage.Op{Kind: kind, Size: -1, Timeout: 20 * time.Second}, &events{})
			if err != nil || res.Size != fileSize || res.Folder {
				t.Errorf("%s: %+v, %v", kind, res, err)
			}
		}
	}
}
