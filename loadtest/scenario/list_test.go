package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/loadtest/workload"
)

func readList(t *testing.T, text string) (List, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list.txt")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	l, err := ReadList(path, "gsiftp://host/hadoop")
	if err != nil {
		err = fmt.Errorf("%s", strings.ReplaceAll(err.Error(), path, "list.txt"))
	}
	return l, err
}

func TestReadList(t *testing.T) {
	text := "\ufeff# files\r\n/Path/To/File/test_1.file\r\n\r\n  a/b.root 1024\r\nc d.root\t2GiB\nc d.root " +
		"2147483648\n./a/./b.root\n.//f\nPath/To/File/test_1.file\ngsiftp://host/hadoop/x%20y\nlast 5 things"
	got, err := readList(t, text)
	want := List{Repeated: 3, Files: []workload.File{
		{Path: "Path/To/File/test_1.file", Size: -1}, {Path: "a/b.root", Size: 1024}, {Path: "c d.root", Size: 2 << 30}, {Path: "f", Size: -1},
		{Path: "x y", Size: -1},
		{Path: "last 5 things", Size: -1},
	}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	for text, want := range map[string]string{
		"":                          "files.list: list.txt contains no path; write one path a line",
		"# none\n\n":                "files.list: list.txt contains no path; write one path a line",
		"a\n../b\n":                 `list.txt:2:1: "../b" leaves the target: dots like these have no place in a path`,
		"a 1\n./a 2\n":              `list.txt:2:1: "a" has 2 bytes here and 1 above: a path has one size`,
		".\n":                       `list.txt:1:1: "." is a folder: name a file`,
		"a/.\n":                     `list.txt:1:1: "a/." is a folder: name a file`,
		"/\n":                       `list.txt:1:1: "/" is a folder: name a file`,
		"a/\n":                      `list.txt:1:1: "a/" is a folder: name a file`,
		"http://other/a\n":          `list.txt:1:1: "http://other/a" is not below the target gsiftp://host/hadoop/`,
		"gsiftp://host/had":         `list.txt:1:1: "gsiftp://host/had" is not below the target gsiftp://host/hadoop/`,
		"a\x00b\n":                  `list.txt:1:1: "a\x00b" is not a path: this looks like no text file`,
		strings.Repeat("x", 20_000): `list.txt:1:1: longer than 16384 bytes: write one path a line`,
	} {
		if _, err := readList(t, text); err == nil || err.Error() != want {
			t.Errorf("%.40q\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestReadLongList(t *testing.T) {
	var b strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&b, "/store/data/file_%06d.root %d\n", i, i)
	}
	start := time.Now()
	l, err := readList(t, b.String())
	if err != nil || len(l.Files) != 100_000 || l.Files[99_999].Size != 99_999 {
		t.Fatalf("%d files, %v", len(l.Files), err)
	}
	t.Logf("100,000 lines in %v", time.Since(start))
}

func FuzzList(f *testing.F) {
	f.Add("a\nb 1MiB\n# c\n")
	f.Add("gsiftp://host/hadoop/%zz\n../x")
	f.Fuzz(func(t *testing.T, text string) {
		l := &lister{path: "l", target: "gsiftp://host/hadoop/", seen: map[string]int64{}}
		if err := l.read(strings.NewReader(text)); err != nil {
			return
		}
		for _, file := range l.list.Files {
			if file.Path == "" || file.Path[0] == '/' || strings.Contains("/"+file.Path+"/", "/../") || file.Size < -1 {
				t.Errorf("%+v", file)
			}
		}
	})
}
