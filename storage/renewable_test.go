package storage

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
)

// TestRenewable checks that a file is checked once a second, and again if a credential was refused.
// Content that is not a token changes nothing.
func TestRenewable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	set := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	set("one\n")
	synctest.Test(t, func(t *testing.T) {
		c, err := Auth{Method: TokenAuth, TokenFile: file}.Read()
		require.NoError(t, err)
		for i, step := range []struct {
			text     string
			wait     time.Duration
			refused  bool
			want     string
			renewals int
		}{
			{"one\n", 0, false, "one", 0},
			{"two", 900 * time.Millisecond, false, "one", 0},
			{"two", 200 * time.Millisecond, false, "two", 1},
			{"three", 0, false, "two", 0},
			{"three", 0, true, "three", 1},
			{"three", 0, true, "three", 0},
			{" \n", 2 * time.Second, true, "three", 0},
			{"fo\x00ur", 2 * time.Second, true, "three", 0},
			{"three", 2 * time.Second, false, "three", 0},
			{"five", 2 * time.Second, false, "five", 1},
		} {
			set(step.text)
			time.Sleep(step.wait) // of the bubble's clock
			got := c.Bearer().Current()
			if step.refused {
				got = c.Bearer().Reread()
			}
			if n := c.Renewals(); got != step.want || n != step.renewals {
				t.Errorf("step %d: %q and %d renewals, want %q and %d", i, got, n, step.want, step.renewals)
			}
		}
		require.NoError(t, os.Remove(file))
		time.Sleep(2 * time.Second)
		if got := c.Bearer().Current(); got != "five" || c.Bearer().Reread() != "five" {
			t.Errorf("without the file: %q", got)
		}
	})
}

func BenchmarkRenewable(b *testing.B) {
	file := filepath.Join(b.TempDir(), "token")
	require.NoError(b, os.WriteFile(file, []byte("one"), 0o600))
	c, err := Auth{Method: TokenAuth, TokenFile: file}.Read()
	require.NoError(b, err)
	for b.Loop() {
		c.Bearer().Current()
	}
}
