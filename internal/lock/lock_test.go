package lock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/require"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	return f
}

// Two descriptors of one file stand for two processes.
func TestLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	a, b := open(t, path), open(t, path)
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
	a = open(t, path)
	if err := errors.Join(TryShared(a), a.Close()); err != nil {
		t.Errorf("shared beside shared: %v", err)
	}
	a = open(t, path)
	if err := Alone(a); !errors.Is(err, ErrTaken) {
		t.Errorf("alone beside shared: %v", err)
	}
	require.NoError(t, errors.Join(a.Close(), b.Close()))
}

// A closed lock is free for other processes, even while a program that was just started has a copy
// of the descriptor.
func TestClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	a, b := open(t, path), open(t, path)
	defer b.Close()
	require.NoError(t, Alone(a))
	child, err := unix.Dup(int(a.Fd()))
	require.NoError(t, err)
	defer unix.Close(child)
	require.NoError(t, Close(a))
	if err := Alone(b); err != nil {
		t.Errorf("it is free: %v", err)
	}
}
