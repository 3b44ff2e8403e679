package gridcert

import (
	"testing"
	"time"
)

// BenchmarkVerifyChain verifies a proxy that a proxy has signed, as FTS's client delegates it.
func BenchmarkVerifyChain(b *testing.B) {
	r := newChainRig(b)
	chain, now := r.proxies(usual, usual), time.Now()
	for b.Loop() {
		if _, err := VerifyChain(chain, r.roots, now); err != nil {
			b.Fatal(err)
		}
	}
}
