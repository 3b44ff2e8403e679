package command_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/lock"
	"weir/internal/require"
	"weir/storage"
)

// manifestText is the content of a folder's manifest.
const manifestText = "this folder, with all that is in it, is of one run of weir and its programs\n"

// TestLeftoversOfKilledRuns checks that the files of a killed run are removed by the next run;
// other users' files, and files of unknown origin, remain.
func TestLeftoversOfKilledRuns(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	folder := func(name string, mode os.FileMode) string {
		dir := filepath.Join(tmp, "weir-command-"+name)
		require.NoError(t, errors.Join(os.MkdirAll(filepath.Join(dir, "job-1"), 0o700), os.Chmod(dir, mode)))
		return dir
	}
	claim := func(dir string) *os.File {
		f, err := lock.Claim(dir, "manifest", []byte(manifestText))
		require.NoError(t, err)
		return f
	}
	killed, used, open, strange, foreign := folder("killed", 0o700), folder("used", 0o700), folder("open", 0o755), folder("strange", 0o700),
		folder("foreign", 0o700)
	link := filepath.Join(tmp, "weir-command-"+"link")
	outside := t.TempDir()
	if err := errors.Join(claim(killed).Close(), claim(open).Close(), claim(outside).Close(), os.Chmod(outside, 0o700),
		os.Symlink(outside, link),
		os.WriteFile(filepath.Join(strange, "manifest"), []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	held := claim(used)
	defer func() { _ = held.Close() }()
	c := client(t, nowhere, "true")
	if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Run, Path: "f"}, &heard{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(killed); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", killed, err)
	}
	for _, dir := range []string{used, open, strange, foreign, link, filepath.Join(outside, "manifest")} {
		if _, err := os.Lstat(dir); err != nil {
			t.Error(err)
		}
	}
}
