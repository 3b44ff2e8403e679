// Package inflate unpacks many short zlib streams (RFC 1950 and 1951) in
// memory. compress/zlib is made for long ones: for 100 bytes most of its time
// goes into tables that are then hardly used.
package inflate

import (
	"encoding/binary"
	"errors"
	"hash/adler32"
	"math/bits"
)

// ErrUnusual says that a stream is damaged, too long or of a rare kind;
// compress/zlib knows which.
var ErrUnusual = errors.New("inflate: damaged or unusual stream")

// An Inflater has the memory that unpacking takes. The zero value is ready. It
// is not safe for concurrent use.
type Inflater struct {
	src  []byte
	at   int    // bytes of src in acc, or used
	acc  uint64 // bits that wait, the next one lowest
	n    uint   // how many
	bad  bool
	out  []byte
	most int

	fixed, literals, distances, lengths codes
	ready                               bool // fixed is
}

// Zlib appends what the stream src unpacks to, at most so many bytes, to dst.
// What follows the stream in src is ignored.
func (f *Inflater) Zlib(dst, src []byte, most int) ([]byte, error) {
	if len(src) < 6 || src[0]&15 != 8 || src[0]>>4 > 7 || binary.BigEndian.Uint16(src)%31 != 0 || src[1]&32 != 0 {
		return dst, ErrUnusual
	}
	f.src, f.at, f.acc, f.n, f.bad, f.out, f.most = src, 2, 0, 0, false, dst, len(dst)+most
	for last := false; !last && !f.bad; {
		last = f.bits(1) == 1
		switch f.bits(2) {
		case 0:
			f.stored()
		case 1:
			f.fix()
			f.block(&f.fixed, nil)
		case 2:
			if f.trees() {
				f.block(&f.literals, &f.distances)
			}
		default:
			f.bad = true
		}
	}
	f.align()
	out, rest := f.out, f.src[f.at:]
	f.src, f.out = nil, nil
	if f.bad || len(rest) < 4 || binary.BigEndian.Uint32(rest) != adler32.Checksum(out[len(dst):]) {
		return dst, ErrUnusual
	}
	return out, nil
}

// fill has at least 32 bits wait, fewer only near the end.
func (f *Inflater) fill() {
	if f.n >= 32 {
		return
	}
	if rest := f.src[f.at:]; len(rest) >= 8 {
		f.acc |= binary.LittleEndian.Uint64(rest) << f.n
		f.at += int(63-f.n) / 8
		f.n |= 56 // as many whole bytes as there was room for
		f.acc &= 1<<f.n - 1
		return
	}
	for f.n <= 56 && f.at < len(f.src) {
		f.acc |= uint64(f.src[f.at]) << f.n
		f.at++
		f.n += 8
	}
}

// bits takes the next n bits, at most 16.
func (f *Inflater) bits(n uint) uint {
	if f.n < n {
		f.fill()
	}
	if f.n < n {
		f.bad = true
		return 0
	}
	v := uint(f.acc & (1<<n - 1))
	f.acc >>= n
	f.n -= n
	return v
}

// align goes to the next whole byte of src that was not used.
func (f *Inflater) align() {
	f.at -= int(f.n / 8)
	f.acc, f.n = 0, 0
}

// stored copies a block that is not compressed.
func (f *Inflater) stored() {
	f.align()
	rest := f.src[f.at:]
	if len(rest) < 4 {
		f.bad = true
		return
	}
	size, inverse := binary.LittleEndian.Uint16(rest), binary.LittleEndian.Uint16(rest[2:])
	if rest = rest[4:]; size != ^inverse || int(size) > len(rest) || len(f.out)+int(size) > f.most {
		f.bad = true
		return
	}
	f.out = append(f.out, rest[:size]...)
	f.at += 4 + int(size)
}

// block unpacks literals and matches up to the end of the block. With no codes
// for distances these have five bits each.
func (f *Inflater) block(literals, distances *codes) {
	for !f.bad {
		f.fill()
		symbol := f.symbol(literals)
		switch {
		case symbol < 256 && len(f.out) < f.most:
			f.out = append(f.out, byte(symbol))
		case symbol == 256:
			return
		case symbol < 256 || symbol > 285:
			f.bad = true
		default:
			f.match(f.length(symbol), distances)
		}
	}
}

// length returns how long a match is: section 3.2.5.
func (f *Inflater) length(symbol uint) int {
	n := symbol - 257
	switch {
	case n < 8:
		return int(n) + 3
	case symbol == 285:
		return 258
	}
	extra := n/4 - 1
	return int((4+n%4)<<extra+f.bits(extra)) + 3
}

// match repeats what was unpacked before.
func (f *Inflater) match(length int, distances *codes) {
	f.fill()
	var symbol uint
	if distances != nil {
		symbol = f.symbol(distances)
	} else {
		symbol = uint(bits.Reverse8(byte(f.bits(5)))) >> 3
	}
	if symbol > 29 {
		f.bad = true
		return
	}
	back := int(symbol) + 1
	if symbol >= 4 {
		extra := symbol/2 - 1
		back = int((2+symbol%2)<<extra+f.bits(extra)) + 1
	}
	if f.bad || back > len(f.out) || len(f.out)+length > f.most {
		f.bad = true
		return
	}
	for range length {
		f.out = append(f.out, f.out[len(f.out)-back])
	}
}
