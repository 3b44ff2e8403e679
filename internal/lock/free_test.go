package lock

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What is free is so for everybody, also while a program that was just started has
// the descriptor as well.
func TestFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var files []*os.File
	for range 2 {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	if err := Alone(files[0]); err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(int(files[0].Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if err := Free(files[0]); err != nil {
		t.Fatal(err)
	}
	if err := Alone(files[1]); err != nil {
		t.Errorf("it is free: %v", err)
	}
}
