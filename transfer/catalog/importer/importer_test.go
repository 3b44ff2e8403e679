package importer

import (
	"context"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/serve"
	"weir/storage"
	"weir/storage/all"
	"weir/transfer/catalog"
)

func text(e catalog.Entry) string {
	return fmt.Sprintf("%s block=%s size=%d %s %s path=%s", e.Name, e.Block, e.Size, e.Adler, e.More, e.Path)
}

// collect returns the files that a sequence yields, sorted.
func collect(seq iter.Seq2[catalog.Entry, error]) (found []string, err error) {
	for e, err := range seq {
		if err != nil {
			return found, err
		}
		found = append(found, text(e))
	}
	slices.Sort(found)
	return found, nil
}

// fill creates a folder of files, each with its name as content.
func fill(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name), 0o644)))
	}
}

func line(dataset, block, name, path string) string {
	return fmt.Sprintf("%s/%s block=%s size=%d %08x  path=%s", dataset, name, block, len(path), adler32.Checksum([]byte(path)), path)
}

func opened(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "d/f1", "d/a/f2", "d/a/deep/f3", "d/with space?#%41/ä", "d/.weir/1.1.part", "d/.weir.state", "other/f", "d/bad\xff",
		"d/badfolder\xff/f", "d/line\nend", ".weir/2.1.part", ".weir-serve-agent/door")
	for _, err := range []error{
		os.Symlink("f1", filepath.Join(dir, "d/link")),
		os.Symlink("../other/f", filepath.Join(dir, "d/across")),
		os.Symlink("../../out", filepath.Join(dir, "d/out")),
		os.Symlink("/etc/passwd", filepath.Join(dir, "d/absolute")),
		os.Symlink("nowhere", filepath.Join(dir, "d/broken")),
		os.Symlink(".", filepath.Join(dir, "d/circle")),
		syscall.Mkfifo(filepath.Join(dir, "d/pipe"), 0o644),
		os.Symlink("pipe", filepath.Join(dir, "d/topipe")),
		os.Mkdir(filepath.Join(dir, "d/empty"), 0o755),
	} {
		require.NoError(t, err)
	}
	wrong := map[string]string{}
	got, err := collect(Folder(t.Context(), opened(t, dir), "/d/",
		Options{Dataset: "/store/run1", Wrong: func(path string, err error) { wrong[path] = err.Error() }}))
	require.NoError(t, err)
	want := []string{
		line("/store/run1", "", "f1", "d/f1"), line("/store/run1", "a", "a/f2", "d/a/f2"), line("/store/run1", "a", "a/deep/f3", "d/a/deep/f3"),
		line("/store/run1", "with space?#%41", "with space?#%41/ä", "d/with space?#%41/ä"),
		strings.Replace(line("/store/run1", "", "link", "d/f1"), "path=d/f1", "path=d/link", 1),
		strings.Replace(line("/store/run1", "", "across", "other/f"), "path=other/f", "path=d/across", 1),
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	left := []string{"d/.weir", "d/.weir.state", "d/absolute", "d/badfolder\xff", "d/bad\xff", "d/broken", "d/circle", "d/line\nend", "d/out",
		"d/pipe", "d/topipe"}
	if diff := cmp.Diff(left, slices.Sorted(maps.Keys(wrong))); diff != "" {
		t.Error(diff)
	}
	for path, want := range map[string]string{"d/out": "it is a link to ../../out: links are followed only to files below the site's root",
		"d/absolute": "a link to /etc/passwd: links", "d/broken": "a link to nowhere, which is not there"} {
		if !strings.Contains(wrong[path], want) {
			t.Errorf("%s: %s", path, wrong[path])
		}
	}
	if got, err := collect(Folder(t.Context(), opened(t, filepath.Join(dir, "d/a")), "", Options{})); err != nil || len(got) != 2 ||
		got[1] != strings.ReplaceAll(line("", "", "f2", "d/a/f2"), "path=d/a/f2", "path=") {
		t.Errorf("%q, %v", got, err)
	}
	for _, folder := range []string{"nowhere", "d/f1", "d/out", ".weir", "d/.weir", ".weir-serve-agent"} {
		if got, err := collect(Folder(t.Context(), opened(t, dir), folder, Options{Wrong: func(string, error) {}})); err == nil {
			t.Errorf("%s: %q", folder, got)
		}
	}
	if _, err := collect(Folder(t.Context(), opened(t, dir), "d", Options{})); err == nil {
		t.Error("what is left out ended nothing")
	}
}

