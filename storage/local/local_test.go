package local_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weir/internal/content"
	"weir/internal/require"
	"weir/storage"
	"weir/storage/local"
	"weir/storage/storagetest"
)

func target(folder string) storage.Target {
	return storage.Target{URL: &url.URL{Scheme: "file", Path: folder}}
}

func TestConformance(t *testing.T) {
	storagetest.Run(t, local.Driver(), target(t.TempDir()), storagetest.Options{})
}

func TestConformanceInFolderWithOddName(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a b%41#?", "in"), 0o777))
	storagetest.Run(t, local.Driver(), target(dir+"/a b%41#?/"), storagetest.Options{Dir: "in", Few: true, Clients: 4})
}

// quiet is a Progress that counts.
type quiet struct{ moved int64 }

func (*quiet) Reached(storage.Phase) {}
func (q *quiet) Moved(n int)         { q.moved += int64(n) }
func (*quiet) ServedBy(string)       {}

func client(t *testing.T, folder string) storage.Client {
	t.Helper()
	return storagetest.Open(t, local.Driver(), target(folder)).Client()
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/file", nil, 0o666))
	for text, want := range map[string]string{
		"file://data/set":           "three slashes",
		"file:relative":             "has no folder",
		"file://" + dir + "?x=1":    "more than a folder",
		"file://" + dir + "/absent": "no such file",
		"http://localhost/":         "file URL",
	} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		_, err = local.Driver().Open(t.Context(), storage.Target{URL: u})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%s) = %v, want an error with %q", text, err, want)
		}
	}
}

func TestLinksCannotLeave(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.WriteFile(outside+"/secret", []byte("secret"), 0o666),
		os.Symlink(outside, dir+"/out"),
		os.Symlink(outside+"/secret", dir+"/direct"),
	} {
		require.NoError(t, err)
	}
	c := client(t, dir)
	for _, op := range []storage.Op{
		{Kind: storage.Read, Path: "out/secret", Size: -1},
		{Kind: storage.Read, Path: "direct", Size: -1},
		{Kind: storage.Write, Path: "out/new", Size: 5},
		{Kind: storage.Remove, Path: "out/secret"},
		{Kind: storage.Stat, Path: "out/secret"},
		{Kind: storage.List, Path: "out"},
		{Kind: storage.Mkdir, Path: "out/folder"},
		{Kind: storage.Remove, Path: "../" + filepath.Base(outside) + "/secret"},
		{Kind: storage.Remove, Path: ""},
		{Kind: storage.Remove, Path: "x/.."},
	} {
		var heard quiet
		if _, err := c.Do(t.Context(), &op, &heard); err == nil || heard.moved > 0 {
			t.Errorf("%s %q: %d bytes, error %v, want an error", op.Kind, op.Path, heard.moved, err)
		}
	}
	left, err := os.ReadDir(outside)
	if err != nil || len(left) != 1 || left[0].Name() != "secret" {
		t.Errorf("outside there are now %v, %v", left, err)
	}
}

func TestOddFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(dir+"/pipe", 0o666))
	require.NoError(t, os.Mkdir(dir+"/folder", 0o777))
	c := client(t, dir)
	for _, op := range []storage.Op{
		{Kind: storage.Read, Path: "pipe", Size: -1}, // would wait for a writer forever
		{Kind: storage.Checksum, Path: "pipe", Sum: "md5"},
		{Kind: storage.List, Path: "pipe"},
		{Kind: storage.Read, Path: "folder", Size: -1},
		{Kind: storage.Write, Path: "folder", Size: 10},
		{Kind: storage.Write, Path: "", Size: 10},
		{Kind: storage.Write, Path: "file", Size: -1},
		{Kind: storage.Read, Path: "folder/../pipe", Size: -1},
	} {
		if _, err := c.Do(t.Context(), &op, &quiet{}); err == nil {
			t.Errorf("%s %q works, want an error", op.Kind, op.Path)
		}
	}
}

// stopper cancels when payload has moved.
type stopper struct {
	quiet
	stop context.CancelFunc
}

func (s *stopper) Moved(int) { s.stop() }

