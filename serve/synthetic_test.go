package serve

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/content"
	"weir/internal/require"
	"weir/serve/servetest/requests"
)

func TestParseSynthetic(t *testing.T) {
	for text, want := range map[string][]Set{
		"1000x1MiB":        {{1000, 1 << 20}},
		"1x0":              {{1, 0}},
		"2x1KiB, 3x 10GiB": {{2, 1024}, {3, 10 << 30}},
	} {
		got, err := ParseSynthetic(text)
		if err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "1000", "1MiB", "0x1MiB", "-1x1MiB", "1x-1MiB", "1x1", "1x1MiB,", "99999999x1B",
		"9999999x1B,9999999x1B", "1x9999999EiB", "1.5x1MiB"} {
		if got, err := ParseSynthetic(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		} else if !strings.Contains(err.Error(), "synthetic files") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseEvents(t *testing.T) {
	for text, want := range map[string]Set{
		"50000x40KiB":        {1, 50000 * 40 << 10},
		"4x50000x40KiB":      {4, 50000 * 40 << 10},
		" 2 x 3 x 4B":        {2, 12},
		"1x2147483647x4GiB":  {1, 2147483647 * 4 << 30},
		"10000000x1x1B":      {10_000_000, 1},
		"1x1x9223372036854B": {1, 9223372036854},
	} {
		if got, err := ParseEvents(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "xx", "50000", "40KiB", "0x40KiB", "50000x0", "0x50000x40KiB", "-1x5x4B", "1x-5x4B", "1x2x3x4B",
		"1x5x4", "50000x40KiB,1x1MiB",
		"2147483647x8EiB", "1x2147483647x4EiB", "99999999x1x1B", "50000xx40KiB", "1x50000x40KiBx"} {
		if got, err := ParseEvents(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		} else if !strings.Contains(err.Error(), "50000x40KiB") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The federation of the MONARC tests can be served: any of its pages is generated, and no data is
// stored.
func TestEvents(t *testing.T) {
	set, err := ParseEvents("50000x40KiB")
	require.NoError(t, err)
	s := start(t, Config{Synthetic: []Set{set}})
	check(t, s, exchange{Method: "HEAD", Path: "/file000000.dat", Code: 200, Answer: map[string]string{"Content-Length": "2048000000"}})
	page := make([]byte, 8<<10)
	for _, at := range []int64{0, 8 << 10, 49_999 * 40 << 10, 2_048_000_000 - 8<<10} {
		content.Fill(page, SeedOf(0, "file000000.dat"), at)
		check(t, s, exchange{Path: "/file000000.dat", Header: map[string]string{"Range": fmt.Sprintf("bytes=%d-%d", at, at+8191)}, Code: 206,
			Want: string(page)})
	}
}

func FuzzParseSynthetic(f *testing.F) {
	f.Add("1000x1MiB")
	f.Add("1x0,2x1.5GB")
	f.Add("xx,")
	f.Fuzz(func(t *testing.T, text string) {
		sets, err := ParseSynthetic(text)
		if err == nil && (len(sets) == 0 || checkSets(sets) != nil) {
			t.Errorf("%q gives %v", text, sets)
		}
	})
}

func TestInventedNames(t *testing.T) {
	for _, i := range []int{0, 1, 999999, 1000000, maxInvented - 1} {
		if got, ok := inventedIndex(inventedName(i)); !ok || got != i {
			t.Errorf("%d becomes %s becomes %d", i, inventedName(i), got)
		}
	}
	for _, name := range []string{"", "file.dat", "file1.dat", "file0000001.dat", "file-00001.dat", "file+00001.dat", "file000001",
		"file9999999999.dat"} {
		if i, ok := inventedIndex(name); ok {
			t.Errorf("%q is file %d", name, i)
		}
	}
}

func TestInventedFiles(t *testing.T) {
	const size = 5_000_000
	s := start(t, Config{Synthetic: []Set{{2, 100}, {1, size}, {1, 0}}, Seed: 7})
	file := func(name string, size int) string { return requests.Content(content.Seed(7, name), size) }
	big := file("/file000002.dat", size)
	for _, x := range []exchange{
		{Path: "/file000000.dat", Code: 200, Want: file("/file000000.dat", 100)},
		{Path: "/file000001.dat", Code: 200, Want: file("/file000001.dat", 100)},
		{Path: "/file000002.dat", Code: 200, Want: big},
		{Path: "/file000002.dat", Header: map[string]string{"Range": "bytes=30-4500000"}, Code: 206, Want: big[30:4500001]},
		{Path: "/file000002.dat", Header: map[string]string{"Range": "bytes=4300000-"}, Code: 206, Want: big[4300000:]},
		{Path: "/file000002.dat", Header: map[string]string{"Range": "bytes=60-70"}, Code: 206, Want: big[60:71]},
		{Path: "/file000003.dat", Code: 200, Answer: map[string]string{"Content-Length": "0"}},
		{Path: "/file000004.dat", Code: 404},
		{Path: "/file0.dat", Code: 404},
		{Path: "/file000000.dat/x", Code: 404},
		{Path: "/", Code: 200, Want: "file000000.dat\nfile000001.dat\nfile000002.dat\nfile000003.dat\n"},
	} {
		x.Method = "GET"
		check(t, s, x)
	}
	resp, body := do(t, s, exchange{Method: "GET", Path: "/file000002.dat", Header: map[string]string{"Range": "bytes=0-9,4999990-"}})
	if resp.StatusCode != 206 || !strings.Contains(body, big[:10]) || !strings.Contains(body, big[size-10:]) {
		t.Errorf("two ranges: %d", resp.StatusCode)
	}
}

func TestUploadsToNothing(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Synthetic: []Set{{3, 1000}}, Memory: 1000})
	big := requests.Content(5, 3_000_000)
	odd := big[:1_000_000] + "!" + big[1_000_001:]
	to := func(p string) map[string]string { return map[string]string{"Destination": p} }
	for _, x := range []exchange{
		{Method: "PUT", Path: "/made", Body: big, Code: 201},
		{Method: "GET", Path: "/made", Code: 200, Want: big},
		{Method: "HEAD", Path: "/made", Header: map[string]string{"Want-Digest": "md5"}, Code: 200},
		{Method: "PUT", Path: "/short", Body: big[:20], Code: 201},
		{Method: "GET", Path: "/short", Code: 200, Want: big[:20]},
		{Method: "PUT", Path: "/text", Body: "some text", Code: 201},
		{Method: "GET", Path: "/text", Code: 200, Want: "some text"},
		{Method: "PUT", Path: "/none", Body: "", Code: 201},
		{Method: "GET", Path: "/none", Code: 200},
		{Method: "PUT", Path: "/odd", Body: odd, Code: 507}, // seems made, but for one byte
		{Method: "GET", Path: "/odd", Code: 404},
		{Method: "PUT", Path: "/odd", Body: odd[:500], Code: 201},
		{Method: "PUT", Path: "/more", Body: strings.Repeat("m", 992), Code: 507},
		{Method: "PUT", Path: "/more", Body: strings.Repeat("m", 991), Code: 201},
		{Method: "PUT", Path: "/more", Body: "less", Code: 507}, // the old file stays until the new file is whole
		{Method: "GET", Path: "/more", Code: 200, Want: strings.Repeat("m", 991)},
		{Method: "DELETE", Path: "/more", Code: 204},
		{Method: "PUT", Path: "/more", Body: "less", Code: 201},
		{Method: "PUT", Path: "/file000001.dat", Body: "mine", Code: 204},
		{Method: "GET", Path: "/file000001.dat", Code: 200, Want: "mine"},
		{Method: "DELETE", Path: "/file000001.dat", Code: 204},
		{Method: "GET", Path: "/file000001.dat", Code: 404},
		{Method: "DELETE", Path: "/file000002.dat", Code: 204},
		{Method: "DELETE", Path: "/file000002.dat", Code: 404},
		{Method: "MKCOL", Path: "/d", Code: 201},
		{Method: "MKCOL", Path: "/d", Code: 405},
		{Method: "MKCOL", Path: "/file000000.dat", Code: 405},
		{Method: "PUT", Path: "/x/y", Body: "x", Code: 409},
		{Method: "PUT", Path: "/d", Body: "x", Code: 405},
		{Method: "MOVE", Path: "/file000000.dat", Header: to("/d/zero"), Code: 201},
		{Method: "GET", Path: "/file000000.dat", Code: 404},
		{Method: "GET", Path: "/d/zero", Code: 200, Want: requests.Content(content.Seed(0, "/file000000.dat"), 1000)},
		{Method: "COPY", Path: "/made", Header: to("/d/copy"), Code: 201},
		{Method: "GET", Path: "/d/copy", Code: 200, Want: big},
		{Method: "MOVE", Path: "/d", Header: to("/d/e"), Code: 409},
		{Method: "MOVE", Path: "/d", Header: to("/e"), Code: 201},
		{Method: "DELETE", Path: "/e", Code: 409},
		{Method: "GET", Path: "/e/", Code: 200, Want: "copy\nzero\n"},
		{Method: "DELETE", Path: "/e/copy", Code: 204},
		{Method: "DELETE", Path: "/e/zero", Code: 204},
		{Method: "DELETE", Path: "/e", Code: 204},
		{Method: "GET", Path: "/", Code: 200, Want: "made\nmore\nnone\nodd\nshort\ntext\n"},
	} {
		check(t, s, x)
	}
	tree := s.tree.(*synthetic)
	if want := int64(len("some text") + len("less")); tree.bytes != want {
		t.Errorf("%d bytes are booked, want %d", tree.bytes, want)
	}
}

func TestSyntheticRemembersSoMany(t *testing.T) {
	s := start(t, Config{Synthetic: []Set{{1, 1}}, MaxFiles: 3})
	for i, code := range []int{201, 201, 201, 507} {
		check(t, s, exchange{Method: "PUT", Path: fmt.Sprintf("/f%d", i), Body: requests.Content(1, 100), Code: code})
	}
	check(t, s, exchange{Method: "PUT", Path: "/f0", Body: "again", Code: 204})
	check(t, s, exchange{Method: "DELETE", Path: "/f0", Code: 204})
	check(t, s, exchange{Method: "PUT", Path: "/f3", Body: "now", Code: 201})
}

func TestParallelSyntheticUploads(t *testing.T) {
	s := start(t, Config{Synthetic: []Set{{1, 1}}})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			body := requests.Content(uint64(i), 400_000)
			if resp, _ := do(t, s, exchange{Method: "PUT", Path: fmt.Sprintf("/f%d", i%5), Body: body}); resp.StatusCode/100 != 2 {
				t.Errorf("PUT: %d", resp.StatusCode)
			}
		})
	}
	wg.Wait()
	for i := range 5 {
		resp, body := do(t, s, exchange{Method: "GET", Path: fmt.Sprintf("/f%d", i)})
		seed, ok := content.Recognize([]byte(body))
		if resp.StatusCode != 200 || !ok || int(seed)%5 != i || body != requests.Content(seed, 400_000) {
			t.Errorf("f%d: %d, not a file that was put there", i, resp.StatusCode)
		}
	}
	if b := s.tree.(*synthetic).bytes; b != 0 {
		t.Errorf("%d bytes are booked", b)
	}
}

