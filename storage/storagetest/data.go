package storagetest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"weir/internal/content"
	"weir/internal/require"
	"weir/storage"
)

func (s *suite) sizes() []int64 {
	if s.o.Few {
		return []int64{0, 1, 65_537, min(1<<20, s.o.Largest)}
	}
	sizes := []int64{0, 1, content.HeadSize - 1, content.HeadSize + 1, 1000, 4096, 65_535, 65_537, 1<<20 - 1, 1 << 20, content.PatternSize +
		100, s.o.Largest}
	return slices.DeleteFunc(sizes, func(n int64) bool { return n > s.o.Largest })
}

func (s *suite) names() []string {
	all := []string{"plain.dat", "with space.dat", "100%25 done%.dat", "a+b&c=d;e,f.dat", "ünïcödé 漢字.dat", "what?#now.dat",
		"it's [a] {b} (c)~!$@.dat"}
	if s.lacks(QuestionMarks) {
		all = slices.DeleteFunc(all, func(name string) bool { return strings.Contains(name, "?") })
	}
	if s.lacks(ForeignNames) {
		all = slices.DeleteFunc(all, func(name string) bool {
			return strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII })
		})
	}
	if s.lacks(SpecialNames) {
		return all[:1]
	}
	if s.o.Few {
		return all[1:3]
	}
	return all
}

// testRead reads whole files, in memory and dropped, in all chunkings.
func (s *suite) testRead(t *testing.T) {
	s.need(t, storage.Read)
	c := s.client(t)
	for _, size := range s.sizes() {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			seed := uint64(size) + 7
			p := s.file(t, c, "f", seed, size)
			s.holds(t, c, p, seed, size)
			for _, op := range []storage.Op{
				{Size: -1}, {Size: size}, {Size: size, Chunk: 65_536, Ahead: 4}, {Size: -1, Chunk: 1 << 20, Ahead: 2},
			} {
				op.Kind, op.Path = storage.Read, p
				out := s.must(t, c, op)
				s.checkPayload(t, &op, out, seed, []storage.Range{{Length: size}})
			}
		})
	}
	t.Run("on the way", func(t *testing.T) {
		s.unless(t, EarlyProgress)
		p := s.file(t, c, "f", 6, s.o.Largest)
		onTheWay(t, s.must(t, c, storage.Op{Kind: storage.Read, Path: p, Size: s.o.Largest, Chunk: 65_536}), s.o.Largest)
		if s.offers(storage.Write) {
			w := s.path(t, "w")
			s.removeAfter(t, w)
			onTheWay(t, s.must(t, c, storage.Op{Kind: storage.Write, Path: w, Size: s.o.Largest, Seed: 6, Chunk: 65_536}), s.o.Largest)
		}
	})
	t.Run("shorter than expected", func(t *testing.T) {
		s.unless(t, ExpectedSize)
		p := s.file(t, c, "f", 3, 1000)
		out := s.do(t, c, storage.Op{Kind: storage.Read, Path: p, Size: 1001})
		if !errors.Is(out.err, storage.ErrShort) {
			t.Errorf("a file of 1000 bytes read as one of 1001 gives %v, want ErrShort", out.err)
		}
		if out = s.do(t, c, storage.Op{Kind: storage.Read, Path: p, Size: 999}); !errors.Is(out.err, storage.ErrSize) {
			t.Errorf("a file of 1000 bytes read as one of 999 gives %v, want ErrSize", out.err)
		}
		s.holds(t, c, p, 3, 1000)
	})
	t.Run("unknown checksum", func(t *testing.T) {
		s.unless(t, ReadSums)
		p := s.file(t, c, "f", 3, 1000)
		if out := s.do(t, c, storage.Op{Kind: storage.Read, Path: p, Size: -1, Sum: "rot13"}); out.err == nil {
			t.Errorf("a read with checksum rot13 gives %q, want an error", out.Sum)
		}
		s.holds(t, c, p, 3, 1000)
	})
}

