package storagetest

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"weir/internal/content"
	"weir/internal/require"
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

// gone fails if p still exists.
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
	if out := s.do(t, c, storage.Op{Kind: storage.Mkdir, Path: outer}); out.err != nil && !errors.Is(out.err, fs.ErrExist) &&
		!s.lacks(ClearErrors) {
		t.Errorf("making a folder again: %v, want nil or fs.ErrExist", out.err)
	}
	if s.offers(storage.Remove) {
		s.testRemoveFolder(t, c, outer, inner)
	}
}

// testRemoveFolder checks that only an empty folder can be removed: a run must never remove files
// that it did not create.
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
	if s.lacks(SafeRemove) { // a folder is on several servers of a cluster, and each removal is on one of them
		for range mostCopies {
			if out := s.do(t, c, storage.Op{Kind: storage.Remove, Path: outer}); errors.Is(out.err, fs.ErrNotExist) {
				break
			}
		}
	}
	s.gone(t, c, outer)
}

// mostCopies is the largest number of servers with a folder.
const mostCopies = 8

// testMissing requests missing files with every kind of operation.
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

// testEscape requests paths outside of the target.
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
		require.NoError(t, err)
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

// testMove renames files and folders, and expects errors for invalid renames.
func (s *suite) testMove(t *testing.T) {
	s.need(t, storage.Move, storage.Write)
	const seed, size = 31, 12_345
	c := s.client(t)
	move := func(from, to string) storage.Op { return storage.Op{Kind: storage.Move, Source: from, Path: to} }
	t.Run("file", func(t *testing.T) {
		from, to := s.file(t, c, "from", seed, size), s.path(t, "to")
		s.removeAfter(t, to)
		s.must(t, c, move(from, to))
		s.gone(t, c, from)
		if s.offers(storage.Read) {
			s.holds(t, c, to, seed, size)
		}
		s.must(t, c, move(to, from)) // and back
		s.gone(t, c, to)
	})
	t.Run("missing", func(t *testing.T) {
		to := s.path(t, "to")
		s.removeAfter(t, to)
		if out := s.do(t, c, move(s.path(t, "none"), to)); !s.notThere(out.err) {
			t.Errorf("%v, want fs.ErrNotExist", out.err)
		}
	})
	t.Run("onto another", func(t *testing.T) {
		s.unless(t, SafeMove)
		from, to := s.file(t, c, "from", seed, size), s.file(t, c, "to", seed+1, size+1)
		if out := s.do(t, c, move(from, to)); !errors.Is(out.err, fs.ErrExist) && (out.err == nil || !s.lacks(ClearErrors)) {
			t.Errorf("%v, want fs.ErrExist", out.err)
		}
		s.holds(t, c, from, seed, size)
		s.holds(t, c, to, seed+1, size+1)
	})
	t.Run("folder", func(t *testing.T) { s.testMoveFolder(t, c) })
	t.Run("escape", func(t *testing.T) {
		from := s.file(t, c, "from", seed, size)
		far := strings.Repeat("../", 12) + "tmp/" + path.Base(from)
		for _, op := range []storage.Op{move(from, far), move(far, s.path(t, "to"))} {
			if out := s.do(t, c, op); out.err == nil {
				t.Errorf("%q is moved to %q, which is not below the target", op.Source, op.Path)
			}
		}
		s.holds(t, c, from, seed, size)
	})
}

func (s *suite) testMoveFolder(t *testing.T, c storage.Client) {
	s.need(t, storage.Mkdir, storage.Remove)
	s.unless(t, FolderMove)
	from, to := s.path(t, "a"), s.path(t, "b")
	s.must(t, c, storage.Op{Kind: storage.Mkdir, Path: from})
	s.removeAfter(t, from)
	s.removeAfter(t, to)
	s.must(t, c, storage.Op{Kind: storage.Write, Path: from + "/f", Size: 10, Seed: 1})
	s.removeAfter(t, from+"/f")
	s.removeAfter(t, to+"/f")
	s.must(t, c, storage.Op{Kind: storage.Move, Source: from, Path: to})
	if s.offers(storage.Read) {
		s.holds(t, c, to+"/f", 1, 10)
	}
	s.gone(t, c, from)
}

