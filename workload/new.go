package workload

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"weir/internal/content"
	"weir/storage"
)

// New returns the tasks of the client with the given number (0 and up, unique
// over all machines of the run). files is the file set, shared by all clients
// and not changed by any; it may be empty if w only writes, makes folders or
// logs in. dir is the folder below the target in which the run may write;
// clients write to Home(dir, client), which must exist.
//
// New fails where Check does, and if w needs files and there are none.
func New(w Work, files []File, client int, dir string) (Workload, error) {
	if err := Check(w); err != nil {
		return nil, err
	}
	if client < 0 {
		return nil, fmt.Errorf("workload: client number %d: use 0 or more", client)
	}
	choice := choose(w)
	if len(files) == 0 && choice.needsFiles() {
		return nil, errors.New("workload: no files to read: name a list, a listing, or files to make")
	}
	size, err := w.Size.Sampler()
	if err != nil {
		return nil, fmt.Errorf("workload.size: %w", err)
	}
	s := &stream{
		choice: choice, dirs: w.Kind == "metadata",
		files: files, pick: newPicker(w, len(files), client), part: newParts(w.Part),
		size: size, names: names{home: Home(dir, client)},
		chunk: int(w.Chunk), ahead: w.InFlight, timeout: time.Duration(w.Timeout),
		think: w.Think, verify: float64(w.Verify), sum: w.Sum,
	}
	return s, nil
}

// A stream is the one Workload: all kinds differ only in which operations
// they choose.
type stream struct {
	choice  choice
	dirs    bool // remove takes folders that mkdir made, not files that write made
	files   []File
	pick    picker
	part    parts
	size    Sampler
	names   names
	written File // what the last task wrote
	made    []uint64
	fresh   bool // the last task made the last of made
	chunk   int
	ahead   int
	timeout time.Duration
	think   Span
	verify  float64
	sum     string
}

// Next implements Workload.
func (s *stream) Next(r *rand.Rand, t *Task) {
	if t.Failed && s.fresh {
		s.made = s.made[:len(s.made)-1]
	}
	s.fresh = false
	if cap(t.Ops) == 0 {
		t.Ops = make([]storage.Op, 1)
	}
	t.Ops = t.Ops[:1]
	t.Verify, t.File, t.Failed = false, nil, false
	op := &t.Ops[0]
	*op = storage.Op{Kind: s.choice.draw(r), Timeout: s.timeout}
	s.fill(r, t, op)
	t.Think = s.think.Draw(r)
}

func (s *stream) fill(r *rand.Rand, t *Task, op *storage.Op) {
	if op.Kind == storage.Remove && len(s.made) == 0 {
		op.Kind = storage.Write // nothing of its own to remove yet, so it makes something
		if s.dirs {
			op.Kind = storage.Mkdir
		}
	}
	switch op.Kind {
	case storage.Read:
		s.read(r, t, op)
	case storage.Write:
		s.write(r, t, op)
	case storage.Stat:
		t.File = &s.files[s.pick.next(r)]
		op.Path, op.Size = t.File.Path, t.File.Size
	case storage.Checksum:
		t.File = &s.files[s.pick.next(r)]
		op.Path, op.Size, op.Sum = t.File.Path, t.File.Size, s.sum
		t.Verify = s.verified(r)
	case storage.List:
		op.Path = s.names.home
		if len(s.files) > 0 {
			op.Path = parent(s.files[s.pick.next(r)].Path)
		}
	case storage.Mkdir:
		n := s.names.next()
		op.Path = s.names.folder(n)
		s.remember(n, s.dirs)
	case storage.Remove:
		op.Path = s.forget(r)
	}
}

func (s *stream) read(r *rand.Rand, t *Task, op *storage.Op) {
	f := s.part.next(r, s.files, &s.pick, op)
	t.File = f
	op.Path, op.Size, op.Chunk, op.Ahead = f.Path, f.Size, s.chunk, s.ahead
	if s.verified(r) {
		t.Verify, op.Sum = true, s.sum
	}
}

func (s *stream) write(r *rand.Rand, t *Task, op *storage.Op) {
	n := s.names.next()
	path := s.names.file(n)
	s.written = File{Path: path, Size: s.size(r), Seed: content.Seed(r.Uint64(), path), Made: true}
	t.File = &s.written
	op.Path, op.Size, op.Seed, op.Chunk = s.written.Path, s.written.Size, s.written.Seed, s.chunk
	t.Verify = s.verified(r)
	s.remember(n, !s.dirs)
}

// remember keeps n for a later remove, if any can come.
func (s *stream) remember(n uint64, removable bool) {
	if removable && s.choice.has(storage.Remove) {
		s.made = append(s.made, n)
		s.fresh = true
	}
}

// forget takes one of the client's own files or folders, all equally likely.
func (s *stream) forget(r *rand.Rand) string {
	i, last := r.IntN(len(s.made)), len(s.made)-1
	n := s.made[i]
	s.made[i] = s.made[last]
	s.made = s.made[:last]
	if s.dirs {
		return s.names.folder(n)
	}
	return s.names.file(n)
}

func (s *stream) verified(r *rand.Rand) bool {
	return s.verify >= 1 || s.verify > 0 && r.Float64() < s.verify
}

// A choice draws the kind of the next operation.
type choice struct {
	kinds []storage.Kind
	until []float64 // until[i] is the sum of the weights of kinds[:i+1]
}

func (c choice) draw(r *rand.Rand) storage.Kind {
	if len(c.kinds) == 1 {
		return c.kinds[0]
	}
	x := r.Float64() * c.until[len(c.until)-1]
	for i, u := range c.until[:len(c.until)-1] {
		if x < u {
			return c.kinds[i]
		}
	}
	return c.kinds[len(c.kinds)-1]
}

func (c choice) has(k storage.Kind) bool { return slices.Contains(c.kinds, k) }

func (c choice) needsFiles() bool {
	return c.has(storage.Read) || c.has(storage.Stat) || c.has(storage.Checksum)
}

// choose lists the kinds of w in a fixed order, without those of weight 0, so
// that a map's order never decides what a client does.
func choose(w Work) choice {
	var c choice
	sum := 0.0
	for k := range storage.Kinds {
		weight := w.Mix[k.String()]
		if w.Kind == k.String() {
			weight = 1
		}
		if weight > 0 {
			sum += weight
			c.kinds = append(c.kinds, k)
			c.until = append(c.until, sum)
		}
	}
	return c
}

func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}
