package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"weir/internal/content"
	"weir/internal/unit"
)

// A Set is a number of invented files of one size.
type Set struct {
	Count int
	Size  int64 // bytes
}

// maxInvented bounds the invented files, so that a listing stays possible.
const maxInvented = 10_000_000

// ParseSynthetic reads "1000x1MiB", or several of them with commas between:
// "1000x1MiB,2x10GiB". The files are called /file000000.dat and so on, in the
// order given.
func ParseSynthetic(text string) ([]Set, error) {
	var sets []Set
	for part := range strings.SplitSeq(text, ",") {
		set, err := parseSet(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("synthetic files %q: %w: write them as 1000x1MiB", text, err)
		}
		sets = append(sets, set)
	}
	if err := checkSets(sets); err != nil {
		return nil, fmt.Errorf("synthetic files %q: %w", text, err)
	}
	return sets, nil
}

func parseSet(text string) (Set, error) {
	count, size, ok := strings.Cut(text, "x")
	if !ok {
		return Set{}, fmt.Errorf("%q has no x between count and size", text)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(count), 10, 31)
	if err != nil {
		return Set{}, fmt.Errorf("%q is not a number", count)
	}
	bytes, err := unit.ParseSize(strings.TrimSpace(size))
	if err != nil {
		return Set{}, err
	}
	return Set{Count: int(n), Size: int64(bytes)}, nil
}

// ParseEvents reads "50000x40KiB", one file of so many events of one size, or "4x50000x40KiB", so
// many such files. Analysis jobs read such files in pages. They are generated as all other files
// are.
func ParseEvents(text string) (Set, error) {
	set, err := parseEvents(text)
	if err == nil {
		err = checkSets([]Set{set})
	}
	if err != nil {
		return Set{}, fmt.Errorf("events %q: %w: write them as 50000x40KiB, or 4x50000x40KiB for four files", text, err)
	}
	return set, nil
}

func parseEvents(text string) (Set, error) {
	files, rest := "1", text
	if strings.Count(text, "x") > 1 {
		files, rest, _ = strings.Cut(text, "x")
	}
	events, err := parseSet(rest)
	if err != nil {
		return Set{}, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(files), 10, 31)
	switch {
	case err != nil:
		return Set{}, fmt.Errorf("%q is not a number of files", files)
	case events.Count < 1 || events.Size < 1:
		return Set{}, errors.New("a file has at least one event, and an event at least one byte")
	case int64(events.Count) > math.MaxInt64/events.Size:
		return Set{}, errors.New("a file cannot be so large")
	}
	return Set{Count: int(n), Size: int64(events.Count) * events.Size}, nil
}

func checkSets(sets []Set) error {
	total := 0
	for _, s := range sets {
		if s.Count < 1 || s.Size < 0 {
			return fmt.Errorf("%d files of %d bytes: at least 1 file of at least 0 bytes", s.Count, s.Size)
		}
		if total += s.Count; s.Count > maxInvented || total > maxInvented {
			return fmt.Errorf("more than %d files", maxInvented)
		}
	}
	return nil
}

// inventedName returns the name of the i-th invented file.
func inventedName(i int) string { return fmt.Sprintf("file%06d.dat", i) }

// inventedIndex computes the inverse of inventedName.
func inventedIndex(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "file")
	if !ok {
		return 0, false
	}
	digits, ok = strings.CutSuffix(digits, ".dat")
	if !ok || len(digits) < 6 || len(digits) > 9 || len(digits) > 6 && digits[0] == '0' {
		return 0, false
	}
	i, err := strconv.ParseUint(digits, 10, 31)
	return int(i), err == nil
}

// A synthetic tree has generated files in its top folder and stores the changes by clients. Of an
// upload that is content of package content, which is checked to the last byte, only seed and size
// are kept, and reads make it again; any other upload is kept whole, as long as the Config's Memory
// lasts, and refused (507) beyond. So a file that was accepted can always be read back.
type synthetic struct {
	sets    []Set
	seed    uint64
	created time.Time
	limit   int64 // bytes of uploads kept whole
	most    int   // nodes

	mu    sync.RWMutex
	top   *node
	bytes int64 // kept whole
	nodes int
}

// A node is a folder, a file, or, with gone, an invented file that was removed.
type node struct {
	modified time.Time
	children map[string]*node // a folder
	gone     bool
	size     int64
	seed     uint64 // a file whose content follows from it,
	kept     []byte // or that is kept whole, if not nil
}

func newSynthetic(c Config, now time.Time) *synthetic {
	now = now.Truncate(time.Second) // as precise as HTTP's dates
	return &synthetic{sets: c.Synthetic, seed: c.Seed, created: now, limit: c.Memory, most: c.MaxFiles,
		top: &node{modified: now, children: map[string]*node{}}}
}

func (t *synthetic) close() error { return nil }

