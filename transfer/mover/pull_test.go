package mover

import (
	"path/filepath"
	"testing"

	"weir/transfer"
)

func TestPull(t *testing.T) {
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
