package lock

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/require"
)

// What is closed is free for everybody, also while a program that was just started has
// the descriptor as well.
func TestClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var files []*os.File
	for range 2 {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		defer f.Close()
		files = append(files, f)
	}
	require.NoError(t, Alone(files[0]))
	child, err := unix.Dup(int(files[0].Fd()))
	require.NoError(t, err)
	defer unix.Close(child)
	require.NoError(t, Close(files[0]))
	if err := Alone(files[1]); err != nil {
		t.Errorf("it is free: %v", err)
	}
}
