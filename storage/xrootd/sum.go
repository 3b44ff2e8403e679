package xrootd

import (
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"sync"

	"weir/internal/content"
)

// A sum is the checksum of the bytes that an operation reads, in the order of the file, although
// responses may arrive in another order.
type sum struct {
	alg   string
	hash  hash.Hash        // nil for crc32c, and if no sum is needed
	crc   uint32           // the crc32c so far
	at    int64            // file offset of the next bytes to be added
	early map[int64][]byte // bytes that arrived before their turn
	to    io.Writer        // receives the bytes as well; nil: unused
	err   error            // error of to
}

func (s *sum) start(alg string) error {
	*s = sum{alg: alg}
	if alg == "" || alg == "crc32c" {
		return nil
	}
	var err error
	s.hash, err = content.NewHash(alg)
	return err
}

func (s *sum) wanted() bool { return s.alg != "" || s.to != nil }

func (s *sum) text() string {
	switch {
	case s.alg == "":
		return ""
	case s.hash == nil:
		return fmt.Sprintf("%s:%08x", s.alg, s.crc)
	}
	return content.Text(s.alg, s.hash)
}

// add adds bytes that lie at an offset of the file.
func (s *sum) add(offset int64, b []byte) {
	switch {
	case !s.wanted():
		return
	case offset != s.at:
		if s.early == nil {
			s.early = map[int64][]byte{}
		}
		s.early[offset] = append([]byte(nil), b...)
		return
	}
	s.next(b)
	s.catchUp()
}

// next adds the bytes that lie at s.at.
func (s *sum) next(b []byte) {
	if s.hash != nil {
		_, _ = s.hash.Write(b) // never fails
	} else if s.alg != "" {
		s.crc = crc32.Update(s.crc, castagnoli(), b)
	}
	if s.to != nil && s.err == nil {
		_, s.err = s.to.Write(b)
	}
	s.at += int64(len(b))
}

// addPage is add for a page whose CRC32C is known already.
func (s *sum) addPage(offset int64, page []byte, crc uint32) {
	if s.hash != nil || s.alg == "" || s.to != nil || offset != s.at || len(page) != pageSize {
		s.add(offset, page)
		return
	}
	s.crc = afterPage(s.crc) ^ crc
	s.at += pageSize
	s.catchUp()
}

func (s *sum) catchUp() {
	for len(s.early) > 0 {
		b, ok := s.early[s.at]
		if !ok {
			return
		}
		delete(s.early, s.at)
		s.next(b)
	}
}

// afterPage returns the CRC32C after a page of zeros, without the page's own CRC: a CRC is linear,
// so CRC(a+b) = shift(CRC(a)) ^ CRC(b) (M. Adler, crc32_combine of zlib). The shift of 32 bits by
// one page is the sum of the shifts of four bytes.
func afterPage(crc uint32) uint32 {
	t := pageShift()
	return t[0][crc&0xff] ^ t[1][crc>>8&0xff] ^ t[2][crc>>16&0xff] ^ t[3][crc>>24]
}

// pageShift returns, for each byte of a CRC32C, its change when pageSize bytes follow.
//
//nolint:gochecknoglobals // a table, made when it is first needed
var pageShift = sync.OnceValue(func() *[4][256]uint32 {
	var bits [32]uint32
	zeros := make([]byte, pageSize)
	tab := castagnoli()
	none := crc32.Update(0, tab, zeros)
	for i := range bits { // the inversions of the CRC cancel out
		bits[i] = crc32.Update(1<<i, tab, zeros) ^ none
	}
	var t [4][256]uint32
	for k := range t {
		for v := range 256 {
			for i := range 8 {
				if v>>i&1 != 0 {
					t[k][v] ^= bits[8*k+i]
				}
			}
		}
	}
	return &t
})
