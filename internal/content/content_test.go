package content

import (
	"bytes"
	"compress/flate"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
)

var update = flag.Bool("update", false, "write the golden files")

// TestSplitMix64 compares the generator with the outputs of other implementations for the start
// 1234567.
func TestSplitMix64(t *testing.T) {
	want := []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821}
	for i, w := range want {
		if got := output(1234567, uint64(i)+1); got != w {
			t.Errorf("output %d = %d, want %d", i+1, got, w)
		}
	}
	for _, z := range []uint64{0, 1, golden, math.MaxUint64, 1 << 63, 0x0123456789abcdef} {
		if got := unmix(mix(z)); got != z {
			t.Errorf("unmix(mix(%#x)) = %#x", z, got)
		}
	}
}

// TestFormat pins the bytes of files: a change here breaks every stored
// checksum and every run whose machines have different versions.
func TestFormat(t *testing.T) {
	var b strings.Builder
	for _, alg := range Algorithms() {
		for _, f := range []struct {
			seed uint64
			size int64
		}{{0, 0}, {0, 1}, {1, 64}, {1, 65}, {42, 4096}, {math.MaxUint64, 1 << 20}, {7, 2*PatternSize + 1000}} {
			sum, err := Sum(alg, f.seed, 0, f.size)
			require.NoError(t, err)
			fmt.Fprintf(&b, "%d %d %s\n", f.seed, f.size, sum)
		}
	}
	for _, name := range []string{"", "a", "/file000000.dat", "/file000001.dat"} {
		fmt.Fprintf(&b, "seed 1 %q %016x\n", name, Seed(1, name))
	}
	golden := filepath.Join("testdata", "format.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want := require.File(t, golden)
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the content of files has changed (-want +got):\n%s", diff)
	}
}

func file(seed uint64, size int) []byte {
	b := make([]byte, size)
	Fill(b, seed, 0)
	return b
}

func TestFillIsTheSameInParts(t *testing.T) {
	const size = 2*PatternSize + 12345
	whole := file(99, size)
	for _, step := range []int{1 << 20, 4093, PatternSize} {
		got := make([]byte, size)
		for off := 0; off < size; off += step {
			Fill(got[off:min(off+step, size)], 99, int64(off))
		}
		if !bytes.Equal(got, whole) {
			t.Errorf("parts of %d bytes differ from the whole", step)
		}
	}
	for off := range 130 { // around the head
		got := make([]byte, 130-off)
		Fill(got, 99, int64(off))
		if !bytes.Equal(got, whole[off:130]) {
			t.Errorf("part from %d differs", off)
		}
	}
}

func TestSeedsDiffer(t *testing.T) {
	seen := map[string]uint64{}
	bodies := map[string]bool{}
	for seed := range uint64(5000) {
		b := file(Seed(3, fmt.Sprintf("/file%06d.dat", seed)), 256)
		if other, ok := seen[string(b[:8])]; ok {
			t.Fatalf("files %d and %d begin alike", seed, other)
		}
		seen[string(b[:8])] = seed
		bodies[string(b[HeadSize:])] = true
	}
	if len(bodies) < 4950 { // windows into the pattern may, rarely, be the same
		t.Errorf("only %d of 5000 files have a body of their own", len(bodies))
	}
}

func TestNotCompressible(t *testing.T) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	require.NoError(t, err)
	if _, err := NewReader(5, PatternSize).WriteTo(w); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, w.Close())
	if out.Len() < PatternSize {
		t.Errorf("%d bytes became %d", PatternSize, out.Len())
	}
}

func TestRecognize(t *testing.T) {
	for _, seed := range []uint64{0, 1, 77, math.MaxUint64, Seed(1, "x")} {
		b := file(seed, 100)
		for n := range 101 {
			got, ok := Recognize(b[:n])
			if ok != (n >= 16) || ok && got != seed {
				t.Fatalf("seed %d, %d bytes: %d, %v", seed, n, got, ok)
			}
		}
		for i := range HeadSize {
			b[i] ^= 1
			if _, ok := Recognize(b); ok {
				t.Errorf("seed %d recognized although byte %d is wrong", seed, i)
			}
			b[i] ^= 1
		}
	}
}

func TestEqual(t *testing.T) {
	const off = PatternSize - 5000
	b := make([]byte, 10000)
	Fill(b, 8, off)
	if !Equal(b, 8, off) || !Equal(nil, 8, 3) {
		t.Error("equal content is said to differ")
	}
	if Equal(b, 8, off+1) || Equal(b, 9, off) {
		t.Error("content of another place or seed is said to be equal")
	}
	for _, i := range []int{0, 4999, 5000, 9999} {
		b[i] ^= 0x80
		if Equal(b, 8, off) {
			t.Errorf("a wrong byte %d is not seen", i)
		}
		b[i] ^= 0x80
	}
}