func TestNoHalfFileIsLeft(t *testing.T) {
	dir := t.TempDir()
	c := client(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	op := storage.Op{Kind: storage.Write, Path: "f", Size: 1 << 20, Chunk: 1000}
	if _, err := c.Do(ctx, &op, &stopper{stop: cancel}); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled write: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

func TestUnfinishedFilesAreNotListed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/.weir-unfinished-1-1", nil, 0o666))
	for i := range 3000 { // more than one portion
		require.NoError(t, os.WriteFile(fmt.Sprintf("%s/f%d", dir, i), nil, 0o666))
	}
	res, err := client(t, dir).Do(t.Context(), &storage.Op{Kind: storage.List}, &quiet{})
	if err != nil || len(res.Entries) != 3000 {
		t.Errorf("%d entries, %v, want 3000", len(res.Entries), err)
	}
}

func TestDifferentSizeIsNoticed(t *testing.T) {
	dir := t.TempDir()
	b := make([]byte, 1000)
	content.Fill(b, 1, 0)
	require.NoError(t, os.WriteFile(dir+"/f", b, 0o666))
	c := client(t, dir)
	for want, sentinel := range map[int64]error{999: storage.ErrSize, 1000: nil, 1001: storage.ErrShort} {
		_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: want}, &quiet{})
		if !errors.Is(err, sentinel) {
			t.Errorf("1000 bytes, %d expected: %v, want %v", want, err, sentinel)
		}
	}
	_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Ranges: []storage.Range{{Offset: -1, Length: 5}}}, &quiet{})
	if err == nil {
		t.Error("a range before the start is read")
	}
}

func TestErrorsSayWhere(t *testing.T) {
	_, err := client(t, t.TempDir()).Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "a b"}, &quiet{})
	var e *storage.OpError
	if !errors.As(err, &e) || !strings.HasPrefix(e.URL, "file:///") || !strings.HasSuffix(e.URL, "/a%20b") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat of a missing file: %v", err)
	}
}

// TestFoldersWithUnfinishedFilesOfTheDead checks that the unfinished file of a killed writer does
// not prevent the removal of its folder, and that the file of a running writer does.
func TestFoldersWithUnfinishedFilesOfTheDead(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Skip("no program true: ", err)
	}
	folder := t.TempDir()
	c := client(t, folder)
	for name, pid := range map[string]int{"killed": dead.Process.Pid, "writing": os.Getpid()} {
		require.NoError(t, os.Mkdir(filepath.Join(folder, name), 0o700))
		file := filepath.Join(folder, name, fmt.Sprintf(".weir-unfinished-%d-7", pid))
		require.NoError(t, os.WriteFile(file, []byte("half"), 0o600))
		_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Remove, Path: name}, &quiet{})
		if _, gone := os.Stat(file); (gone != nil) != (name == "killed") || (err == nil) != (name == "killed") {
			t.Errorf("%s: error %v, its file: %v", name, err, gone)
		}
	}
}

// TestListingLeavesOutWhatCannotBeRead checks that unreadable entries are left out of listings and
// counted, and that a link to a file is listed with the size of the file.
func TestListingLeavesOutWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, err := range []error{
		os.WriteFile(dir+"/f", []byte("123"), 0o666), os.Symlink("f", dir+"/link"), os.Symlink("none", dir+"/dangling"),
		os.Symlink(".", dir+"/circle"),
		os.Symlink("/etc/passwd", dir+"/out"), syscall.Mkfifo(dir+"/pipe", 0o666),
	} {
		require.NoError(t, err)
	}
	res, err := client(t, dir).Do(t.Context(), &storage.Op{Kind: storage.List}, &quiet{})
	for _, e := range res.Entries {
		if (e.Name != "f" && e.Name != "link") || e.Size != 3 {
			t.Errorf("%+v", e)
		}
	}
	if err != nil || len(res.Entries) != 2 || res.Omitted != 4 || res.Omission == nil {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestFileAsTarget checks that a target that is a file can be read, and not be changed.
func TestFileAsTarget(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/f"
	require.NoError(t, os.WriteFile(file, []byte("123"), 0o666))
	c := client(t, file)
	for _, kind := range []storage.Kind{storage.Read, storage.Stat} {
		if res, err := c.Do(t.Context(), &storage.Op{Kind: kind, Size: -1}, &quiet{}); err != nil || res.Size != 3 {
			t.Errorf("%s: %+v, %v", kind, res, err)
		}
	}
	for _, op := range []storage.Op{{Kind: storage.List}, {Kind: storage.Read, Path: "f", Size: -1},
		{Kind: storage.Write, Size: 1}, {Kind: storage.Remove},
		{Kind: storage.Mkdir, Path: "d"}, {Kind: storage.Move, Source: "f", Path: "g"}} {
		if _, err := c.Do(t.Context(), &op, &quiet{}); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("%s %q: %v", op.Kind, op.Path, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "123" {
		t.Errorf("%q, %v", text, err)
	}
}
