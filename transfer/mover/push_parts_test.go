package mover

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/serve"
	"weir/transfer"
	"weir/transfer/endpoint"
)

// keeping configures an endpoint that keeps parts.
func keeping(c *serve.Config) {
	c.Extensions, c.Sync = []serve.Extension{&endpoint.Parts{Busy: func(int64) bool { return false }}}, true
}

// partSize returns the size of an attempt's part at an endpoint, -1 if it does not exist.
func partSize(to *site, l transfer.Lease) int64 {
	info, err := os.Stat(filepath.Join(to.dir, partName(l.Item, l.Epoch)))
	if err != nil {
		return -1
	}
	return info.Size()
}

// A broken push is resumed by a later epoch, also by another mover; damaged bytes of the part are
// sent again, and nothing else.
func TestPushGoesOn(t *testing.T) {
	const size = 24<<20 + 5
	for what, spoil := range map[string]func(part string) error{
		"nothing":            func(string) error { return nil },
		"a byte of the part": func(part string) error { return flip(part, 5) },
		"the part's end":     func(part string) error { return cut(part, 1) },
		"more than the file": func(part string) error { return os.Truncate(part, size+1) },
		"the part":           os.Remove,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			slowly := newSite(t, func(c *serve.Config) { keeping(c); slow(c) })
			m := newMover(t, Options{})
			sum := file(t, m.opt.Root, "f", 1, size)
			l := pushLease(slowly.url, "f", sum, size)
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan transfer.Outcome, 1)
			go func() { done <- m.Do(ctx, l, nil) }()
			require.Eventually(t, "some has arrived", func() bool { return partSize(slowly, l) > 8<<20 })
			cancel(errors.New("the agent ends"))
			failed(t, <-done, transfer.Transient)
			require.NoError(t, spoil(filepath.Join(slowly.dir, partName(l.Item, l.Epoch))))
			fast := newSite(t, func(c *serve.Config) { keeping(c); c.Dir = slowly.dir })
			other := newMover(t, Options{})
			file(t, other.opt.Root, "f", 1, size)
			again := pushLease(fast.url, "f", sum, size)
			again.Epoch = 3
			out := do(t, other, again)
			if out.Fault != "" || !out.Verified || out.Adler != sum || out.Moved+out.Resumed != size {
				t.Fatalf("%+v", out)
			}
			if what != "the part" && out.Resumed < 7<<20 {
				t.Errorf("only %d bytes were used again", out.Resumed)
			}
			if hashed(t, filepath.Join(fast.dir, "f")) != hashed(t, filepath.Join(other.opt.Root, "f")) {
				t.Error("the copy differs")
			}
			if left, _ := filepath.Glob(filepath.Join(fast.dir, Hidden, "*.part")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// between returns a proxy of an endpoint. each may change the bytes sent to the endpoint or close
// the connection, and back may change the bytes that the endpoint sends.
func between(t *testing.T, to *site, each func(n int, p []byte) (flow bool), back func(p []byte)) *site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	var conns atomic.Int64
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { _ = l.Close(); stop(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				defer context.AfterFunc(ctx, func() { c.Close() })()
				d, err := net.Dial("tcp", to.url[len("http://"):])
				if err != nil {
					return
				}
				defer d.Close()
				all.Go(func() {
					_, _ = io.Copy(struct{ io.Writer }{c}, eyes{d, back})
					_ = c.Close()
				})
				n := int(conns.Add(1))
				buf := make([]byte, 64<<10)
				for {
					k, err := c.Read(buf)
					if k > 0 && !each(n, buf[:k]) {
						return
					}
					if k > 0 {
						if _, err := d.Write(buf[:k]); err != nil {
							return
						}
					}
					if err != nil {
						return
					}
				}
			})
		}
	})
	return &site{dir: to.dir, url: "http://" + l.Addr().String()}
}

// eyes passes the bytes that are read to a function.
type eyes struct {
	from io.Reader
	see  func(p []byte)
}

// Read implements io.Reader.
func (e eyes) Read(p []byte) (int, error) {
	n, err := e.from.Read(p)
	if e.see != nil {
		e.see(p[:n])
	}
	return n, err
}

