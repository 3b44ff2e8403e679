// Package adler computes Adler-32 checksums (RFC 1950, section 8.2) at memory speed on processors with AVX2, and at
// the speed of hash/adler32 elsewhere. It also combines the checksums of two adjacent parts.
package adler

import (
	"encoding/binary"
	"fmt"
	"hash"
	"strconv"
	"strings"
)

const (
	// Size is the number of bytes of a checksum.
	Size = 4
	mod  = 65521 // the largest prime below 65536
)

// Update returns the checksum of data with the checksum sum followed by p. The checksum of nothing
// is 1. It allocates nothing.
func Update(sum uint32, p []byte) uint32 { return update(sum, p) }

// Combine returns the checksum of two parts, one behind the other, from their checksums and the number of bytes of
// the second.
//
// With a part's low half s1 = 1 + sum of its bytes and its high half s2 = sum of all s1 on the way, the second part
// begins with the first's s1 instead of 1, which adds (s1-1) to each of its n steps.
func Combine(first, second uint32, n int64) uint32 {
	a, b := uint64(first&0xffff), uint64(first>>16)
	c, d := uint64(second&0xffff), uint64(second>>16)
	low := (a + c + mod - 1) % mod
	high := (b + d + uint64(n%mod)*((a+mod-1)%mod)) % mod
	return uint32(high<<16 | low)
}

// Text returns sum as catalogs and Digest headers have it: 8 digits, lower case.
func Text(sum uint32) string {
	const digits = "0123456789abcdef"
	var b [8]byte
	for i := range b {
		b[i] = digits[sum>>(28-4*i)&15]
	}
	return string(b[:])
}

// Parse reads a checksum as other programs write it: in upper case, without zeros in front, or behind a 0x.
func Parse(text string) (uint32, error) {
	digits := strings.ToLower(strings.TrimSpace(text))
	digits = strings.TrimPrefix(digits, "0x")
	sum, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || strings.HasPrefix(digits, "+") {
		return 0, fmt.Errorf("%.20q is no adler32: it has up to 8 digits, 0 to 9 and a to f", text)
	}
	return uint32(sum), nil
}

// A Digest computes the checksum of the bytes written to it. Its zero value is not ready: New makes
// one. It must not be used by several goroutines at once.
type Digest struct{ sum uint32 }

// New returns a Digest of nothing. It is a hash.Hash32.
func New() *Digest { return &Digest{sum: 1} }

var _ hash.Hash32 = (*Digest)(nil)

// Write adds p. It never fails.
func (d *Digest) Write(p []byte) (int, error) {
	d.sum = update(d.sum, p)
	return len(p), nil
}

// Sum32 returns the checksum of the bytes written so far.
func (d *Digest) Sum32() uint32 { return d.sum }

// Sum appends the checksum to p, most significant byte first.
func (d *Digest) Sum(p []byte) []byte { return binary.BigEndian.AppendUint32(p, d.sum) }

// Reset makes d a Digest of nothing.
func (d *Digest) Reset() { d.sum = 1 }

// Size returns 4.
func (d *Digest) Size() int { return Size }

// BlockSize returns 4, as that of hash/adler32 does.
func (d *Digest) BlockSize() int { return 4 }

// most is the number of bytes that the high half can take before 32 bits overflow (NMAX in zlib):
// 255*n*(n+1)/2 + (n+1)*(mod-1) < 2^32.
const most = 5552

// portable implements Update for processors without AVX2, for pieces that are too short for AVX2
// and for the rest of a long piece.
func portable(sum uint32, p []byte) uint32 {
	a, b := sum&0xffff, sum>>16
	for len(p) > 0 {
		n := min(len(p), most)
		part := p[:n]
		p = p[n:]
		for len(part) >= 4 {
			a += uint32(part[0])
			b += a
			a += uint32(part[1])
			b += a
			a += uint32(part[2])
			b += a
			a += uint32(part[3])
			b += a
			part = part[4:]
		}
		for _, x := range part {
			a += uint32(x)
			b += a
		}
		a %= mod
		b %= mod
	}
	return b<<16 | a
}
