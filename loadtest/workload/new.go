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

// New returns the tasks of the client with the given number (0 and up, unique over all machines of
// the run). files is the file set, which all clients share and no client changes. It may be empty
// if w only writes, makes folders or logs in. dir is the folder below the target in which the run
// may write; clients write to Home(dir, client), which must exist.
//
// w has passed Check, which is not repeated for each client. New fails if w needs files and files is empty.
func New(w Work, files []File, client int, dir string) (Workload, error) {
	if client < 0 {
		return nil, fmt.Errorf("client number %d: use 0 or more", client)
	}
	choice := choose(w)
	if len(files) == 0 && choice.needsFiles() {
		return nil, errors.New("no files to read: name a list, a listing, or files to make")
	}
	size, err := w.Size.Sampler()
	if err != nil {
		return nil, fmt.Errorf("workload.size: %w", err)
	}
	s := &stream{
		choice: choice, dirs: w.Kind == MetadataWork,
		files: files, pick: newPicker(w, len(files), client), part: newParts(w.Part),
		size: size, names: names{home: Home(dir, client)}, homely: Writes(w),
		chunk: int(w.Chunk), ahead: w.InFlight, plain: w.Plain, sync: w.Sync, keep: w.KeepOpen, timeout: time.Duration(w.Timeout),
		think: w.Think, verify: float64(w.Verify), sum: w.Sum,
	}
	if w.Job != nil {
		s.reading = &Reading{stream: s, job: *w.Job, verify: float64(w.Verify), sum: w.Sum, chunk: int(w.Chunk), ahead: w.InFlight}
	}
	return s, nil
}

// A stream is the only Workload: all kinds differ only in the operations that they choose.
type stream struct {
	choice  choice
	dirs    bool // remove and move take folders that mkdir made, not files that write made
	files   []File
	pick    picker
	reading *Reading // of jobs
	part    parts
	size    Sampler
	names   names
	homely  bool // its folder exists
	written File // file that the last task wrote
	made    []own
	doubt   int // index in made, plus one, of the item that is missing if the last task failed
	chunk   int
	ahead   int
	plain   bool
	sync    bool
	keep    bool
	timeout time.Duration
	think   Span
	verify  float64
	sum     string
}

// An own thing is a file or folder that the client made and may remove or move.
type own struct {
	number uint64 // of its name
	size   int64
	seed   uint64
}

// Next implements Workload.
func (s *stream) Next(r *rand.Rand, t *Task) {
	if t.Failed && s.doubt > 0 {
		s.drop(s.doubt - 1)
	}
	s.doubt = 0
	if cap(t.Ops) == 0 {
		t.Ops = make([]storage.Op, 1)
	}
	t.Ops = t.Ops[:1]
	t.Verify, t.File, t.Job, t.Failed = false, nil, nil, false
	op := &t.Ops[0]
	*op = storage.Op{Kind: s.choice.draw(r), Timeout: s.timeout}
	s.fill(r, t, op)
	t.Think = s.think.Draw(r)
}

func (s *stream) fill(r *rand.Rand, t *Task, op *storage.Op) {
	if (op.Kind == storage.Remove || op.Kind == storage.Move) && len(s.made) == 0 {
		op.Kind = storage.Write // nothing of its own to remove or move yet, so it makes something
		if s.dirs {
			op.Kind = storage.Mkdir
		}
	}
	switch op.Kind {
	case storage.Read:
		if s.reading != nil {
			s.job(r, t, op)
			return
		}
		s.read(r, t, op)
	case storage.Run:
		t.File = &s.files[s.pick.next(r)]
		op.Path, op.Size = t.File.Path, t.File.Size
	case storage.Write:
		s.write(r, t, op)
	case storage.Copy:
		s.copied(r, t, op)
	case storage.Stat, storage.Locate:
		t.File = &s.files[s.pick.next(r)]
		op.Path, op.Size = t.File.Path, t.File.Size
	case storage.Checksum:
		t.File = &s.files[s.pick.next(r)]
		op.Path, op.Size, op.Sum = t.File.Path, t.File.Size, s.sum
		t.Verify = s.verified(r)
	case storage.List:
		switch {
		case len(s.files) > 0:
			op.Path = parent(s.files[s.pick.next(r)].Path)
		case s.homely:
			op.Path = s.names.home
		default: // the client's folder was not created: the target itself
			op.Path = ""
		}
	case storage.Mkdir:
		n := s.names.next()
		op.Path = s.names.folder(n)
		s.remember(own{number: n}, s.dirs)
	case storage.Remove:
		op.Path = s.forget(r)
	case storage.Move:
		s.move(r, op)
	}
}

