// Package content makes the bytes of synthetic files: different for every
// seed, reproducible, checkable, and cheap to send, because all files are
// windows into one pattern in memory.
//
// # Format
//
// A seed names an endless stream of bytes; a file of that seed and some size
// is the stream's start. So a part of a file can be made and checked without
// its size being known. The stream is the same on every machine:
//
//   - All random words are outputs of SplitMix64, written little endian. Its
//     i-th output (i = 1, 2, ...) for the start s is mix(s + i*0x9e3779b97f4a7c15)
//     mod 2^64, where mix is the function of that name below.
//   - The pattern is PatternSize bytes long: the outputs for the start
//     0x776569722d646174, the last word cut short.
//   - The stream begins with a head of HeadSize bytes: outputs 1 to 8 for the
//     start that is the seed itself. Output 1 is invertible, so no two seeds
//     have the same head, and Recognize finds a file's seed from its head.
//   - Then follows the pattern without end, wrapping around, from the offset
//     that is output 9 for the seed, modulo PatternSize.
//
// PatternSize is prime, so that no block or chunk size divides it: a service that confuses blocks
// of a file is noticed, and a service that stores equal blocks once, or compresses, gains nothing.
package content

import (
	"encoding/binary"
	"sync"
)

// HeadSize is the number of bytes at the start of a file that are its own.
const HeadSize = 64

// PatternSize is the number of bytes after which a file repeats itself. It is the largest prime
// below 1 MiB: small enough to stay in the cache of a core, where sending it costs two thirds of
// the CPU time of sendfile from 4 KiB pages.
const PatternSize = 1048573

const (
	patternStart = 0x776569722d646174
	golden       = 0x9e3779b97f4a7c15
)

// mix computes the output function of SplitMix64. It is a bijection.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// unmix computes the inverse of mix: the multipliers are the inverses modulo 2^64.
func unmix(z uint64) uint64 {
	z = (z ^ z>>31 ^ z>>62) * 0x319642b2d24d8ec3
	z = (z ^ z>>27 ^ z>>54) * 0x96de1b173f119089
	return z ^ z>>30 ^ z>>60
}

// output returns the i-th output of SplitMix64 for a start, i >= 1.
func output(start, i uint64) uint64 { return mix(start + i*golden) }

// head writes the first bytes of seed's stream.
func head(h *[HeadSize]byte, seed uint64) {
	for i := range uint64(HeadSize / 8) {
		binary.LittleEndian.PutUint64(h[8*i:], output(seed, i+1))
	}
}

// window returns where in the pattern byte off of seed's stream is, for
// off >= HeadSize.
func window(seed uint64, off int64) int64 {
	start := int64(output(seed, HeadSize/8+1) % PatternSize)
	return (start + (off-HeadSize)%PatternSize) % PatternSize
}

// Fill makes p the bytes of seed's stream from off on. It allocates nothing
// and may be called by many goroutines at once. It panics if off is negative,
// as an index would.
func Fill(p []byte, seed uint64, off int64) {
	if off < 0 {
		panic("content: negative offset")
	}
	if off < HeadSize {
		var h [HeadSize]byte
		head(&h, seed)
		n := copy(p, h[off:])
		p, off = p[n:], off+int64(n)
	}
	if len(p) == 0 {
		return
	}
	pat, at := pattern(), window(seed, off)
	for len(p) > 0 {
		n := copy(p, pat[at:])
		p, at = p[n:], 0
	}
}

// Recognize finds the seed of a file from its first bytes. It needs 16 of them and examines no more
// than HeadSize; ok is false if no seed begins so, or with fewer than 16.
func Recognize(first []byte) (seed uint64, ok bool) {
	if len(first) < 16 {
		return 0, false
	}
	first = first[:min(len(first), HeadSize)]
	seed = unmix(binary.LittleEndian.Uint64(first)) - golden
	var h [HeadSize]byte
	head(&h, seed)
	return seed, string(h[:len(first)]) == string(first)
}

// Seed returns the seed of the file called name in a set of files that has
// the seed base. It is stable: FNV-1a (64 bit) of the name's bytes, exclusive
// or mix(base), then mix.
func Seed(base uint64, name string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 0x100000001b3
	}
	return mix(h ^ mix(base))
}

// pattern returns the bytes that all files share, which are read-only. They are computed on first use, in some 0.2 ms.
var pattern = sync.OnceValue(makePattern) //nolint:gochecknoglobals // a computed constant

func makePattern() []byte {
	p := make([]byte, PatternSize+8)
	for i := uint64(0); 8*i < PatternSize; i++ {
		binary.LittleEndian.PutUint64(p[8*i:], output(patternStart, i+1))
	}
	return p[:PatternSize:PatternSize]
}
