package simulated

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"

	"weir/internal/content"
	"weir/storage"
)

// A tree holds the files: names, sizes and seeds.
type tree struct {
	mu   sync.RWMutex
	root node
}

// A node is a folder if kids is not nil; it may be empty.
type node struct {
	size int64
	seed uint64
	kids map[string]*node
}

// newTree makes the files that the service begins with.
func newTree(c Config) *tree {
	t := &tree{root: node{kids: make(map[string]*node, c.Files)}}
	for i := range c.Files {
		name := FileName(i)
		t.root.kids[name] = &node{size: c.Size, seed: content.Seed(c.Seed, name)}
	}
	return t
}

// FileName returns the path of the i-th file that a service begins with. Its content has the seed
// content.Seed(Config.Seed, path).
func FileName(i int) string { return fmt.Sprintf("file%06d.dat", i) }

func (t *tree) find(p string) (*node, error) {
	n := &t.root
	if p == "" || p == "." {
		return n, nil
	}
	for name := range strings.SplitSeq(p, "/") {
		if n = n.kids[name]; n == nil {
			return nil, fs.ErrNotExist
		}
	}
	return n, nil
}

// file returns the node of a path that is not a folder.
func (t *tree) file(p string) (*node, error) {
	n, err := t.find(p)
	if err == nil && n.kids != nil {
		err = errors.New("is a folder")
	}
	return n, err
}

// payload returns the number of bytes that op moves, and an error if it must fail. A read beyond
// the end moves the existing bytes; do then reports that it was short.
func (t *tree) payload(op *storage.Op, res *storage.Result) (int64, error) {
	switch op.Kind {
	case storage.Write:
		return op.Size, nil
	case storage.Read:
	default:
		return 0, nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	n, err := t.file(op.Path)
	if err != nil {
		return 0, err
	}
	res.Size = n.size
	moves := int64(0)
	for _, g := range parts(op, n.size) {
		moves += there(g, n.size)
	}
	return moves, nil
}

// parts returns the ranges of a file that a read requests.
func parts(op *storage.Op, size int64) []storage.Range {
	if op.Ranges == nil {
		return []storage.Range{{Length: size}}
	}
	return op.Ranges
}

// there returns the number of bytes of g that a file of the given size has.
func there(g storage.Range, size int64) int64 {
	return max(0, min(g.Length, size-g.Offset))
}

// do performs op's effect and fills in res.
func (t *tree) do(op *storage.Op, res *storage.Result) error {
	switch op.Kind {
	case storage.Write, storage.Mkdir, storage.Remove, storage.Move:
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.change(op, res)
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	switch op.Kind {
	case storage.Read:
		return t.read(op, res)
	case storage.Checksum:
		n, err := t.file(op.Path)
		if err == nil {
			res.Size = n.size
			res.Sum, err = content.Sum(op.Sum, n.seed, 0, n.size)
		}
		return err
	case storage.Stat:
		n, err := t.find(op.Path)
		if err == nil && n.kids == nil {
			res.Size = n.size
		}
		return err
	case storage.List:
		return t.list(op, res)
	}
	return nil
}

func (t *tree) read(op *storage.Op, res *storage.Result) error {
	n, err := t.file(op.Path)
	if err != nil {
		return err
	}
	if err := storage.CheckSize(op.Size, n.size); err != nil {
		return err
	}
	ranges := parts(op, n.size)
	for _, g := range ranges {
		if there(g, n.size) < g.Length {
			return fmt.Errorf("range of %d bytes at %d of a file of %d: %w", g.Length, g.Offset, n.size, storage.ErrShort)
		}
	}
	if op.Sum == "" {
		return nil
	}
	h, err := content.NewHash(op.Sum)
	if err != nil {
		return err
	}
	for _, g := range ranges {
		if err := n.write(h, g); err != nil {
			return err
		}
	}
	res.Sum = content.Text(op.Sum, h)
	return nil
}

// write writes a part of the file's content.
func (n *node) write(to io.Writer, g storage.Range) error {
	r := content.NewReader(n.seed, g.Offset+g.Length)
	if _, err := r.Seek(g.Offset, io.SeekStart); err != nil {
		return err
	}
	_, err := r.WriteTo(to)
	return err
}

// copy writes n bytes at an offset of the file p.
func (t *tree) copy(to io.Writer, p string, at, n int64) error {
	t.mu.RLock()
	f, err := t.file(p)
	t.mu.RUnlock()
	if err != nil {
		return err
	}
	return f.write(to, storage.Range{Offset: at, Length: n})
}

func (t *tree) list(op *storage.Op, res *storage.Result) error {
	n, err := t.find(op.Path)
	if err != nil {
		return err
	}
	if n.kids == nil {
		return errors.New("is no folder")
	}
	res.Entries = make([]storage.Entry, 0, len(n.kids))
	for name, kid := range n.kids {
		e := storage.Entry{Name: name, Size: kid.size, Dir: kid.kids != nil}
		if e.Dir {
			e.Size = -1
		}
		res.Entries = append(res.Entries, e)
	}
	return nil
}

// move gives a file or folder another name.
func (t *tree) move(op *storage.Op, parent *node, name string) error {
	dir, old := path.Split(op.Source)
	from, err := t.find(strings.TrimSuffix(dir, "/"))
	if err != nil {
		return err
	}
	it := from.kids[old]
	switch {
	case it == nil:
		return fs.ErrNotExist
	case parent.kids[name] != nil:
		return fs.ErrExist
	case strings.HasPrefix(op.Path+"/", op.Source+"/"):
		return fmt.Errorf("a folder cannot move into itself: %w", fs.ErrInvalid)
	}
	delete(from.kids, old)
	parent.kids[name] = it
	return nil
}

// change writes, makes, moves or removes.
func (t *tree) change(op *storage.Op, res *storage.Result) error {
	dir, name := path.Split(op.Path)
	parent, err := t.find(strings.TrimSuffix(dir, "/"))
	if err != nil {
		return err
	}
	if parent.kids == nil || name == "" || name == "." {
		return fmt.Errorf("no place for %q: %w", op.Path, fs.ErrPermission)
	}
	if op.Kind == storage.Move {
		return t.move(op, parent, name)
	}
	old := parent.kids[name]
	switch {
	case op.Kind == storage.Write && (old == nil || old.kids == nil):
		parent.kids[name] = &node{size: op.Size, seed: op.Seed}
		res.Size = op.Size
	case op.Kind == storage.Mkdir && old == nil:
		parent.kids[name] = &node{kids: map[string]*node{}}
	case op.Kind != storage.Remove:
		return fs.ErrExist
	case old == nil:
		return fs.ErrNotExist
	case len(old.kids) > 0:
		return errors.New("the folder is not empty")
	default:
		delete(parent.kids, name)
	}
	return nil
}
