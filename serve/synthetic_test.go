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

// The federation of the MONARC tests: any of its pages, without anything kept
// for it.
func TestEvents(t *testing.T) {
	set, err := ParseEvents("50000x40KiB")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{Synthetic: []Set{set}})
	check(t, s, exchange{method: "HEAD", path: "/file000000.dat", code: 200, answer: map[string]string{"Content-Length": "2048000000"}})
	page := make([]byte, 8<<10)
	for _, at := range []int64{0, 8 << 10, 49_999 * 40 << 10, 2_048_000_000 - 8<<10} {
		content.Fill(page, SeedOf(0, "file000000.dat"), at)
		check(t, s, exchange{path: "/file000000.dat", header: map[string]string{"Range": fmt.Sprintf("bytes=%d-%d", at, at+8191)}, code: 206,
			want: string(page)})
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
	file := func(name string, size int) string { return made(content.Seed(7, name), size) }
	big := file("/file000002.dat", size)
	for _, x := range []exchange{
		{path: "/file000000.dat", code: 200, want: file("/file000000.dat", 100)},
		{path: "/file000001.dat", code: 200, want: file("/file000001.dat", 100)},
		{path: "/file000002.dat", code: 200, want: big},
		{path: "/file000002.dat", header: map[string]string{"Range": "bytes=30-4500000"}, code: 206, want: big[30:4500001]},
		{path: "/file000002.dat", header: map[string]string{"Range": "bytes=4300000-"}, code: 206, want: big[4300000:]},
		{path: "/file000002.dat", header: map[string]string{"Range": "bytes=60-70"}, code: 206, want: big[60:71]},
		{path: "/file000003.dat", code: 200, answer: map[string]string{"Content-Length": "0"}},
		{path: "/file000004.dat", code: 404},
		{path: "/file0.dat", code: 404},
		{path: "/file000000.dat/x", code: 404},
		{path: "/", code: 200, want: "file000000.dat\nfile000001.dat\nfile000002.dat\nfile000003.dat\n"},
	} {
		x.method = "GET"
		check(t, s, x)
	}
	resp, body := do(t, s, exchange{method: "GET", path: "/file000002.dat", header: map[string]string{"Range": "bytes=0-9,4999990-"}})
	if resp.StatusCode != 206 || !strings.Contains(body, big[:10]) || !strings.Contains(body, big[size-10:]) {
		t.Errorf("two ranges: %d", resp.StatusCode)
	}
}

