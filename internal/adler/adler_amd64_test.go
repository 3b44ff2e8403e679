package adler

import (
	"bytes"
	"testing"

	"golang.org/x/sys/cpu"
)

// blocks accepts up to 65536 blocks at once.
func TestMostBlocksAtOnce(t *testing.T) {
	if !cpu.X86.HasAVX2 {
		t.Skip("this processor has no AVX2")
	}
	const n = 65536
	p := bytes.Repeat([]byte{0xff}, n*block)
	sum, before, weighed := blocks(&p[0], n)
	const each = 255 * block
	if sum != n*each || before != each*n*(n-1)/2 || weighed != n*255*block*(block+1)/2 {
		t.Errorf("sum %d, before %d, weighed %d", sum, before, weighed)
	}
}
