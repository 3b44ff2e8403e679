package lock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
)

// Two descriptors of one file stand for two processes.
func TestLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		return f
	}
	a, b := open(), open()
	require.NoError(t, Alone(a))
	for name, try := range map[string]func(*os.File) error{"alone": Alone, "shared": TryShared} {
		if err := try(b); !errors.Is(err, ErrTaken) {
			t.Errorf("%s beside one who is alone: %v", name, err)
		}
	}
	require.NoError(t, a.Close())
	if err := Shared(b); err != nil {
		t.Errorf("shared after the other has closed: %v", err)
	}
	a = open()
	if err := errors.Join(TryShared(a), a.Close()); err != nil {
		t.Errorf("shared beside shared: %v", err)
	}
	a = open()
	if err := Alone(a); !errors.Is(err, ErrTaken) {
		t.Errorf("alone beside shared: %v", err)
	}
	require.NoError(t, errors.Join(a.Close(), b.Close()))
}