// onTheWay fails if the bytes of a large file were reported all at once: they count when they move, not when the
// operation ends.
func onTheWay(t *testing.T, out outcome, size int64) {
	t.Helper()
	if out.heard.first > size/2 || out.heard.moved != size {
		t.Errorf("of %d bytes the first of %d calls of Moved tells %d", size, out.heard.calls, out.heard.first)
	}
}

// testRanges reads parts.
func (s *suite) testRanges(t *testing.T) {
	s.need(t, storage.Read)
	s.unless(t, Ranges)
	const size, seed = 300_000, 99
	c := s.client(t)
	p := s.file(t, c, "f", seed, size)
	tests := []struct {
		name   string
		ranges []storage.Range
	}{
		{"first byte", []storage.Range{{Offset: 0, Length: 1}}},
		{"last byte", []storage.Range{{Offset: size - 1, Length: 1}}},
		{"whole", []storage.Range{{Offset: 0, Length: size}}},
		{"middle", []storage.Range{{Offset: 12_345, Length: 123_456}}},
		{"zero length", []storage.Range{{Offset: 10, Length: 0}}},
		{"none at all", []storage.Range{}},
		{"three", []storage.Range{{Offset: 0, Length: 10}, {Offset: 1000, Length: 100_000}, {Offset: size - 5, Length: 5}}},
		{"adjacent", []storage.Range{{Offset: 0, Length: 1000}, {Offset: 1000, Length: 1000}}},
		{"descending", []storage.Range{{Offset: 200_000, Length: 50}, {Offset: 100, Length: 70}}},
		{"overlapping", []storage.Range{{Offset: 100, Length: 100}, {Offset: 150, Length: 100}}},
		{"one empty", []storage.Range{{Offset: 100, Length: 100}, {Offset: 500, Length: 0}, {Offset: 700, Length: 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if len(tt.ranges) > 1 {
				s.unless(t, SeveralRanges)
			}
			for _, sum := range s.sums() {
				op := storage.Op{Kind: storage.Read, Path: p, Size: size, Ranges: tt.ranges, Sum: sum}
				want := tt.ranges
				if want != nil && len(want) == 0 {
					continue // an empty list may mean the whole file or nothing: not requested
				}
				s.checkPayload(t, &op, s.must(t, c, op), seed, want)
			}
		})
	}
	s.testPastTheEnd(t, c, p, size, seed)
}

func (s *suite) sums() []string {
	if s.lacks(ReadSums) {
		return []string{""}
	}
	return []string{"", s.o.Sum}
}

// testPastTheEnd requests bytes beyond the end: the service must not send other bytes for them, and
// the operation must not succeed.
func (s *suite) testPastTheEnd(t *testing.T, c storage.Client, p string, size int64, seed uint64) {
	for name, r := range map[string]storage.Range{
		"over the end":    {Offset: size - 100, Length: 200},
		"behind the end":  {Offset: size, Length: 10},
		"far beyond":      {Offset: size * 1000, Length: 10},
		"endlessly large": {Offset: 1, Length: 1<<62 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			out := s.do(t, c, storage.Op{Kind: storage.Read, Path: p, Size: -1, Ranges: []storage.Range{r}})
			if !errors.Is(out.err, storage.ErrShort) {
				t.Errorf("%v of a file of %d bytes gives %v, want ErrShort", r, size, out.err)
			}
			if there := max(size-r.Offset, 0); out.heard.moved > there {
				t.Errorf("%v of a file of %d bytes moves %d bytes, there are %d", r, size, out.heard.moved, there)
			}
			s.holds(t, c, p, seed, size) // the session is still good
		})
	}
}

