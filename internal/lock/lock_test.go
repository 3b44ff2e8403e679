package lock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Two descriptors of one file stand for two processes.
func TestLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	a, b := open(), open()
	if err := Alone(a); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func(*os.File) error{"alone": Alone, "shared": TryShared} {
		if err := try(b); !errors.Is(err, ErrTaken) {
			t.Errorf("%s beside one who is alone: %v", name, err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
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
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
}