func (s *stream) read(r *rand.Rand, t *Task, op *storage.Op) {
	f := s.part.next(r, s.files, &s.pick, op)
	t.File = f
	op.Path, op.Size, op.Chunk, op.Ahead = f.Path, f.Size, s.chunk, s.ahead
	op.Plain, op.Keep = s.plain, s.keep
	if s.verified(r) {
		t.Verify, op.Sum = true, s.sum
	}
}

// job begins a job on a file; its requests are made later, one by one.
func (s *stream) job(r *rand.Rand, t *Task, op *storage.Op) {
	t.File = &s.files[s.pick.next(r)]
	op.Path, op.Size, op.Plain = t.File.Path, t.File.Size, s.plain
	op.Chunk, op.Ahead = int(max(s.reading.job.Page, s.reading.job.Ahead)), 1
	s.reading.start(r, t.File, *op, s.pick.order != "sequential")
	t.Job = s.reading
}

func (s *stream) write(r *rand.Rand, t *Task, op *storage.Op) {
	n := s.names.next()
	path := s.names.file(n)
	s.written = File{Path: path, Size: s.size(r), Seed: content.Seed(r.Uint64(), path), Made: true}
	t.File = &s.written
	op.Path, op.Size, op.Seed, op.Chunk, op.Plain, op.Sync = s.written.Path, s.written.Size, s.written.Seed, s.chunk, s.plain, s.sync
	t.Verify = s.verified(r)
	s.remember(own{n, s.written.Size, s.written.Seed}, !s.dirs)
}

// mostKept is the number of its own items that a client keeps if it only moves them: without a
// remove their number would grow without limit.
const mostKept = 1024

// remember keeps an item for a later remove or move, if such operations can come.
func (s *stream) remember(made own, takeable bool) {
	removes := s.choice.has(storage.Remove)
	if takeable && (removes || s.choice.has(storage.Move) && len(s.made) < mostKept) {
		s.made = append(s.made, made)
		s.doubt = len(s.made)
	}
}

// move gives one of the client's own files or folders, all equally likely, a
// name that was never used. Size and Seed of the op are the file's.
func (s *stream) move(r *rand.Rand, op *storage.Op) {
	i := r.IntN(len(s.made))
	it := &s.made[i]
	op.Source = s.name(it.number)
	it.number = s.names.next()
	op.Path, op.Size, op.Seed = s.name(it.number), it.size, it.seed
	s.doubt = i + 1 // it may have either name
}

func (s *stream) drop(i int) {
	last := len(s.made) - 1
	s.made[i] = s.made[last]
	s.made = s.made[:last]
}

func (s *stream) name(n uint64) string {
	if s.dirs {
		return s.names.folder(n)
	}
	return s.names.file(n)
}

// forget takes one of the client's own files or folders, all equally likely.
func (s *stream) forget(r *rand.Rand) string {
	i := r.IntN(len(s.made))
	n := s.made[i].number
	s.drop(i)
	return s.name(n)
}

// copied copies a file of the origin to a name that was never used.
func (s *stream) copied(r *rand.Rand, t *Task, op *storage.Op) {
	t.File = &s.files[s.pick.next(r)]
	op.Source, op.Path, op.Size, op.Seed = t.File.Path, s.names.file(s.names.next()), t.File.Size, t.File.Seed
	t.Verify = s.verified(r)
}

func (s *stream) verified(r *rand.Rand) bool { return drawn(r, s.verify) }

// drawn returns true for a share of all calls.
func drawn(r *rand.Rand, share float64) bool { return share >= 1 || share > 0 && r.Float64() < share }

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
	return c.has(storage.Read) || c.has(storage.Stat) || c.has(storage.Checksum) || c.has(storage.Locate) || c.has(storage.Run) ||
		c.has(storage.Copy)
}

// choose lists the kinds of w in a fixed order, without kinds of weight 0, so that a map's order
// does not influence a client's operations.
func choose(w Work) choice {
	var c choice
	sum := 0.0
	for k := range storage.Kinds {
		weight := w.Mix[k.String()]
		if operation(w.Kind) == k.String() {
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

// operation returns the kind of operation of which work of a kind consists.
func operation(kind Kind) string {
	switch kind {
	case JobWork:
		return storage.Read.String()
	case CommandJobWork:
		return storage.Run.String()
	}
	return string(kind)
}

func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}
