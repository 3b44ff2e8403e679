package inflate

import (
	"bytes"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

func packed(t testing.TB, b []byte, level int) []byte {
	t.Helper()
	var z bytes.Buffer
	w, err := zlib.NewWriterLevel(&z, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

const room = 1 << 16

// contents are what is packed in tests: of all kinds of blocks, with codes of
// all lengths.
func contents() [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	noise, skewed := make([]byte, 5000), make([]byte, 30_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	for i := range skewed {
		skewed[i] = byte(r.ExpFloat64() * 6) // rare ones get codes of more than seven bits
	}
	return [][]byte{nil, {0}, []byte("a"), []byte(strings.Repeat("ab", 300)), noise, noise[:90], skewed, skewed[:150],
		bytes.Repeat(noise[:600], 20), make([]byte, 40_000)}
}

func TestStreamsAreUnpacked(t *testing.T) {
	var f Inflater
	for _, level := range []int{zlib.NoCompression, zlib.BestSpeed, zlib.BestCompression, zlib.HuffmanOnly} {
		for i, want := range contents() {
			got, err := f.Zlib([]byte("before "), append(packed(t, want, level), "after"...), room)
			if err != nil || string(got) != "before "+string(want) {
				t.Errorf("level %d, content %d: %d bytes, %v; want %d", level, i, len(got), err, len(want))
			}
			if len(want) > 0 {
				if _, err := f.Zlib(nil, packed(t, want, level), len(want)-1); err == nil {
					t.Errorf("level %d, content %d: more bytes than asked for", level, i)
				}
			}
		}
	}
}

func TestDamageIsSeen(t *testing.T) {
	var f Inflater
	for _, want := range contents()[1:] {
		z := packed(t, want, zlib.BestCompression)
		for i := 0; i < len(z); i += 1 + len(z)/500 {
			if _, err := f.Zlib(nil, z[:i], room); err == nil {
				t.Errorf("%d of %d bytes are a stream", i, len(z))
			}
			bad := bytes.Clone(z)
			bad[i] ^= 0x10
			agree(t, &f, bad)
		}
	}
}

// agree fails if b is unpacked here and refused by compress/zlib, or differs.
func agree(t *testing.T, f *Inflater, b []byte) {
	t.Helper()
	got, err := f.Zlib(nil, b, room)
	if err != nil {
		return
	}
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("compress/zlib: %v", err)
	}
	if want, err := io.ReadAll(z); err != nil || !bytes.Equal(want, got) {
		t.Fatalf("compress/zlib gives %d bytes, %v; here are %d", len(want), err, len(got))
	}
}

func FuzzInflate(f *testing.F) {
	for _, b := range contents() {
		b = b[:min(len(b), 300)]
		for _, level := range []int{zlib.NoCompression, zlib.BestCompression, zlib.HuffmanOnly} {
			f.Add(packed(f, b, level))
		}
	}
	var x Inflater
	f.Fuzz(func(t *testing.T, b []byte) { agree(t, &x, b) })
}

func BenchmarkZlib(b *testing.B) {
	z := packed(b, contents()[7], zlib.BestCompression)
	b.Run("here", func(b *testing.B) {
		var f Inflater
		var out []byte
		b.ReportAllocs()
		for b.Loop() {
			var err error
			if out, err = f.Zlib(out[:0], z, room); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("compress_zlib", func(b *testing.B) {
		src := bytes.NewReader(z)
		r, err := zlib.NewReader(src)
		if err != nil {
			b.Fatal(err)
		}
		out := make([]byte, room)
		b.ReportAllocs()
		for b.Loop() {
			src.Reset(z)
			if err := r.(zlib.Resetter).Reset(src, nil); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(r, out); err != io.ErrUnexpectedEOF {
				b.Fatal(err)
			}
		}
	})
}