// testWrite makes files of all sizes and names and finds them again.
func (s *suite) testWrite(t *testing.T) {
	s.need(t, storage.Write)
	c := s.client(t)
	for _, name := range s.names() {
		t.Run("name "+name, func(t *testing.T) { s.roundTrip(t, c, name, 1234) })
	}
	for _, size := range s.sizes() {
		t.Run(fmt.Sprintf("size %d", size), func(t *testing.T) { s.roundTrip(t, c, "f.dat", size) })
	}
	t.Run("synced", func(t *testing.T) {
		p := s.path(t, "f.dat")
		s.removeAfter(t, p)
		s.must(t, c, storage.Op{Kind: storage.Write, Path: p, Size: 200_001, Seed: 5, Sync: true})
		if s.offers(storage.Read) {
			s.holds(t, c, p, 5, 200_001)
		}
	})
	for _, chunk := range []int{1000, 65_536} {
		t.Run(fmt.Sprintf("chunk %d", chunk), func(t *testing.T) {
			p := s.path(t, "f.dat")
			s.removeAfter(t, p)
			s.must(t, c, storage.Op{Kind: storage.Write, Path: p, Size: 200_001, Seed: 5, Chunk: chunk})
			if s.offers(storage.Read) {
				s.holds(t, c, p, 5, 200_001)
			}
		})
	}
}

// roundTrip writes a file, reads it in every way, and removes it.
func (s *suite) roundTrip(t *testing.T, c storage.Client, name string, size int64) {
	t.Helper()
	seed := uint64(size)*3 + 1
	p := s.file(t, c, name, seed, size)
	if s.offers(storage.Read) {
		s.holds(t, c, p, seed, size)
	}
	if s.offers(storage.Stat) {
		if out := s.must(t, c, storage.Op{Kind: storage.Stat, Path: p}); out.Size != size {
			t.Errorf("stat %q: %d bytes, want %d", p, out.Size, size)
		}
	}
	if s.offers(storage.List) {
		if e, ok := s.entry(t, c, p); !ok || e.Dir || e.Size >= 0 && e.Size != size {
			t.Errorf("list: entry of %q is %+v (there: %v), want a file of %d bytes", p, e, ok, size)
		}
	}
	if s.offers(storage.Remove) {
		s.must(t, c, storage.Op{Kind: storage.Remove, Path: p})
		s.gone(t, c, p)
	}
}

// testReplace writes a file twice: the second content, or a refusal and the first content, never a
// mixture.
func (s *suite) testReplace(t *testing.T) {
	s.need(t, storage.Write, storage.Read)
	s.unless(t, Replacing)
	c := s.client(t)
	for _, size := range []int64{500, 5000} {
		p := s.file(t, c, fmt.Sprint(size), 1, 1000)
		out := s.do(t, c, storage.Op{Kind: storage.Write, Path: p, Size: size, Seed: 2})
		switch {
		case out.err == nil:
			s.holds(t, c, p, 2, size)
		case errors.Is(out.err, fs.ErrExist), errors.Is(out.err, fs.ErrPermission):
			s.holds(t, c, p, 1, 1000)
		default:
			t.Errorf("writing a file again: %v, want nil, fs.ErrExist or fs.ErrPermission", out.err)
		}
	}
}

