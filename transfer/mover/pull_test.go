package mover

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/tier"
	"weir/internal/trust"
	"weir/serve"
	"weir/transfer"
)

func TestPull(t *testing.T) {
	t.Parallel()
	from := newSite(t, nil)
	m := newMover(t, Options{})
	for i, size := range []int64{0, 1, 4095, 64 << 10, 3<<20 + 17, 150<<20 + 3} {
		name := "store/run1/f"
		l := pullLease(from.url, name, "", size)
		sum := file(t, from.dir, name, uint64(i), size)
		l.Dest.Path = filepath.Join("other", name, string(rune('a'+i)))
		l.Streams = i % 3
		if i%2 == 0 {
			l.Adler = sum
		}
		out := do(t, m, l)
		arrived(t, m, filepath.Join(from.dir, name), l, out)
		if out.Adler != sum || out.Moved != size || out.Existed {
			t.Errorf("%+v", out)
		}
		if out = do(t, m, l); out.Fault != "" || !out.Existed || !out.Verified || out.Moved != 0 || out.Adler != sum {
			t.Errorf("a second time: %+v", out)
		}
	}
	l := pullLease(from.url, "nothing", "", 5)
	failed(t, do(t, m, l), transfer.SourceBad)
}

// Buffers of any valid size copy the whole file, with and without TLS; other sizes are refused.
func TestBuffers(t *testing.T) {
	tier.Slow(t, "moves hundreds of MB")
	for _, size := range []int{MinBuffer - 1, MaxBuffer + 1, -1} {
		if m, err := New(Options{Root: t.TempDir(), Buffer: size}); err == nil {
			t.Errorf("a buffer of %d bytes is accepted", size)
			_ = m.Close()
		}
	}
	tested := httptest.NewTLSServer(nil) // for its certificate
	defer tested.Close()
	cert, pin := tested.TLS.Certificates[0], trust.Fingerprint(tested.Certificate().Raw)
	for _, tls := range []bool{false, true} {
		from := newSite(t, func(c *serve.Config) {
			if tls {
				c.Certificate = &cert
			}
		})
		for i, buffer := range []int{MinBuffer, 300_001, MaxBuffer} {
			m := newMover(t, Options{Buffer: buffer})
			const size = 70<<20 + 17 // larger than the largest buffer
			name := fmt.Sprintf("f%d", i)
			sum := file(t, from.dir, name, uint64(i), size)
			l := pullLease(from.url, name, sum, size)
			if tls {
				l.Source.Pin = pin
			}
			out := do(t, m, l)
			arrived(t, m, filepath.Join(from.dir, name), l, out)
			if out.Moved != size {
				t.Errorf("buffer %d, TLS %v: %+v", buffer, tls, out)
			}
		}
	}
}

// TestCheck: a site that should have a file reads it, and sends no request.
func TestCheck(t *testing.T) {
	m := newMover(t, Options{})
	sum := file(t, m.opt.Root, "store/f", 3, 100_000)
	l := transfer.Lease{Item: 7, Epoch: 1, Mode: transfer.Check, Name: "/store/f", Size: 100_000, Adler: sum,
		Source: transfer.End{Site: "B", Path: "store/f"}, Dest: transfer.End{Site: "B", Path: "store/f"}}
	if out := do(t, m, l); out.Fault != "" || !out.Existed || !out.Verified || out.Size != l.Size || out.Adler != sum || out.Moved != 0 {
		t.Errorf("%+v", out)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(m.opt.Root, "store/huge"), nil, 0o600),
		os.Truncate(filepath.Join(m.opt.Root, "store/huge"), 1<<42)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*transfer.Lease){
		"too long":  func(l *transfer.Lease) { l.Source.Path = "store/huge" }, // to read its 4 TiB of nothing would take an hour
		"not there": func(l *transfer.Lease) { l.Source.Path = "store/g" },
		"a folder":  func(l *transfer.Lease) { l.Source.Path = "store" },
		"shorter":   func(l *transfer.Lease) { l.Size++ },
		"spoiled":   func(l *transfer.Lease) { l.Adler = "00000001" },
	} {
		bad := l
		change(&bad)
		if out := do(t, m, bad); out.Fault != transfer.SourceBad || out.Reason == "" || out.Verified {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// TestUnread: a file that was not read back is copied, but not reported as verified.
func TestUnread(t *testing.T) {
	const size = 20 << 20
	from, m := newSite(t, nil), newMover(t, Options{Unread: true})
	l := pullLease(from.url, "f", file(t, from.dir, "f", 1, size), size)
	if out := do(t, m, l); out.Fault != "" || out.Verified || out.Adler != "" || out.Size != size {
		t.Errorf("%+v", out)
	}
	if got := hashed(t, filepath.Join(m.opt.Root, "f")); got != hashed(t, filepath.Join(from.dir, "f")) {
		t.Error("another file has come")
	}
}
