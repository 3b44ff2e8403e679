package token

import (
	"path/filepath"
	"testing"
	"time"
)

// What a token for one file costs: made, and checked.
func BenchmarkToken(b *testing.B) {
	i, err := Keep(filepath.Join(b.TempDir(), "key"), issuerURL, nil)
	if err != nil {
		b.Fatal(err)
	}
	k, err := NewChecker(Options{Trust: []Trust{i.Trust()}, Audience: []string{"A"}})
	if err != nil {
		b.Fatal(err)
	}
	g := Grant{Subject: "s", Audience: []string{"A"}, Scopes: []string{Path("read", "/a"), Path("modify", "/b")}, Life: time.Hour}
	raw, err := i.Mint(g)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("mint", func(b *testing.B) {
		for b.Loop() {
			_, _ = i.Mint(g)
		}
	})
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			_, _ = k.Check(b.Context(), raw)
		}
	})
}