// testDest reads whole files into files of this machine.
func (s *suite) testDest(t *testing.T) {
	s.need(t, storage.Read)
	s.unless(t, LocalCopies)
	c := s.client(t)
	dest := filepath.Join(t.TempDir(), "copy of it")
	for _, size := range s.sizes() {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			seed := uint64(size) + 77
			p := s.file(t, c, "f", seed, size)
			for _, op := range []storage.Op{{Size: size}, {Size: -1}, {Size: size, Chunk: 65_536, Ahead: 4}, {Size: size, Plain: true}} {
				for _, op.Sum = range s.sums() {
					op.Kind, op.Path, op.Dest = storage.Read, p, dest
					s.checkPayload(t, &op, s.must(t, c, op), seed, []storage.Range{{Length: size}})
					copied(t, dest, seed, size) // with nothing left of the copy before
				}
			}
		})
	}
	const size, seed = 300_000, 78
	p := s.file(t, c, "f", seed, size)
	read := storage.Op{Kind: storage.Read, Path: p, Size: size, Dest: dest}
	t.Run("own", func(t *testing.T) { s.testDestIsOwn(t, c, read) })
	t.Run("part", func(t *testing.T) {
		op := read
		op.Ranges = []storage.Range{{Length: 10}}
		if out := s.do(t, c, op); !errors.Is(out.err, fs.ErrInvalid) && !errors.Is(out.err, errors.ErrUnsupported) {
			t.Errorf("a part of a file to a file of this machine: %v, want fs.ErrInvalid", out.err)
		}
	})
	t.Run("missing", func(t *testing.T) {
		op := read
		op.Path = s.path(t, "none")
		if out := s.do(t, c, op); !s.notThere(out.err) {
			t.Errorf("%v, want fs.ErrNotExist", out.err)
		}
		if b, err := os.ReadFile(dest); len(b) > 0 && !s.lacks(ClearErrors) {
			t.Errorf("the copy of a missing file has %d bytes, %v", len(b), err)
		}
	})
	t.Run("shorter", func(t *testing.T) {
		s.unless(t, ExpectedSize)
		op := read
		op.Size++
		if out := s.do(t, c, op); !errors.Is(out.err, storage.ErrShort) {
			t.Errorf("a file of %d bytes read as one of %d: %v, want ErrShort", size, op.Size, out.err)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		large := s.file(t, c, "large", seed, s.o.Largest)
		s.cancelWithin(t, c, storage.Op{Kind: storage.Read, Path: large, Size: s.o.Largest, Dest: dest, Chunk: 65_536})
	})
	t.Run("no folder", func(t *testing.T) { s.testScratch(t, c, read, filepath.Join(t.TempDir(), "none", "copy")) })
	t.Run("full", func(t *testing.T) {
		s.testScratch(t, c, storage.Op{Kind: storage.Read, Path: s.file(t, c, "large", seed, s.o.Largest), Size: s.o.Largest},
			filepath.Join(small(t), "copy"))
	})
	s.must(t, c, read)
	copied(t, dest, seed, size)
}

// testDestIsOwn checks that other users cannot write to a copy.
func (s *suite) testDestIsOwn(t *testing.T, c storage.Client, read storage.Op) {
	t.Helper()
	read.Dest = filepath.Join(t.TempDir(), "own")
	s.must(t, c, read)
	info, err := os.Stat(read.Dest)
	if err != nil || info.Mode().Perm()&0o022 != 0 {
		t.Errorf("%v: others may write to the copy, %v", info.Mode(), err)
	}
}

// testScratch reads to a file that cannot be written: the error must be a failure of this machine
// with the name of the file, and must not affect the next operation.
func (s *suite) testScratch(t *testing.T, c storage.Client, read storage.Op, dest string) {
	t.Helper()
	for _, read.Sum = range s.sums() {
		read.Dest = dest
		var at *storage.OpError
		out := s.do(t, c, read)
		switch {
		case storage.Classify(out.err) != storage.Scratch:
			t.Errorf("%v, want storage.ErrScratch", out.err)
		case !strings.Contains(out.err.Error(), dest):
			t.Errorf("%q does not name %s", out.err, dest)
		case errors.As(out.err, &at) && at.Server != "":
			t.Errorf("%q blames %s", out.err, at.Server)
		}
		read.Dest = filepath.Join(t.TempDir(), "elsewhere")
		s.must(t, c, read)
	}
}

// copied fails unless the file dest has the content of seed and size.
func copied(t *testing.T, dest string, seed uint64, size int64) {
	t.Helper()
	want := make([]byte, size)
	content.Fill(want, seed, 0)
	got, err := os.ReadFile(dest)
	require.NoError(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("the copy has %d bytes, and not those of the file, which has %d", len(got), size)
	}
}