func TestReader(t *testing.T) {
	const size = 10000
	want := file(4, size)
	if err := iotest.TestReader(NewReader(4, size), want); err != nil {
		t.Error(err)
	}
	r := NewReader(4, size)
	if _, err := r.Seek(-300, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if n, err := r.WriteTo(&b); n != 300 || err != nil || !bytes.Equal(b.Bytes(), want[size-300:]) {
		t.Errorf("WriteTo = %d, %v, or wrong bytes", n, err)
	}
	if n, err := NewReader(4, -1).Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("a file of negative size: %d, %v", n, err)
	}
	for _, bad := range []struct {
		off    int64
		whence int
	}{{-1, io.SeekStart}, {-size - 1, io.SeekEnd}, {0, 3}, {math.MaxInt64, io.SeekEnd}} {
		if _, err := r.Seek(bad.off, bad.whence); err == nil {
			t.Errorf("Seek(%d, %d) is accepted", bad.off, bad.whence)
		}
	}
	if _, err := r.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("ReadAt(-1) is accepted")
	}
}

type shortWriter struct{ left int }

func (w *shortWriter) Write(p []byte) (int, error) {
	n := min(w.left, len(p))
	w.left -= n
	return n, nil
}

func TestWriteToStopsAtShortWrite(t *testing.T) {
	r := NewReader(4, 1000)
	if n, err := r.WriteTo(&shortWriter{100}); n != 100 || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("WriteTo = %d, %v", n, err)
	}
	if pos, err := r.Seek(0, io.SeekCurrent); pos != 100 || err != nil {
		t.Errorf("position %d, %v", pos, err)
	}
}

func TestSumRefuses(t *testing.T) {
	for _, bad := range []struct {
		alg    string
		off, n int64
	}{{"sha1", 0, 1}, {"", 0, 1}, {"ADLER32", 0, 1}, {"md5", -1, 1}, {"md5", 0, -1}} {
		if sum, err := Sum(bad.alg, 1, bad.off, bad.n); err == nil {
			t.Errorf("Sum(%q, %d, %d) = %s", bad.alg, bad.off, bad.n, sum)
		}
	}
	if _, err := NewHash("sha1"); err == nil || !strings.Contains(err.Error(), "adler32, crc32c, md5, sha256") {
		t.Errorf("the error does not say what would be right: %v", err)
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	p := make([]byte, 1<<16)
	var c Cursor
	sink := 0
	for name, f := range map[string]func(){
		"Fill":  func() { Fill(p, 1, 10) },
		"Equal": func() { Equal(p, 1, 10) },
		"Seed":  func() { _ = Seed(1, "/file000001.dat") },
		"Cursor": func() {
			c.Start(2, 0, 10*PatternSize)
			for piece := c.Next(); piece != nil; piece = c.Next() {
				sink += len(piece)
			}
		},
	} {
		if n := testing.AllocsPerRun(10, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	if sink == 0 {
		t.Error("the cursor gave nothing")
	}
}

// FuzzCursor checks that the pieces of any part equal the output of Fill.
func FuzzCursor(f *testing.F) {
	f.Add(uint64(1), int64(0), int64(100))
	f.Add(uint64(2), int64(63), int64(2))
	f.Add(uint64(3), int64(PatternSize-10), int64(1000))
	f.Add(uint64(4), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Add(uint64(5), int64(math.MaxInt64-1000), int64(1000))
	f.Fuzz(func(t *testing.T, seed uint64, off, n int64) {
		if off < 0 || n < 0 || off+n < 0 {
			if _, err := Sum("adler32", seed, off, n); err == nil {
				t.Fatalf("Sum of %d bytes from %d on is accepted", n, off)
			}
			return
		}
		var c Cursor
		c.Start(seed, off, n)
		for range 4 {
			before := n - c.Left()
			piece := c.Next()
			if piece == nil {
				if before != n {
					t.Fatalf("pieces end %d bytes too early", n-before)
				}
				return
			}
			if len(piece) == 0 || len(piece) > PatternSize {
				t.Fatalf("bad piece of %d bytes", len(piece))
			}
			if !Equal(piece, seed, off+before) {
				t.Fatalf("a piece of (%d, %d, %d) differs", seed, off, n)
			}
		}
	})
}

func BenchmarkPattern(b *testing.B) {
	for b.Loop() {
		makePattern()
	}
}

func BenchmarkFill(b *testing.B) {
	p := make([]byte, 1<<20)
	b.SetBytes(1 << 20)
	for b.Loop() {
		Fill(p, 1, 0)
	}
}

func BenchmarkEqual(b *testing.B) {
	p := make([]byte, 1<<20)
	Fill(p, 1, 0)
	b.SetBytes(1 << 20)
	for b.Loop() {
		if !Equal(p, 1, 0) {
			b.Fatal("differs")
		}
	}
}