// find returns the node called name, or nil. The caller holds t.mu.
func (t *synthetic) find(name string) *node {
	if name == "." {
		return t.top
	}
	n := t.top
	for part := range strings.SplitSeq(name, "/") {
		child := n.children[part]
		if child == nil && n == t.top && part == name {
			return t.invent(name)
		}
		if child == nil || child.gone {
			return nil
		}
		n = child
	}
	return n
}

// invent returns the invented file called name, or nil.
func (t *synthetic) invent(name string) *node {
	i, ok := inventedIndex(name)
	if !ok {
		return nil
	}
	for _, s := range t.sets {
		if i < s.Count {
			return &node{modified: t.created, size: s.Size, seed: SeedOf(t.seed, name)}
		}
		i -= s.Count
	}
	return nil
}

// SeedOf returns the seed for package content of the generated file called name, if the Config's
// Seed is base.
func SeedOf(base uint64, name string) uint64 { return content.Seed(base, "/"+name) }

// folder returns the folder that name is or would be in. The caller holds t.mu.
func (t *synthetic) folder(name string) (*node, error) {
	f := t.find(path.Dir(name))
	if f == nil || f.children == nil {
		return nil, ErrNoParent
	}
	return f, nil
}

func (n *node) entry(name string) entry {
	return entry{name: path.Base(name), size: n.size, modified: n.modified, dir: n.children != nil}
}

func (t *synthetic) stat(name string) (entry, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.find(name)
	if n == nil {
		return entry{}, fs.ErrNotExist
	}
	return n.entry(name), nil
}

func (t *synthetic) open(name string) (*file, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.find(name)
	switch {
	case n == nil:
		return nil, fs.ErrNotExist
	case n.children != nil:
		return &file{entry: n.entry(name)}, nil
	case n.kept != nil:
		return &file{entry: n.entry(name), content: bytes.NewReader(n.kept)}, nil
	}
	return &file{entry: n.entry(name), content: content.NewReader(n.seed, n.size)}, nil
}

func (t *synthetic) list(name string, each func(entry) error) error {
	entries, err := t.remembered(name)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, e := range entries {
		taken[e.name] = true
		if e.size < 0 {
			continue // gone
		}
		if err := each(e); err != nil {
			return err
		}
	}
	if name != "." {
		return nil
	}
	i := 0
	for _, s := range t.sets {
		for range s.Count {
			e := entry{name: inventedName(i), size: s.Size, modified: t.created}
			i++
			if taken[e.name] {
				continue
			}
			if err := each(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// remembered returns the nodes in a folder; size -1 marks a removed node.
func (t *synthetic) remembered(name string) ([]entry, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.find(name)
	if n == nil {
		return nil, fs.ErrNotExist
	}
	if n.children == nil {
		return nil, syscall.ENOTDIR
	}
	entries := make([]entry, 0, len(n.children))
	for name, child := range n.children {
		e := child.entry(name)
		if child.gone {
			e.size = -1
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return entries, nil
}

func (t *synthetic) mkdir(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, err := t.folder(name)
	if err != nil {
		return err
	}
	if t.find(name) != nil {
		return fs.ErrExist
	}
	return t.put(f, path.Base(name), &node{modified: time.Now(), children: map[string]*node{}})
}

// put makes n the child of f called base. The caller holds t.mu.
func (t *synthetic) put(f *node, base string, n *node) error {
	old := f.children[base]
	if old == nil && t.nodes >= t.most {
		return errFull
	}
	if old == nil {
		t.nodes++
	} else {
		t.bytes -= int64(len(old.kept))
	}
	f.children[base] = n
	return nil
}

// drop removes the child of f called base. The caller holds t.mu.
func (t *synthetic) drop(f *node, base string) error {
	if f == t.top && t.invent(base) != nil {
		return t.put(f, base, &node{gone: true})
	}
	t.bytes -= int64(len(f.children[base].kept))
	delete(f.children, base)
	t.nodes--
	return nil
}

func (t *synthetic) remove(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.find(name)
	switch {
	case n == nil:
		return fs.ErrNotExist
	case n == t.top:
		return fs.ErrPermission
	case len(n.children) > 0:
		return syscall.ENOTEMPTY
	}
	f, err := t.folder(name)
	if err != nil {
		return err
	}
	return t.drop(f, path.Base(name))
}

func (t *synthetic) rename(from, to string, replace bool) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.find(from)
	if n == nil {
		return false, fs.ErrNotExist
	}
	target, err := t.folder(to)
	if err != nil {
		return false, err
	}
	there := t.find(to)
	switch {
	case there != nil && !replace:
		return false, ErrExists
	case there != nil && len(there.children) > 0:
		return false, syscall.ENOTEMPTY
	case t.nodes+2 > t.most: // the new name, and the removal of the old name
		return false, errFull
	case strings.HasPrefix(to+"/", from+"/"):
		return false, syscall.EINVAL
	}
	source, err := t.folder(from)
	if err != nil {
		return false, err
	}
	kept := int64(len(n.kept))
	if err := t.put(target, path.Base(to), n); err != nil {
		return false, err
	}
	t.bytes += kept // counted once more until the old name is dropped
	return there == nil, t.drop(source, path.Base(from))
}
