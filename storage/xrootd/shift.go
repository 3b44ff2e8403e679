package xrootd

import (
	"hash/crc32"
	"sync"
)

// pageShift is how each byte of a CRC32C changes when pageSize bytes follow.
//
//nolint:gochecknoglobals // a table, made when it is first needed
var pageShift = sync.OnceValue(func() *[4][256]uint32 {
	var bits [32]uint32
	zeros := make([]byte, pageSize)
	tab := castagnoli()
	none := crc32.Update(0, tab, zeros)
	for i := range bits { // a CRC's own inversions cancel out
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
