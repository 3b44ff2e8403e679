package command

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/content"
	"weir/internal/require"
	"weir/storage"
)

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name string
		read func([]byte) (int64, error)
		text string
		want int64
		bad  bool
	}{
		{"gfal", statSize, "  File: 'http://h/Size: 7'\n  Size: 300000\tregular file\nAccess: (0755/-rwxr-xr-x)\n", 300000, false},
		{"gfal", statSize, "", -1, true},
		{"gfal", statSize, "  Size: 99999999999999999999\tregular file", -1, true},
		{"xrdfs", statSize, "\nPath:   /data/f\nId:     42\nSize:   6\nMTime:  x\n", 6, false},
		{"xrdfs", statSize, "Size: -6\n", -1, true},
		{"curl", headerSize, "HTTP/1.1 302 Found\r\nContent-Length: 3\r\nLocation: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length:  77 \r\n\r\n", 77,
			false},
		{"curl", headerSize, "HTTP/1.1 302 Found\r\nContent-Length: 3\r\n\r\nHTTP/1.1 200 OK\r\nServer: x\r\n\r\n", -1, false},
		{"curl", headerSize, "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", -1, true},
	} {
		got, err := c.read([]byte(c.text))
		if got != c.want || (err != nil) != c.bad || err != nil && !errors.Is(err, storage.ErrProtocol) {
			t.Errorf("%s: %d, %v of %q, want %d", c.name, got, err, c.text, c.want)
		}
	}
}

