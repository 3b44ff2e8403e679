package token

import (
	"path/filepath"
	"testing"
	"time"

	"weir/internal/require"
)

// The costs of a token for one file: its creation, and its check.
func BenchmarkToken(b *testing.B) {
	i, err := Keep(filepath.Join(b.TempDir(), "key"), issuerURL, nil)
	require.NoError(b, err)
	k, err := NewChecker(Options{Trust: []Trust{i.Trust()}, Audience: []string{"A"}})
	require.NoError(b, err)
	g := Grant{Subject: "s", Audience: []string{"A"}, Scopes: []string{Path("read", "/a"), Path("modify", "/b")}, Life: time.Hour}
	raw, err := i.Mint(g)
	require.NoError(b, err)
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
