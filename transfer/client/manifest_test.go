package client

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
)

// A file that could not be written completely does not appear, and the previous file stays.
func TestWriteWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "a.json"), filepath.Join(dir, "link.json")
	require.NoError(t, errors.Join(os.WriteFile(file, []byte("before"), 0o600), os.Symlink("a.json", link)))
	for _, path := range []string{file, link, filepath.Join(dir, "new.json"), os.DevNull} {
		broken := errors.New("it broke")
		if err := writeWhole(path, func(w io.Writer) error { _, _ = io.WriteString(w, "half"); return broken }); !errors.Is(err, broken) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "before" {
		t.Errorf("%q, %v", text, err)
	}
	if err := writeWhole(link, func(w io.Writer) error { _, err := io.WriteString(w, "after"); return err }); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "after" {
		t.Errorf("%q, %v", text, err)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 2 {
		t.Errorf("%v, %v", names, err)
	}
	if err := writeWhole(filepath.Join(dir, "none", "a.json"), nil); err == nil {
		t.Error("a folder that is not there was made")
	}
}
