package token

import (
	"path/filepath"
	"testing"
	"time"

	"weir/internal/require"
)

// A token with Early set is valid for a checker whose clock is slow.
func TestEarly(t *testing.T) {
	now := time.Now()
	issuer, err := Keep(filepath.Join(t.TempDir(), "key"), "https://issuer.example.org", func() time.Time { return now })
	require.NoError(t, err)
	for early, good := range map[time.Duration]bool{0: false, 2 * time.Hour: true} {
		raw, err := issuer.Mint(Grant{Subject: "a", Audience: []string{"b"}, Scopes: []string{"weir.read"}, Life: time.Hour, Early: early})
		require.NoError(t, err)
		c, err := NewChecker(Options{Trust: []Trust{issuer.Trust()}, Audience: []string{"b"},
			Now: func() time.Time { return now.Add(-time.Hour) }})
		require.NoError(t, err)
		if _, err := c.Check(t.Context(), raw); (err == nil) != good {
			t.Errorf("%v early: %v", early, err)
		}
	}
}
