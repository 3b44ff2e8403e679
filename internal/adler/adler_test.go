package adler

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"math/rand/v2"
	"testing"
	"time"

	"weir/internal/require"
)

// random returns n bytes that depend on seed.
func random(seed uint64, n int) []byte {
	p := make([]byte, n+8)
	r := rand.NewPCG(seed, 7)
	for i := 0; i+8 <= len(p); i += 8 {
		binary.LittleEndian.PutUint64(p[i:], r.Uint64())
	}
	return p[:n]
}

func check(t *testing.T, p []byte) {
	t.Helper()
	want := adler32.Checksum(p)
	if got := Checksum(p); got != want {
		t.Fatalf("%d bytes: %08x, hash/adler32 has %08x", len(p), got, want)
	}
	if got := portable(1, p); got != want {
		t.Fatalf("%d bytes, portable: %08x, hash/adler32 has %08x", len(p), got, want)
	}
}

func TestEveryShortLengthAtEveryAlignment(t *testing.T) {
	p := random(1, 700)
	for at := range 65 {
		for n := range 300 {
			check(t, p[at:at+n])
		}
	}
}

func TestRandomLengths(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	p := random(4, 3<<20)
	for range 150 {
		at := r.IntN(100)
		check(t, p[at:at+r.IntN(len(p)-at)])
	}
}

// The largest bytes come nearest to an overflow, just at and beyond each limit.
func TestAllOnes(t *testing.T) {
	p := bytes.Repeat([]byte{0xff}, 5<<20+70)
	for _, n := range []int{64, most, most + 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 1<<20 + 64, 2<<20 + 63, 4 << 20, len(p)} {
		check(t, p[:n])
	}
	want := adler32.New()
	sum := uint32(65520<<16 | 65520) // the largest state
	state := binary.BigEndian.AppendUint32([]byte("adl\x01"), sum)
	require.NoError(t, want.(encoding.BinaryUnmarshaler).UnmarshalBinary(state))
	want.Write(p)
	if got := Update(sum, p); got != want.Sum32() {
		t.Errorf("from the largest state: %08x, hash/adler32 has %08x", got, want.Sum32())
	}
}

func TestPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	p := random(7, 1<<20)
	d, want := New(), adler32.New()
	for left := p; len(left) > 0; {
		n := min(1+r.IntN(100_000), len(left))
		d.Write(left[:n])
		want.Write(left[:n])
		left = left[n:]
		if d.Sum32() != want.Sum32() {
			t.Fatalf("%d bytes to go: %08x, hash/adler32 has %08x", len(left), d.Sum32(), want.Sum32())
		}
	}
	if !bytes.Equal(d.Sum([]byte("x")), want.Sum([]byte("x"))) || d.Size() != want.Size() || d.BlockSize() != want.BlockSize() {
		t.Error("it is not the same hash")
	}
	d.Reset()
	if d.Sum32() != 1 {
		t.Error("a reset one is not that of nothing")
	}
}

func TestCombine(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	p := random(10, 400_000)
	for range 300 {
		from := r.IntN(len(p))
		to := from + r.IntN(len(p)-from)
		cut := from + r.IntN(to-from+1)
		got := Combine(Checksum(p[from:cut]), Checksum(p[cut:to]), int64(to-cut))
		if want := Checksum(p[from:to]); got != want {
			t.Fatalf("%d and %d bytes: %08x, want %08x", cut-from, to-cut, got, want)
		}
	}
	zeros := uint64(1<<40 + 12345) // s1 stays 1, s2 grows by one a byte
	second := uint32(zeros%mod)<<16 | 1
	if got := Combine(1, second, int64(zeros)); got != second {
		t.Errorf("nothing and a terabyte of zeros: %08x, want %08x", got, second)
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]uint32{"0002001f": 0x2001f, "2001F": 0x2001f, " 0x972bffa7": 0x972bffa7, "ffffffff": 0xffffffff} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: %08x, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "123456789", "adler32", "+1", "-1", "1_0", "0x"} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%q was read as %08x", bad, got)
		}
	}
	if got := Text(0x2001f); got != "0002001f" {
		t.Error(got)
	}
}

func TestNoAllocation(t *testing.T) {
	p, sum := random(12, 100_000), uint32(1)
	if n := testing.AllocsPerRun(20, func() { sum = Update(sum, p) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzAgainstTheStandardLibrary(f *testing.F) {
	f.Add([]byte("seed"), uint16(3), uint8(1))
	f.Add(bytes.Repeat([]byte{0xff}, 200), uint16(130), uint8(40))
	f.Fuzz(func(t *testing.T, p []byte, cut uint16, times uint8) {
		p = bytes.Repeat(p, int(times)%64+1)
		check(t, p)
		at := min(int(cut), len(p))
		first, second := p[:at], p[at:]
		if got, want := Combine(Checksum(first), Checksum(second), int64(len(second))), adler32.Checksum(p); got != want {
			t.Fatalf("cut at %d of %d: %08x, want %08x", at, len(p), got, want)
		}
	})
}

// BenchmarkRatio reports the speed relative to hash/adler32, measured side by side.
func BenchmarkRatio(b *testing.B) {
	for _, n := range []int{4 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", n>>10), func(b *testing.B) { ratio(b, random(13, n)) })
	}
}

func ratio(b *testing.B, p []byte) {
	var mine, theirs time.Duration
	for b.Loop() {
		mine += timed(func() { Checksum(p) }, len(p))
		theirs += timed(func() { adler32.Checksum(p) }, len(p))
	}
	gigabytes := float64(b.N) * float64(passes(len(p))*len(p)) / 1e9
	b.ReportMetric(gigabytes/mine.Seconds(), "GB/s")
	b.ReportMetric(theirs.Seconds()/mine.Seconds(), "times_hash/adler32")
}

// passes returns the number of passes over n bytes for which the time of two clock readings is
// negligible.
func passes(n int) int { return max(1, 4<<20/n) }

func timed(f func(), n int) time.Duration {
	start := time.Now()
	for range passes(n) {
		f()
	}
	return time.Since(start)
}

// Checksum returns the checksum of p.
func Checksum(p []byte) uint32 { return Update(1, p) }