// TestKernelSends checks with strace whether a file is sent by sendfile.
func TestKernelSends(t *testing.T) {
	dir, report := t.TempDir(), filepath.Join(t.TempDir(), "strace")
	requests.Write(t, requests.Content(1, 8<<20), dir, "file000000.dat")
	cmd, url := startChild(t, dir)
	trace := exec.CommandContext(t.Context(), requests.Program(t, "strace"), "-ff", "-e", "trace=sendfile", "-o", report, "-p",
		fmt.Sprint(cmd.Process.Pid))
	said, err := trace.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, trace.Start())
	if _, err := io.ReadFull(said, make([]byte, 1)); err != nil { // strace prints that it is attached
		t.Skip("strace may not trace here")
	}
	resp, err := http.Get(url + "/file000000.dat")
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || n != 8<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
	_ = resp.Body.Close()
	_ = trace.Process.Signal(os.Interrupt)
	_, _ = io.Copy(io.Discard, said)
	_ = trace.Wait() // by the signal
	files, err := filepath.Glob(report + ".*")
	require.NoError(t, err)
	sent := 0
	for _, file := range files {
		text := require.File(t, file)
		for line := range strings.Lines(string(text)) {
			var n int
			if _, result, ok := strings.Cut(line, ") = "); ok {
				_, _ = fmt.Sscan(result, &n) // a failed call has -1
				sent += max(n, 0)
			}
		}
	}
	if sent < 8<<20-128 {
		t.Errorf("only %d of %d bytes left by sendfile", sent, 8<<20)
	}
}