// A connection that breaks again and again only costs the data that were in flight; data damaged on
// the way are sent again.
func TestPushOverBadLinks(t *testing.T) {
	tier.Slow(t, "waits for broken connections")
	const size = 16 << 20
	m := newMover(t, Options{})
	sum := file(t, m.opt.Root, "f", 1, size)
	t.Run("breaks", func(t *testing.T) {
		door := newSite(t, keeping)
		var on [100]int
		to := between(t, door, func(n int, p []byte) bool { on[n%len(on)] += len(p); return on[n%len(on)] < 5<<20 }, nil)
		out := do(t, m, pushLease(to.url, "f", sum, size))
		if out.Fault != "" || !out.Verified || out.Moved > 2*size {
			t.Errorf("%+v", out)
		}
	})
	t.Run("spoils", func(t *testing.T) {
		door := newSite(t, keeping)
		var seen, spoiled atomic.Int64
		to := between(t, door, func(_ int, p []byte) bool {
			if seen.Add(int64(len(p))) > 9<<20 && spoiled.Add(1) == 1 {
				p[len(p)/2] ^= 1
			}
			return true
		}, nil)
		out := do(t, m, pushLease(to.url, "f", sum, size))
		if out.Fault != "" || !out.Verified || out.Moved > size+2<<20 {
			t.Errorf("%+v", out)
		}
	})
}

// A part that cannot be resumed is removed, and a server that keeps no parts receives the whole
// file.
func TestPushKeepsNoPartInVain(t *testing.T) {
	const size = 5 << 20
	m := newMover(t, Options{})
	sum := file(t, m.opt.Root, "f", 1, size)
	for _, door := range []*site{newSite(t, keeping), newSite(t, nil)} {
		l := pushLease(door.url, "f", "00000001", size)
		failed(t, do(t, m, l), transfer.SourceBad)
		l.Adler = sum
		if out := do(t, m, l); out.Fault != "" || !out.Verified || out.Moved > size {
			t.Errorf("%+v", out)
		}
	}
	rude := raw(t, func(c net.Conn, _ string) { c.Close() })
	if asked(t, m, pushLease(rude, "f", sum, size)) {
		t.Error("who hangs up keeps parts")
	}
	for _, class := range []string{"1, weir-parts", "1,2,weir-parts"} {
		u := source(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("DAV", class) })
		if !asked(t, m, pushLease(u, "f", sum, size)) {
			t.Errorf("%q is not understood", class)
		}
	}
}

// asked reports whether a destination keeps parts.
func asked(t *testing.T, m *Mover, l transfer.Lease) bool {
	t.Helper()
	u, err := address(l.Dest)
	require.NoError(t, err)
	return (&push{m: m, l: l, to: u, temp: u}).keepsParts(t.Context())
}

// A file of any size has so few chunks that they cost nothing, and so many that a damaged byte
// costs little; the chunk size of the lease takes precedence.
func TestChunks(t *testing.T) {
	const mib = 1 << 20
	for size, want := range map[int64]int64{0: mib, 1: mib, 15 * mib: mib, 20 * mib: 2 * mib, 64 * mib: 5 * mib, 1 << 30: 64 * mib,
		1 << 40: 64 * mib} {
		if got := chunkSize(transfer.Lease{Size: size}); got != want {
			t.Errorf("a file of %d bytes has chunks of %d, not %d", size, got, want)
		}
	}
	if got := chunkSize(transfer.Lease{Size: 1 << 30, Chunk: 3 * mib}); got != 3*mib {
		t.Errorf("told 3 MiB, it is %d", got)
	}
	from := newSite(t, nil)
	sum := file(t, from.dir, "f", 1, 20*mib)
	var seen, spoiled atomic.Int64
	to := between(t, from, func(int, []byte) bool { return true }, func(p []byte) {
		if seen.Add(int64(len(p))) > 9*mib && spoiled.Add(1) == 1 {
			p[len(p)/2] ^= 1
		}
	})
	m := newMover(t, Options{})
	out := do(t, m, pullLease(to.url, "f", sum, 20*mib))
	if out.Fault != "" || !out.Verified || spoiled.Load() == 0 || out.Moved > 22*mib {
		t.Errorf("%+v", out)
	}
}