// A file that changes while it is read has no checksum.
func TestFolderChanging(t *testing.T) {
	for what, change := range map[string]func(path string) error{
		"grows":    func(path string) error { return os.WriteFile(path, []byte("longer than it was"), 0o644) },
		"replaced": func(path string) error { return os.Rename(path+".new", path) },
		"removed":  os.Remove,
	} {
		dir := t.TempDir()
		fill(t, dir, "f", "f.new")
		root := opened(t, dir)
		var e catalog.Entry
		c := &atEnd{Context: t.Context(), do: func() {
			if err := change(filepath.Join(dir, "f")); err != nil {
				t.Error(err)
			}
		}}
		if err := read(c, root, "f", make([]byte, 1), &e); !errors.Is(err, errChanged) {
			t.Errorf("%s: %+v, %v", what, e, err)
		}
	}
}

// An atEnd is a context that calls a function at the first call of Err.
type atEnd struct {
	context.Context
	do func()
}

func (a *atEnd) Err() error {
	if a.do != nil {
		a.do()
		a.do = nil
	}
	return nil
}

func TestStopsEarly(t *testing.T) {
	dir := t.TempDir()
	for i := range 500 {
		fill(t, dir, fmt.Sprint("f", i))
	}
	n := 0
	for range Folder(t.Context(), opened(t, dir), "", Options{}) {
		if n++; n == 3 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n = 0
	var last error
	for _, err := range Folder(ctx, opened(t, dir), "", Options{Wrong: func(string, error) {}}) {
		if n++; n == 3 {
			cancel()
		}
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("ended by %v after %d", last, n)
	}
}

func TestCSV(t *testing.T) {
	want := []string{`/a, "b" block=b size=0 00000abc md5=aa,sha256=bb path=x/y`, "/c block= size=1152921504606846976   path="}
	for _, table := range []string{
		"name,size,adler32,block,path,checksums\n\"/a, \"\"b\"\"\",0,ABC,b,x/y,\"sha256=BB,md5=aa\"\n/c,1152921504606846976,,,,\n",
		"\ufeff# made by hand\n\nSize; Path;Name;checksums;block;adler32\r\n0;x/y;\"/a, \"\"b\"\"\";sha256=bb,md5=aa;b;00000abc\r\n# " +
			"more\r\n1152921504606846976;;/c;;;\r\n",
		"name\tsize\tadler32\tpath\tblock\tchecksums\n\"/a, \"\"b\"\"\"\t0\tabc\tx/y\tb\tsha256=bb,md5=aa\n/c\t1152921504606846976\t\t\t\t",
	} {
		got, err := collect(csvOf("t.csv", strings.NewReader(table)))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", table, err, diff)
		}
	}
}

func TestCSVErrors(t *testing.T) {
	for table, want := range map[string]string{
		"":                                     "line 1: the table is empty",
		"# only this\n":                        "line 1: the table is empty",
		"/a,5\n":                               `line 1: there is no column "/a": use name, size`,
		"name,size,name\n":                     `line 1: column "name" is there twice`,
		"name,adler32\n":                       `line 1: column "size" is missing`,
		"name,size\n/a,5\n\n/b,x\n":            `line 4: size "x" is not valid: write a number of bytes`,
		"name,size\n/a,5 GB\n":                 `line 2: size "5 GB" is not valid`,
		"name,size\n/a,-1\n":                   "line 2: size of",
		"name,size\n/a,5,6\n":                  "line 2: it has 3 columns, the first line has 2",
		"name,size\n/a\n":                      "line 2: it has 1 columns",
		"name,size\na,5\n":                     "line 2: name \"a\" is not valid: it must begin with a slash",
		"name,size,path\n/a,5,../../etc\n":     "line 2: path",
		"name,size,adler32\n/a,5,zz\n":         "line 2: adler32",
		"name,size\n/a\"b,5\n":                 "line 2, column",
		"name,size\n\"/a,5\n":                  "line ",
		"name,size\n/a,99999999999999999999\n": "line 2: size",
		"name,size\n/ok,1\n\"" + strings.Repeat("x", 1<<20): "line 3 or below: it has more than 65536 bytes",
	} {
		_, err := collect(csvOf("t.csv", strings.NewReader(table)))
		if err == nil || !strings.HasPrefix(err.Error(), "t.csv: "+want) {
			t.Errorf("%.60q: %v, want %s", table, err, want)
		}
	}
}

