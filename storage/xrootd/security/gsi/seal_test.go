package gsi

import (
	"bytes"
	"crypto/cipher"
	"testing"
)

// TestSealIsCBC decrypts the output of each suite, several times with one sealer.
func TestSealIsCBC(t *testing.T) {
	for _, s := range suites() {
		for _, vector := range []bool{true, false} {
			secret := bytes.Repeat([]byte("0123456789abcdef"), 4)
			with := must(s.sealer(secret, vector))
			block := must(s.make(secret[:s.key]))
			for _, n := range []int{0, 1, 16, 32, 100} {
				data := bytes.Repeat([]byte{'d'}, n)
				iv, sealed := make([]byte, vectorSize), with.seal(nil, data)
				if vector {
					iv, sealed = sealed[:vectorSize], sealed[vectorSize:]
				}
				cipher.NewCBCDecrypter(block, iv[:block.BlockSize()]).CryptBlocks(sealed, sealed)
				pad := int(sealed[len(sealed)-1])
				if got := sealed[:len(sealed)-pad]; !bytes.Equal(got, data) || pad > block.BlockSize() {
					t.Errorf("%s, vector %v, %d bytes: %x with a padding of %d", s.name, vector, n, got, pad)
				}
			}
		}
	}
}

// TestSealDoesNotAllocate checks seal, which runs once for each signed request.
func TestSealDoesNotAllocate(t *testing.T) {
	with := must(suites()[0].sealer(make([]byte, 64), true))
	sum, b := make([]byte, 32), make([]byte, 0, 128)
	if n := testing.AllocsPerRun(100, func() { b = with.seal(b[:0], sum) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSeal(b *testing.B) {
	with := must(suites()[0].sealer(make([]byte, 64), true))
	sum, buf := make([]byte, 32), make([]byte, 0, 128)
	b.ReportAllocs()
	for b.Loop() {
		buf = with.seal(buf[:0], sum)
	}
}