func TestListings(t *testing.T) {
	for _, c := range []struct {
		name     string
		read     func([]byte, string, string) (entries, error)
		at, url  string
		text     string
		want     entries
		sentinel error
	}{
		{"gfal", gfalList, "", "", "-rwxrwxrwx   0 0     0             1 Nov 21 21:21 a b \t\ndrwxrwxrwx   0 0     0          4096 Nov " +
			"21  2025 d\tmore\n", entries{{Name: "a b ", Size: 1}, {Name: "d", Size: -1, Dir: true}}, nil},
		{"gfal of a file", gfalList, "", "", "-rw-------   1 0     0        300000 Nov 21 21:21 root://h:1//data/f.dat\t\n", nil,
			syscall.ENOTDIR},
		{"gfal, nonsense", gfalList, "", "", "total 0\n", nil, storage.ErrProtocol},
		{"xrdfs", xrdfsList, "//data", "", "drwxr-xr-x 20124d    ?   4096 2026-11-21 21:21:49 /data/d\n-rw-r--r-- root root 300000 2026-11-21 " +
			"21:21:49 /data/f  g.dat\n", entries{{Name: "d", Size: -1, Dir: true}, {Name: "f  g.dat", Size: 300000}}, nil},
		{"xrdfs, root", xrdfsList, "", "", "-rw-r--r-- root root 3 2026-11-21 21:21:49 /f\n", entries{{Name: "f", Size: 3}}, nil},
		{"xrdfs of a file", xrdfsList, "/data/f", "", "-rw-r--r-- 20124d ? 300000 2026-11-21 21:21:49 /data/f\n", nil, syscall.ENOTDIR},
		{"xrdfs, empty", xrdfsList, "/data", "", "", entries{}, nil},
		{"globus", globusList, "", "ftp://h:1/d", "ftp://h:1/d/\n    -dash \n    a b \n    d/\n    ftp://h:1/d/q'x \n\n",
			entries{{Name: "-dash", Size: -1}, {Name: "a b", Size: -1}, {Name: "d", Size: -1, Dir: true}, {Name: "q'x", Size: -1}}, nil},
		{"globus, nonsense", globusList, "", "ftp://h:1/d", "ftp://h:1/d/\nline\n", nil, storage.ErrProtocol},
	} {
		got, err := c.read([]byte(c.text), c.at, c.url)
		if !errors.Is(err, c.sentinel) || c.sentinel == nil && err != nil {
			t.Errorf("%s: %v, want %v", c.name, err, c.sentinel)
		}
		if d := cmp.Diff(c.want, got); d != "" && err == nil {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

func TestByWords(t *testing.T) {
	for text, want := range map[string]error{
		"cp: cannot create 'x': Permission denied":             fs.ErrPermission,
		"cat: x: No such file or directory":                    fs.ErrNotExist,
		"Temporary: Too Many Requests":                         storage.ErrBusy,
		"Segmentation fault":                                   nil,
		"Run: [FATAL] Connection error:  (source)":             syscall.ECONNREFUSED,
		"ssh: connect to host h port 22: Connection timed out": nil,
	} {
		got := byWords(text)
		if want == nil && strings.Contains(text, "timed out") {
			if storage.Classify(got) != storage.Timeout {
				t.Errorf("%q is %v", text, got)
			}
			continue
		}
		if !errors.Is(got, want) {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

// TestSourcesAreBounded checks that files to send are removed if there are many, but never while
// they are sent.
func TestSourcesAreBounded(t *testing.T) {
	s := newSources(t.TempDir()+"/", 2500)
	exists := func(name string) bool { _, err := os.Stat(name); return err == nil }
	a, releaseA, err := s.get(t.Context(), 1, 1000)
	require.NoError(t, err)
	names := []string{}
	for seed := range uint64(4) {
		name, release, err := s.get(t.Context(), 10+seed, 1000)
		require.NoError(t, err)
		if b, err := os.ReadFile(name); err != nil || len(b) != 1000 || !content.Equal(b, 10+seed, 0) {
			t.Errorf("seed %d: %d bytes, %v", seed, len(b), err)
		}
		release()
		names = append(names, name)
	}
	if !exists(a) || exists(names[0]) || !exists(names[3]) {
		t.Errorf("in use %v (want true), oldest %v (false), newest %v (true)", exists(a), exists(names[0]), exists(names[3]))
	}
	again, release, err := s.get(t.Context(), 13, 1000)
	if err != nil || again != names[3] {
		t.Errorf("the newest was made again: %s, %v", again, err)
	}
	release()
	releaseA()
	if s.total > 2500 || len(s.files) > 2 {
		t.Errorf("%d bytes in %d files are kept", s.total, len(s.files))
	}
	bad := newSources(t.TempDir()+"/none/", 100)
	for range 2 {
		if _, _, err := bad.get(t.Context(), 1, 10); err == nil || storage.Classify(err) != storage.Other {
			t.Errorf("no folder for files: %v, want an error that is not the service's", err)
		}
	}
	if len(bad.files) != 0 || bad.total != 0 {
		t.Errorf("what could not be made is counted: %v", bad)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"{url}", "a{path}b{{}}", "{", "}", "{{", "}}", "{unknown}", "%{{size_download}", "{url{path}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		l, err := parse([]string{"program", arg}, placeholders())
		if err != nil {
			return
		}
		argv, err := l.expand(func(name string) (string, error) { return "<" + name + ">", nil })
		if err != nil || len(argv) != 2 {
			t.Fatalf("%q: %q, %v", arg, argv, err)
		}
		if !strings.ContainsAny(arg, "{}") && argv[1] != arg {
			t.Errorf("%q became %q", arg, argv[1])
		}
		back, err := parse([]string{"program", strings.NewReplacer("{", "{{", "}", "}}").Replace(arg)}, nil)
		if err != nil {
			t.Fatalf("escaped %q: %v", arg, err)
		}
		if same, err := back.expand(nil); err != nil || same[1] != arg {
			t.Errorf("escaped %q became %q, %v", arg, same, err)
		}
	})
}

func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		"  Size: 3\tregular file\n", "Size:   6\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
		"-rwxrwxrwx   0 0     0             1 Nov 21 21:21 a b\t\n", "drwxr-xr-x 1 ? 4096 2026-11-21 21:21:49 /data/d\n",
		"ftp://h/d/\n    a \n    d/\n", "adler32 5e51b5a6\n", "gfal-copy error: 5 (x) - HTTP 503 : y", "[3011] z",
		"curl: (22) The requested URL returned error: 404",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, read := range []func([]byte) (int64, error){statSize, statSize, headerSize} {
			if n, err := read(text); n < -1 || err != nil && n != -1 {
				t.Errorf("size %d, %v", n, err)
			}
		}
		if n, ok := lastNumber(text); ok && n < 0 {
			t.Errorf("number %d", n)
		}
		if word, ok := lastWord(text); ok && strings.Trim(word, "0123456789abcdef") != "" {
			t.Errorf("checksum %q", word)
		}
		for _, read := range []func([]byte, string, string) (entries, error){gfalList, xrdfsList, globusList} {
			list, err := read(text, "/data", "ftp://h/d")
			for _, e := range list {
				if err == nil && (e.Name == "" || e.Name == "." || e.Name == ".." || e.Size < -1) {
					t.Errorf("entry %+v", e)
				}
			}
		}
		for _, status := range []int{1, 2, 22, 54, 255} {
			for _, known := range []func(int, string) error{gfalFailure, xrdFailure, curlFailure} {
				if err := known(status, string(text)); err != nil && storage.Classify(err) == storage.None {
					t.Errorf("status %d: %v is no class", status, err)
				}
			}
		}
		if s := tidy(text, []string{"secret"}); len([]rune(s)) > 501 || strings.ContainsAny(s, "\n\r\x1b\x00") || strings.Contains(s, "secret") {
			t.Errorf("tidy: %q", s)
		}
	})
}