// FuzzCSV checks that no table causes a panic or yields an entry that the catalog refuses.
func FuzzCSV(f *testing.F) {
	f.Add("name,size,adler32\n/a,5,abc\n")
	f.Add("\ufeffsize;name;path;block;checksums\n5;\"/a\n\";x;b;md5=a\n")
	f.Fuzz(func(t *testing.T, table string) {
		for e, err := range csvOf("t.csv", io.LimitReader(strings.NewReader(table), 1<<20)) {
			if err != nil {
				if !strings.HasPrefix(err.Error(), "t.csv: line ") || strings.ContainsAny(err.Error(), "\n\x00\x1b") {
					t.Errorf("%q", err)
				}
				return
			}
			if again, err := catalog.CheckEntry(e); err != nil || again != e {
				t.Errorf("%+v: %v", e, err)
			}
		}
	})
}

// service opens the storage service that a lab runs.
func service(t *testing.T, address string) storage.Service {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	for _, d := range all.Drivers() {
		if slices.Contains(d.Schemes, u.Scheme) {
			s, err := d.Open(t.Context(), storage.Target{URL: u})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
	}
	t.Fatalf("no driver for %s", address)
	return nil
}

// A real XRootD server reports sizes and checksums over each of its two protocols.
func TestListing(t *testing.T) {
	x := labtest.Start(t, lab.XRootDConfig{})
	names := []string{"d/f1", "d/a/f2", "d/a/deep/f3", "d/with space/ä", "d/.weir/1.1.part", "other/f"}
	for _, name := range names {
		require.NoError(t, x.WriteFile(name, []byte(name)))
	}
	want := []string{
		line("/store/run1", "", "f1", "d/f1"), line("/store/run1", "a", "a/f2", "d/a/f2"), line("/store/run1", "a", "a/deep/f3", "d/a/deep/f3"),
		line("/store/run1", "with space", "with space/ä", "d/with space/ä"),
	}
	slices.Sort(want)
	for _, scheme := range []string{"root", "http"} {
		got, err := collect(listingOf(t.Context(), remote{Service: service(t, x.URLs[scheme]), Folder: "/d/", Sums: true},
			Options{Dataset: "/store/run1"}))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", scheme, err, diff)
		}
		if got, err := collect(listingOf(t.Context(), remote{Service: service(t, x.URLs[scheme]), Folder: "nowhere"},
			Options{Wrong: func(string, error) {}})); err == nil {
			t.Errorf("%s: a folder that is not there: %q", scheme, got)
		}
	}
}