// testLocate requests the locations of files.
func (s *suite) testLocate(t *testing.T) {
	s.need(t, storage.Locate)
	c := s.client(t)
	p := s.file(t, c, "f", 3, 1000)
	for range 2 {
		out := s.must(t, c, storage.Op{Kind: storage.Locate, Path: p, Size: 1000})
		if len(out.Servers) == 0 {
			t.Errorf("no server named %q", p)
		}
		for _, server := range out.Servers {
			if i := strings.LastIndexByte(server, ':'); i <= 0 || i == len(server)-1 {
				t.Errorf("server %q: want host:port", server)
			}
		}
	}
	if out := s.do(t, c, storage.Op{Kind: storage.Locate, Path: path.Join(s.o.Dir, "no-such-file")}); !s.notThere(out.err) {
		t.Errorf("of a missing file: %v, want fs.ErrNotExist", out.err)
	}
	s.holds(t, c, p, 3, 1000)
}

// testPing checks whether the service is available, before and within a session.
func (s *suite) testPing(t *testing.T) {
	s.need(t, storage.Ping)
	c := s.client(t)
	for i := range 3 {
		out := s.must(t, c, storage.Op{Kind: storage.Ping})
		if first := i == 0; s.o.Network && !s.lacks(KeptSessions) && out.heard.reached(storage.Connected) != first {
			t.Errorf("ping %d reached %v", i+1, out.heard.phases)
		}
	}
}

// testKeep reads files that stay open, and files that do not, in turns.
func (s *suite) testKeep(t *testing.T) {
	s.need(t, storage.Read)
	const seed, size = 41, 200_000
	c := s.client(t)
	p, other := s.file(t, c, "kept", seed, size), s.file(t, c, "other", seed+1, size)
	read := func(p string, seed uint64, keep bool, sum string, ranges ...storage.Range) {
		t.Helper()
		op := storage.Op{Kind: storage.Read, Path: p, Size: size, Keep: keep, Sum: sum, Ranges: ranges}
		if ranges == nil {
			ranges = []storage.Range{{Length: size}}
		}
		s.checkPayload(t, &op, s.must(t, c, op), seed, ranges)
	}
	for _, sum := range s.sums() {
		for range 3 {
			read(p, seed, true, sum)
		}
		if !s.lacks(Ranges) {
			read(p, seed, true, sum, storage.Range{Offset: 1000, Length: 70_000})
		}
		read(other, seed+1, true, sum) // another file in between
		read(p, seed, true, sum)
		read(p, seed, false, sum)
		read(p, seed, false, sum)
		read(other, seed+1, false, sum)
	}
	read(p, seed, true, "")
	if err := c.Close(); err != nil {
		t.Errorf("Close with a file open: %v", err)
	}
	read(p, seed, true, "")
	if out := s.do(t, c, storage.Op{Kind: storage.Read, Path: s.path(t, "none"), Size: -1, Keep: true}); !s.notThere(out.err) {
		t.Errorf("a missing file: %v, want fs.ErrNotExist", out.err)
	}
	read(p, seed, true, "")
}

// testPlain reads and writes without the checksums of pages.
func (s *suite) testPlain(t *testing.T) {
	s.need(t, storage.Read)
	c := s.client(t)
	for _, size := range s.sizes() {
		seed := uint64(size) + 9
		p := s.path(t, fmt.Sprintf("f%d", size)) // a new name each time: redirectors remember a name for a while
		if s.offers(storage.Write) {
			s.removeAfter(t, p)
			out := s.must(t, c, storage.Op{Kind: storage.Write, Path: p, Size: size, Seed: seed, Plain: true})
			if out.heard.moved != size {
				t.Errorf("plain write: %d bytes moved of %d", out.heard.moved, size)
			}
		} else {
			p = s.file(t, c, fmt.Sprintf("f%d", size), seed, size)
		}
		for _, sum := range s.sums() {
			for _, chunk := range []int{0, 65_536} {
				op := storage.Op{Kind: storage.Read, Path: p, Size: size, Sum: sum, Plain: true, Chunk: chunk, Ahead: 3}
				s.checkPayload(t, &op, s.must(t, c, op), seed, []storage.Range{{Length: size}})
			}
		}
		s.holds(t, c, p, seed, size) // and with them
		if s.offers(storage.Remove) {
			s.must(t, c, storage.Op{Kind: storage.Remove, Path: p})
		}
	}
}
