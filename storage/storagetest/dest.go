package storagetest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/content"
	"weir/storage"
)

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
					s.copied(t, dest, seed, size) // with nothing left of the copy before
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
		s.testScratch(t, c, storage.Op{Kind: storage.Read, Path: s.file(t, c, "large", seed, s.o.Largest), Size: s.o.Largest}, filepath.Join(small(t), "copy"))
	})
	s.must(t, c, read)
	s.copied(t, dest, seed, size)
}

// testDestIsOwn looks who else may read a copy.
func (s *suite) testDestIsOwn(t *testing.T, c storage.Client, read storage.Op) {
	t.Helper()
	read.Dest = filepath.Join(t.TempDir(), "own")
	s.must(t, c, read)
	info, err := os.Stat(read.Dest)
	if err != nil || info.Mode().Perm()&0o022 != 0 {
		t.Errorf("%v: others may write to the copy, %v", info.Mode(), err)
	}
}

// testScratch reads to where it cannot: this machine's fault, by name, and
// nothing that the next operation minds.
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
func (*suite) copied(t *testing.T, dest string, seed uint64, size int64) {
	t.Helper()
	want := make([]byte, size)
	content.Fill(want, seed, 0)
	got, err := os.ReadFile(dest)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the copy has %d bytes, and not those of the file, which has %d", len(got), size)
	}
}