// The files of a server without checksums are listed without them.
func TestListingWithoutSums(t *testing.T) {
	x := labtest.Start(t, lab.NginxConfig{})
	require.NoError(t, x.WriteFile("a/f", []byte("hello")))
	got, err := collect(listingOf(t.Context(), remote{Service: service(t, x.URL), Sums: true}, Options{}))
	if want := []string{"/a/f block=a size=5   path="}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

// A malicious service lists entries outside the folder, circular folders, and invalid names.
func TestListingEvil(t *testing.T) {
	wrong := map[string]int{}
	got, err := collect(listingOf(t.Context(), remote{Service: evil{}, Sums: true},
		Options{Dataset: "/d", Wrong: func(path string, _ error) { wrong[path]++ }}))
	if err != nil || !slices.Equal(got, []string{"/d/fine block= size=7 0000000a  path=fine"}) {
		t.Errorf("%q, %v", got, err)
	}
	if wrong["/"] != 5 || wrong["nosum"] != 1 || wrong["nosize"] != 1 || wrong["bad\n"] != 1 || wrong["/"+strings.Repeat("o/", 64)+"o"] != 1 ||
		len(wrong) != 5 {
		t.Errorf("left out: %v", wrong)
	}
}

type evil struct{}

func (evil) Client() storage.Client { return evil{} }
func (evil) Close() error           { return nil }

func (evil) Do(_ context.Context, op *storage.Op, _ storage.Progress) (r storage.Result, err error) {
	switch {
	case op.Kind == storage.List && op.Path == "":
		for _, name := range []string{"..", "../../etc", "/etc/passwd", "", "a//b", "bad\n", "fine", "nosum", "nosize"} {
			r.Entries = append(r.Entries, storage.Entry{Name: name, Size: 7})
		}
		r.Entries[8].Size = -1
		r.Entries = append(r.Entries, storage.Entry{Name: "o", Dir: true})
	case op.Kind == storage.List:
		r.Entries = []storage.Entry{{Name: "o", Dir: true}}
	case op.Kind == storage.Stat:
		r.Size = -1
	case op.Path == "nosum":
		r.Sum = "adler32:<script>"
	default:
		r.Sum = "adler32:a"
	}
	return r, nil
}

// Folders that a page links without a slash are listed, and entries with invalid names are
// reported.
func TestListingOfPages(t *testing.T) {
	pages := map[string]string{"/": `<a href="..">..</a><a href="f">f</a><a href="sub">sub</a>`,
		"/sub/": `<a href="g">g</a><a href="a%2fb">a%2fb</a>`}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, folder := pages[r.URL.Path]
		switch {
		case r.Method == "PROPFIND":
			w.WriteHeader(http.StatusNotImplemented)
		case r.URL.Path == "/sub":
			http.Redirect(w, r, "/sub/", http.StatusFound)
		case folder:
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(page)) // the response to HEAD has no body
		default:
			w.Header().Set("Content-Length", "5")
			_, _ = w.Write([]byte("hello"))
		}
	}))
	defer s.Close()
	wrong := map[string]int{}
	o := Options{Wrong: func(path string, _ error) { wrong[path]++ }}
	got, err := collect(listingOf(t.Context(), remote{Service: service(t, s.URL)}, o))
	want := []string{"/f block= size=5   path=", "/sub/g block=sub size=5   path="}
	if err != nil || !slices.Equal(got, want) || len(wrong) != 1 || wrong["/sub"] != 1 {
		t.Errorf("%q, %v, %v", got, wrong, err)
	}
}

// A doubled slash in the address of a folder does not change the names of its files.
func TestListingOfFolderSpelledOtherwise(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "sub/run/f", "sub/run/deep/g")
	served, err := serve.New(serve.Config{Dir: dir})
	require.NoError(t, err)
	s := httptest.NewServer(served)
	defer s.Close()
	defer served.Close()
	some := Options{Match: func(path string) bool { return path == "deep/g" }}
	got, err := collect(listingOf(t.Context(), remote{Service: service(t, s.URL+"/sub/run")}, some))
	if err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "/deep/g") {
		t.Errorf("some files: %q, %v", got, err)
	}
	got, err = collect(Folder(t.Context(), opened(t, dir), "sub/run", some))
	if err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "/deep/g") {
		t.Errorf("some files here: %q, %v", got, err)
	}
	for _, folder := range []string{"/sub//run", "//sub/run/", "/sub/%72un"} {
		got, err := collect(listingOf(t.Context(), remote{Service: service(t, s.URL+folder)}, Options{}))
		if err != nil || len(got) != 2 || !strings.HasPrefix(got[0], "/deep/g") || !strings.HasPrefix(got[1], "/f ") {
			t.Errorf("%s: %q, %v", folder, got, err)
		}
	}
}
