package adler

import "golang.org/x/sys/cpu"

const (
	block = 64      // bytes of one round of blocks
	span  = 1 << 20 // bytes between two divisions; blocks allows 4 times as many
	short = 64      // below this the portable code is not slower
)

// blocks adds up n blocks of 64 bytes at p, n being 1 to 65536:
//
//	sum     of all bytes
//	before  of sum as it was before each block
//	weighed of all bytes, each times its distance from the end of its block, 64 to 1
//
//go:noescape
func blocks(p *byte, n int) (sum, before, weighed uint64)

func update(sum uint32, p []byte) uint32 {
	if len(p) < short || !cpu.X86.HasAVX2 {
		return portable(sum, p)
	}
	a, b := uint64(sum&0xffff), uint64(sum>>16)
	for len(p) >= block {
		n := min(len(p), span) / block
		s, before, weighed := blocks(&p[0], n)
		b = (b + a*uint64(n)*block + before*block + weighed) % mod
		a = (a + s) % mod
		p = p[n*block:]
	}
	return portable(uint32(b<<16|a), p)
}
