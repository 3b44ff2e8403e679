package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"old", "newer"} {
		require.NoError(t, Write(path, []byte(text), 0o600))
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Fatal(string(got), err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if err := Write(filepath.Join(path, "below a file"), nil, 0o600); err == nil {
		t.Error("written below a file")
	}
	folder := filepath.Join(t.TempDir(), "folder")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "full"), 0o700))
	if err := Write(folder, nil, 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(folder), ".*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %q %v", left, err)
	}
}

func TestRenameNewNeverReplaces(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, root.Mkdir("d", 0o700))
	for _, rename := range []func(from, to string) error{
		func(from, to string) error { return RenameNew(root, nil, nil, from, to) },
		func(from, to string) error { return link(root, from, to) },
	} {
		for name, text := range map[string]string{"a": "new", "d/b": "old"} {
			require.NoError(t, root.WriteFile(name, []byte(text), 0o600))
		}
		if err := rename("a", "d/b"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("another file is there: %v", err)
		}
		if got, err := root.ReadFile("d/b"); err != nil || string(got) != "old" {
			t.Errorf("the other file: %q %v", got, err)
		}
		if err := rename("a", "d/c"); err != nil {
			t.Error(err)
		}
		if got, err := root.ReadFile("d/c"); err != nil || string(got) != "new" {
			t.Errorf("the file: %q %v", got, err)
		}
		require.NoError(t, root.Remove("d/c"))
	}
}