func TestUploadsToNothing(t *testing.T) {
	s := start(t, Config{Synthetic: []Set{{3, 1000}}, Memory: 1000})
	big := made(5, 3_000_000)
	odd := big[:1_000_000] + "!" + big[1_000_001:]
	to := func(p string) map[string]string { return map[string]string{"Destination": p} }
	for _, x := range []exchange{
		{method: "PUT", path: "/made", body: big, code: 201},
		{method: "GET", path: "/made", code: 200, want: big},
		{method: "HEAD", path: "/made", header: map[string]string{"Want-Digest": "md5"}, code: 200},
		{method: "PUT", path: "/short", body: big[:20], code: 201},
		{method: "GET", path: "/short", code: 200, want: big[:20]},
		{method: "PUT", path: "/text", body: "some text", code: 201},
		{method: "GET", path: "/text", code: 200, want: "some text"},
		{method: "PUT", path: "/none", body: "", code: 201},
		{method: "GET", path: "/none", code: 200},
		{method: "PUT", path: "/odd", body: odd, code: 507}, // seems made, but for one byte
		{method: "GET", path: "/odd", code: 404},
		{method: "PUT", path: "/odd", body: odd[:500], code: 201},
		{method: "PUT", path: "/more", body: strings.Repeat("m", 992), code: 507},
		{method: "PUT", path: "/more", body: strings.Repeat("m", 991), code: 201},
		{method: "PUT", path: "/more", body: "less", code: 507}, // the old one stays until the new one is whole
		{method: "GET", path: "/more", code: 200, want: strings.Repeat("m", 991)},
		{method: "DELETE", path: "/more", code: 204},
		{method: "PUT", path: "/more", body: "less", code: 201},
		{method: "PUT", path: "/file000001.dat", body: "mine", code: 204},
		{method: "GET", path: "/file000001.dat", code: 200, want: "mine"},
		{method: "DELETE", path: "/file000001.dat", code: 204},
		{method: "GET", path: "/file000001.dat", code: 404},
		{method: "DELETE", path: "/file000002.dat", code: 204},
		{method: "DELETE", path: "/file000002.dat", code: 404},
		{method: "MKCOL", path: "/d", code: 201},
		{method: "MKCOL", path: "/d", code: 405},
		{method: "MKCOL", path: "/file000000.dat", code: 405},
		{method: "PUT", path: "/x/y", body: "x", code: 409},
		{method: "PUT", path: "/d", body: "x", code: 405},
		{method: "MOVE", path: "/file000000.dat", header: to("/d/zero"), code: 201},
		{method: "GET", path: "/file000000.dat", code: 404},
		{method: "GET", path: "/d/zero", code: 200, want: made(content.Seed(0, "/file000000.dat"), 1000)},
		{method: "COPY", path: "/made", header: to("/d/copy"), code: 201},
		{method: "GET", path: "/d/copy", code: 200, want: big},
		{method: "MOVE", path: "/d", header: to("/d/e"), code: 409},
		{method: "MOVE", path: "/d", header: to("/e"), code: 201},
		{method: "DELETE", path: "/e", code: 409},
		{method: "GET", path: "/e/", code: 200, want: "copy\nzero\n"},
		{method: "DELETE", path: "/e/copy", code: 204},
		{method: "DELETE", path: "/e/zero", code: 204},
		{method: "DELETE", path: "/e", code: 204},
		{method: "GET", path: "/", code: 200, want: "made\nmore\nnone\nodd\nshort\ntext\n"},
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
		check(t, s, exchange{method: "PUT", path: fmt.Sprintf("/f%d", i), body: made(1, 100), code: code})
	}
	check(t, s, exchange{method: "PUT", path: "/f0", body: "again", code: 204})
	check(t, s, exchange{method: "DELETE", path: "/f0", code: 204})
	check(t, s, exchange{method: "PUT", path: "/f3", body: "now", code: 201})
}

func TestParallelSyntheticUploads(t *testing.T) {
	s := start(t, Config{Synthetic: []Set{{1, 1}}})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			body := made(uint64(i), 400_000)
			if resp, _ := do(t, s, exchange{method: "PUT", path: fmt.Sprintf("/f%d", i%5), body: body}); resp.StatusCode/100 != 2 {
				t.Errorf("PUT: %d", resp.StatusCode)
			}
		})
	}
	wg.Wait()
	for i := range 5 {
		resp, body := do(t, s, exchange{method: "GET", path: fmt.Sprintf("/f%d", i)})
		seed, ok := content.Recognize([]byte(body))
		if resp.StatusCode != 200 || !ok || int(seed)%5 != i || body != made(seed, 400_000) {
			t.Errorf("f%d: %d, not a file that was put there", i, resp.StatusCode)
		}
	}
	if b := s.tree.(*synthetic).bytes; b != 0 {
		t.Errorf("%d bytes are booked", b)
	}
}

// TestKernelSends asks strace whether a file leaves by sendfile.
func TestKernelSends(t *testing.T) {
	dir, report := t.TempDir(), filepath.Join(t.TempDir(), "strace")
	write(t, made(1, 8<<20), dir, "file000000.dat")
	cmd, url := startChild(t, dir)
	trace := exec.CommandContext(t.Context(), need(t, "strace"), "-ff", "-e", "trace=sendfile", "-o", report, "-p",
		fmt.Sprint(cmd.Process.Pid))
	said, err := trace.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(said, make([]byte, 1)); err != nil { // it says that it is attached
		t.Skip("strace may not trace here")
	}
	resp, err := http.Get(url + "/file000000.dat")
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || n != 8<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
	_ = resp.Body.Close()
	_ = trace.Process.Signal(os.Interrupt)
	_, _ = io.Copy(io.Discard, said)
	_ = trace.Wait() // by the signal
	files, err := filepath.Glob(report + ".*")
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
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
