package storagetest

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"

	"weir/internal/content"
	"weir/storage"
)

// entry finds p in the listing of its folder.
func (s *suite) entry(t *testing.T, c storage.Client, p string) (storage.Entry, bool) {
	t.Helper()
	dir, base := path.Split(p)
	out := s.must(t, c, storage.Op{Kind: storage.List, Path: strings.TrimSuffix(dir, "/")})
	seen := map[string]bool{}
	var found storage.Entry
	for _, e := range out.Entries {
		if e.Name == "" || e.Name == "." || e.Name == ".." || seen[e.Name] {
			t.Errorf("list %q: odd or repeated entry %+v", dir, e)
		}
		seen[e.Name] = true
		if e.Name == base {
			found = e
		}
	}
	return found, seen[base]
}

// gone fails unless p is not there any more.
func (s *suite) gone(t *testing.T, c storage.Client, p string) {
	t.Helper()
	if s.offers(storage.Stat) {
		if out := s.do(t, c, storage.Op{Kind: storage.Stat, Path: p}); !s.notThere(out.err) {
			t.Errorf("stat of removed %q: %v, want fs.ErrNotExist", p, out.err)
		}
	}
	if s.offers(storage.List) {
		if e, ok := s.entry(t, c, p); ok {
			t.Errorf("removed %q is still listed: %+v", p, e)
		}
	}
}

func (s *suite) notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || err != nil && s.lacks(ClearErrors)
}

// testFolders makes folders, fills, lists and removes them.
func (s *suite) testFolders(t *testing.T) {
	s.need(t, storage.Mkdir, storage.List)
	c := s.client(t)
	outer := s.path(t, "outer")
	inner := outer + "/in ner"
	if s.lacks(SpecialNames) {
		inner = outer + "/inner"
	}
	s.removeAfter(t, outer)
	s.must(t, c, storage.Op{Kind: storage.Mkdir, Path: outer})
	s.removeAfter(t, inner)
	if out := s.must(t, c, storage.Op{Kind: storage.List, Path: outer}); len(out.Entries) != 0 {
		t.Errorf("a new folder holds %+v", out.Entries)
	}
	s.must(t, c, storage.Op{Kind: storage.Mkdir, Path: inner})
	if e, ok := s.entry(t, c, inner); !ok || !e.Dir {
		t.Errorf("list: entry of folder %q is %+v (there: %v)", inner, e, ok)
	}
	if out := s.do(t, c, storage.Op{Kind: storage.Mkdir, Path: outer}); out.err != nil && !errors.Is(out.err, fs.ErrExist) && !s.lacks(ClearErrors) {
		t.Errorf("making a folder again: %v, want nil or fs.ErrExist", out.err)
	}
	if s.offers(storage.Remove) {
		s.testRemoveFolder(t, c, outer, inner)
	}
}

// testRemoveFolder checks that only an empty folder goes: a run must never
// take along what it did not make.
func (s *suite) testRemoveFolder(t *testing.T, c storage.Client, outer, inner string) {
	t.Helper()
	if !s.lacks(SafeRemove) {
		if out := s.do(t, c, storage.Op{Kind: storage.Remove, Path: outer}); out.err == nil {
			t.Errorf("a folder with a folder in it was removed")
		}
		if _, ok := s.entry(t, c, inner); !ok {
			t.Fatalf("%q is gone although its folder could not be removed", inner)
		}
	}
	s.must(t, c, storage.Op{Kind: storage.Remove, Path: inner})
	s.must(t, c, storage.Op{Kind: storage.Remove, Path: outer})
	s.gone(t, c, outer)
}

// testMissing asks every kind for what is not there.
func (s *suite) testMissing(t *testing.T) {
	c := s.client(t)
	for _, k := range []storage.Kind{storage.Read, storage.Stat, storage.List, storage.Remove, storage.Checksum} {
		if !s.offers(k) || k == storage.Checksum && s.lacks(ServerSums) {
			continue
		}
		for name, p := range map[string]string{"file": "no-such-file", "folder": "no-such-folder/file"} {
			t.Run(k.String()+" "+name, func(t *testing.T) {
				op := storage.Op{Kind: k, Path: path.Join(s.o.Dir, p), Size: -1}
				if k == storage.Checksum {
					op.Sum = s.o.Sum
				}
				out := s.do(t, c, op)
				if !s.notThere(out.err) {
					t.Errorf("%v, want fs.ErrNotExist", out.err)
				}
				if out.heard.moved != 0 {
					t.Errorf("%d bytes of a missing file moved", out.heard.moved)
				}
			})
		}
	}
}

// testEscape asks for what lies outside of the target.
func (s *suite) testEscape(t *testing.T) {
	s.need(t, storage.Read)
	c := s.client(t)
	for _, p := range []string{strings.Repeat("../", 12) + "etc/passwd", "a/../../../../../../../../../../etc/passwd", "/etc/passwd"} {
		out := s.do(t, c, storage.Op{Kind: storage.Read, Path: p, Size: -1})
		if out.err == nil || out.heard.moved > 0 {
			t.Errorf("read %q: %d bytes, error %v, want an error", p, out.heard.moved, out.err)
		}
	}
}

// testChecksum compares the service's own checksum with the content's.
func (s *suite) testChecksum(t *testing.T) {
	s.need(t, storage.Checksum)
	s.unless(t, ServerSums)
	c := s.client(t)
	for _, size := range []int64{0, 1, 100_000} {
		p := s.file(t, c, "f"+string(rune('a'+size%7)), 77, size)
		want, err := content.Sum(s.o.Sum, 77, 0, size)
		if err != nil {
			t.Fatal(err)
		}
		if s.o.Summed != nil {
			s.o.Summed(t, p)
		}
		out := s.must(t, c, storage.Op{Kind: storage.Checksum, Path: p, Sum: s.o.Sum, Size: -1})
		if out.Sum != want {
			t.Errorf("checksum of %d bytes is %q, want %q", size, out.Sum, want)
		}
	}
	p := s.file(t, c, "rot", 1, 10)
	if out := s.do(t, c, storage.Op{Kind: storage.Checksum, Path: p, Sum: "rot13", Size: -1}); out.err == nil {
		t.Errorf("checksum rot13 gives %q, want an error", out.Sum)
	}
}
