package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func open(t *testing.T, parent string, copies int) *Folder {
	t.Helper()
	f, err := Open(parent, copies)
	require.NoError(t, err)
	return f
}

// kill leaves the folder like a process that is killed.
func kill(t *testing.T, f *Folder) {
	t.Helper()
	require.NoError(t, f.manifest.Close())
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestFolderIsGoneWithItsRun(t *testing.T) {
	parent := t.TempDir()
	f := open(t, parent, 2)
	info, err := os.Stat(f.Path())
	if err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(f.Path()) != parent {
		t.Errorf("%s: %v, %v", f.Path(), info.Mode(), err)
	}
	write(t, Copy(f.Path(), 0), "a copy")
	write(t, Copy(f.Path(), 1), "another")
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if left := names(t, parent); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	f = open(t, parent, 2)
	if err := errors.Join(os.RemoveAll(f.Path()), f.Close()); err != nil {
		t.Error(err)
	}
	if none := (*Folder)(nil); none.Path() != "" || none.Close() != nil {
		t.Error("a nil folder is something")
	}
}

func TestNoPlace(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none"), 1); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Open(t.TempDir(), MostCopies+1); err == nil {
		t.Error("any number of copies is fine")
	}
}

// Entries that are no copies, by name, number and kind, stay, and so do the targets of links.
func TestForeignFilesStay(t *testing.T) {
	parent, far := t.TempDir(), t.TempDir()
	write(t, filepath.Join(far, "precious"), "data")
	for name, put := range map[string]func(path string) error{
		"theirs":        func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"copy-000002":   func(p string) error { return os.WriteFile(p, nil, 0o600) }, // one too many
		"copy-1":        func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"copy-+00001":   func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"copy-000001 x": func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"copy-000001":   func(p string) error { return os.Symlink(filepath.Join(far, "precious"), p) },
		"copy-000000/":  func(p string) error { return os.Mkdir(p, 0o700) },
	} {
		f := open(t, parent, 2)
		path := filepath.Join(f.Path(), name)
		require.NoError(t, put(path))
		if err := f.Close(); err == nil || !strings.Contains(err.Error(), "is not removed") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(far, "precious")); err != nil {
		t.Error(err)
	}
}

func TestLeftoversOfKilledRuns(t *testing.T) {
	parent := t.TempDir()
	killed, going := open(t, parent, 3), open(t, parent, 3)
	write(t, Copy(killed.Path(), 0), "a copy")
	write(t, Copy(killed.Path(), 2), "half a co")
	write(t, Copy(going.Path(), 1), "a copy")
	kill(t, killed)
	found := Clear(parent)
	if len(found) != 2 {
		t.Fatalf("found %v", found)
	}
	for _, l := range found {
		switch l.Folder {
		case killed.Path():
			if l.Err != nil || l.Removed != 2 || !strings.Contains(l.String(), "2 copies in "+killed.Path()) {
				t.Errorf("%+v: %s", l, l)
			}
		case going.Path():
			if l.Err == nil || !strings.Contains(l.String(), "going on") {
				t.Errorf("%+v", l)
			}
		}
	}
	if left := names(t, parent); len(left) != 1 || len(names(t, going.Path())) != 2 {
		t.Errorf("left are %v", left)
	}
	if err := going.Close(); err != nil {
		t.Error(err)
	}
	if found := Clear(parent); len(found) > 0 {
		t.Errorf("found %v once more", found)
	}
	if found := Clear(filepath.Join(parent, "none")); len(found) > 0 {
		t.Errorf("found %v nowhere", found)
	}
}

// Folders with our names and unknown contents are left alone.
func TestForeignFoldersStay(t *testing.T) {
	parent, far := t.TempDir(), open(t, t.TempDir(), 1)
	write(t, Copy(far.Path(), 0), "a copy")
	kill(t, far)
	require.NoError(t, os.Symlink(far.Path(), filepath.Join(parent, prefix+"link")))
	write(t, filepath.Join(parent, prefix+"file"), "no folder")
	for name, text := range map[string]string{
		"torn": `{"weir_scratch":1,"cop`, "empty": "", "newer": `{"weir_scratch":2,"copies":1}`, "negative": `{"weir_scratch":1,"copies":-1}`,
		"huge": `{"weir_scratch":1,"copies":99999999999}`, "other": `{"copies":1}`, "noise": "\x00\xff[]", "array": "[1]",
	} {
		dir := filepath.Join(parent, prefix+name)
		require.NoError(t, os.Mkdir(dir, 0o700))
		write(t, filepath.Join(dir, manifestName), text)
		write(t, Copy(dir, 0), "a copy")
	}
	bare, hollow := filepath.Join(parent, prefix+"bare"), filepath.Join(parent, prefix+"hollow")
	require.NoError(t, errors.Join(os.Mkdir(bare, 0o700), os.Mkdir(hollow, 0o700)))
	write(t, Copy(bare, 0), "a copy")
	before := names(t, parent)
	found := Clear(parent)
	if left := names(t, parent); len(left) != len(before) || len(found) != len(before) {
		t.Errorf("left of %v are %v, told %v", before, left, found)
	}
	for _, l := range found {
		if l.Err == nil || !strings.Contains(l.String(), l.Folder) || l.Removed > 0 {
			t.Errorf("%+v", l)
		}
	}
	if _, err := os.Stat(Copy(far.Path(), 0)); err != nil {
		t.Errorf("behind a link: %v", err)
	}
	long := time.Now().Add(-time.Hour) // an empty folder that no process is about to fill
	require.NoError(t, os.Chtimes(hollow, long, long))
	Clear(parent)
	if _, err := os.Stat(hollow); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the empty folder: %v", err)
	}
}

func TestFolderOfAnotherUser(t *testing.T) {
	parent := t.TempDir()
	f := open(t, parent, 1)
	write(t, Copy(f.Path(), 0), "a copy")
	kill(t, f)
	if err := os.Chown(f.Path(), 65534, -1); err != nil {
		t.Skip(err)
	}
	found := Clear(parent)
	if len(found) != 1 || found[0].Err == nil || !strings.Contains(found[0].String(), "another user") {
		t.Errorf("%v", found)
	}
	if _, err := os.Stat(Copy(f.Path(), 0)); err != nil {
		t.Error(err)
	}
}
