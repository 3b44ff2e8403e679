package adler

// most is how many bytes the high half can take before 32 bits overflow
// (NMAX in zlib): 255*n*(n+1)/2 + (n+1)*(mod-1) < 2^32.
const most = 5552

// portable is Update for processors without AVX2, and for what is left of a
// long piece or too short for one.
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
