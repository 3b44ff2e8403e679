package serve

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/serve/servetest/requests"
)

func parts(dir string) int {
	found, _ := filepath.Glob(filepath.Join(dir, hidden+"-*"+partSuffix))
	return len(found)
}

func TestAbortedPutLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Config{Dir: dir})
	for _, head := range []string{"Content-Length: 100000", "Transfer-Encoding: chunked"} {
		c := requests.Dial(t, s.URL(), "PUT /f HTTP/1.1\r\nHost: x\r\n"+head+"\r\n\r\n400\r\n"+requests.Content(1, 400))
		require.Eventually(t, "a temporary file", func() bool { return parts(dir) == 1 })
		require.NoError(t, c.Close())
		require.Eventually(t, "no temporary file", func() bool { return parts(dir) == 0 })
	}
	if got := requests.Names(t, dir); got != "" {
		t.Errorf("the folder has %s", got)
	}
}

func TestStalledPutEnds(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Config{Dir: dir, StallTimeout: 200 * time.Millisecond})
	c := requests.Dial(t, s.URL(), "PUT /f HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestTimeout || parts(dir) != 0 {
		t.Errorf("%d, %d temporaries", resp.StatusCode, parts(dir))
	}
}

// TestKilledPut kills a server process in the middle of an upload: its file does not appear, and
// the next server removes the rest of it, and no more.
func TestKilledPut(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	mine := requests.Write(t, "mine", dir, "sub", hidden+"-mine") // the prefix, but no temporary
	requests.Write(t, "old", dir, "sub", "f")
	cmd, url := startChild(t, dir)
	requests.Dial(t, url, "PUT /sub/f HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"+requests.Content(1, 5000))
	require.Eventually(t, "a temporary file", func() bool { return parts(filepath.Join(dir, "sub")) == 1 })
	second := start(t, Config{Dir: dir}) // while the first lives, its temporary is not touched
	if parts(filepath.Join(dir, "sub")) != 1 {
		t.Error("the second server removed the first one's temporary")
	}
	check(t, second, exchange{Method: "PUT", Path: "/sub/g", Body: "g", Code: 201})
	if err := second.tree.(*dirTree).left.close(); err != nil { // as if it ended
		t.Fatal(err)
	}
	second.tree.(*dirTree).left.file = nil
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // by the signal
	if requests.Read(t, dir, "sub", "f") != "old" || parts(filepath.Join(dir, "sub")) != 1 {
		t.Error("the kill changed the file, or left no temporary")
	}
	third := start(t, Config{Dir: dir})
	if n := parts(filepath.Join(dir, "sub")); n != 0 {
		t.Errorf("%d temporaries are left", n)
	}
	if requests.Read(t, mine) != "mine" {
		t.Error("a file that is no temporary was touched")
	}
	check(t, third, exchange{Method: "GET", Path: "/sub/f", Code: 200, Want: "old"})
}

// TestFullDisk uploads to a file system of 1 MiB.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("only root on Linux can mount a small file system")
	}
	dir := t.TempDir()
	if err := syscall.Mount("weir-test", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := start(t, Config{Dir: dir})
	check(t, s, exchange{Method: "PUT", Path: "/small", Body: requests.Content(1, 100_000), Code: 201})
	check(t, s, exchange{Method: "PUT", Path: "/large", Body: requests.Content(1, 2_000_000), Code: 507})
	check(t, s, exchange{Method: "COPY", Path: "/small", Header: map[string]string{"Destination": "/2"}, Code: 201})
	if got := requests.Names(t, dir); got != "2 small" {
		t.Errorf("the folder has %s", got)
	}
	check(t, s, exchange{Method: "PUT", Path: "/fits", Body: requests.Content(1, 500_000), Code: 201})
}

// TestFileThatShrinks cuts a file while it is sent: the client must not take the received part for
// the whole.
func TestFileThatShrinks(t *testing.T) {
	dir := t.TempDir()
	p := requests.Write(t, requests.Content(1, 64<<20), dir, "f")
	s := start(t, Config{Dir: dir})
	resp, err := http.Get(s.URL() + "/f")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.NoError(t, os.Truncate(p, 1000))
	if n, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Errorf("%d bytes and no error", n)
	}
}

// TestTidyEnd checks that only files remain in a folder that was served.
func TestTidyEnd(t *testing.T) {
	dir := t.TempDir()
	t.Run("served", func(t *testing.T) {
		s := start(t, Config{Dir: dir})
		check(t, s, exchange{Method: "PUT", Path: "/f", Body: "f", Code: 201})
		if _, err := os.Stat(filepath.Join(dir, notesName)); err != nil {
			t.Errorf("no notes while uploads are possible: %v", err)
		}
	})
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "f" {
		t.Errorf("the folder has %v (%v)", entries, err)
	}
}
