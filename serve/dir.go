package serve

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"weir/internal/durable"
)

// A dirTree is a folder of this machine. All its names go through an os.Root.
type dirTree struct {
	root  *os.Root
	left  *leftovers
	sync  bool
	birth string // part of temporary names that no other server has
	last  atomic.Int64
	names sync.Mutex // between a look whether a name is taken and the renaming
}

func openDir(c Config) (*dirTree, error) {
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, err
	}
	left, err := openLeftovers(root, c.ReadOnly, c.Log)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	birth := strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	return &dirTree{root: root, left: left, sync: c.Sync, birth: birth}, nil
}

func (t *dirTree) close() error { return errors.Join(t.left.close(), t.root.Close()) }

func fileEntry(info fs.FileInfo) entry {
	return entry{name: info.Name(), size: info.Size(), modified: info.ModTime(), dir: info.IsDir()}
}

func (t *dirTree) stat(name string) (entry, error) {
	info, err := t.root.Stat(name)
	if err != nil {
		return entry{}, err
	}
	return fileEntry(info), nil
}

func (t *dirTree) open(name string) (*file, error) {
	f, err := t.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe must not block
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	opened := &file{entry: fileEntry(info), closer: f}
	switch {
	case info.IsDir():
	case info.Mode().IsRegular():
		opened.content = &fileContent{f: f, size: info.Size()}
	default:
		return nil, errors.Join(fmt.Errorf("%s is no plain file: %w", name, fs.ErrPermission), f.Close())
	}
	return opened, nil
}

func (t *dirTree) list(name string, each func(entry) error) error {
	f, err := t.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		some, err := f.ReadDir(512)
		for _, d := range some {
			if _, _, err := cleanName("/" + d.Name()); err != nil {
				continue // no request can name it
			}
			e, err := t.stat(path.Join(name, d.Name())) // follows links, as open does
			if err != nil || !e.dir && !regular(d) {
				continue // removed, leads outside, or cannot be read anyway
			}
			e.name = d.Name()
			if err := each(e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func regular(d fs.DirEntry) bool { return d.Type().IsRegular() || d.Type()&fs.ModeSymlink != 0 }

// parent returns an error unless name can be made in the folder above it.
func (t *dirTree) parent(name string) error {
	info, err := t.root.Stat(path.Dir(name))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && !info.IsDir():
		return ErrNoParent
	}
	return err
}

func (t *dirTree) create(name string) (upload, error) {
	if err := t.parent(name); err != nil {
		return nil, err
	}
	if e, err := t.stat(name); err == nil && e.dir {
		return nil, ErrIsFolder
	}
	folder := path.Dir(name)
	if err := t.left.note(folder); err != nil {
		return nil, err
	}
	part := path.Join(folder, fmt.Sprintf("%s-%s-%d%s", hidden, t.birth, t.last.Add(1), partSuffix))
	f, err := t.root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &dirUpload{File: f, t: t, part: part, name: name}, nil
}

func (t *dirTree) mkdir(name string) error {
	if err := t.parent(name); err != nil {
		return err
	}
	err := t.root.Mkdir(name, 0o777)
	if err == nil && t.sync {
		err = t.syncFolder(path.Dir(name))
	}
	return err
}

func (t *dirTree) remove(name string) error { return t.root.Remove(name) }

func (t *dirTree) rename(from, to string, replace bool) (bool, error) {
	if err := t.parent(to); err != nil {
		return false, err
	}
	t.names.Lock()
	created, err := t.move(from, to, replace)
	t.names.Unlock()
	if err == nil && t.sync {
		err = t.syncFolder(path.Dir(to))
	}
	return created, err
}

// move renames while the caller holds t.names.
func (t *dirTree) move(from, to string, replace bool) (created bool, err error) {
	target, err := t.root.Lstat(to)
	created = errors.Is(err, fs.ErrNotExist)
	if err != nil && !created {
		return false, err
	}
	if !created && !replace {
		return false, ErrExists
	}
	if !created && target.IsDir() { // must be empty
		if _, err := t.root.Stat(from); err != nil {
			return false, err
		}
		if err := t.root.Remove(to); err != nil {
			return false, err
		}
	}
	if created && !replace { // other programs write into this folder as well
		err := durable.RenameNew(t.root, nil, nil, from, to)
		if errors.Is(err, fs.ErrExist) {
			err = ErrExists
		}
		return err == nil, err
	}
	return created, t.root.Rename(from, to)
}

// A dirUpload is a file under its temporary name.
type dirUpload struct {
	*os.File
	t          *dirTree
	part, name string
}

func (u *dirUpload) commit(replace bool) (entry, bool, error) {
	info, err := u.Stat()
	if err == nil && u.t.sync {
		err = u.Sync()
	}
	if err = errors.Join(err, u.Close()); err != nil {
		return entry{}, false, errors.Join(err, u.t.root.Remove(u.part))
	}
	created, err := u.publish(replace)
	if err != nil {
		return entry{}, false, errors.Join(err, u.t.root.Remove(u.part))
	}
	e := fileEntry(info)
	e.name = path.Base(u.name)
	if u.t.sync {
		err = u.t.syncFolder(path.Dir(u.name))
	}
	return e, created, err
}

func (u *dirUpload) publish(replace bool) (created bool, err error) {
	u.t.names.Lock()
	defer u.t.names.Unlock()
	if e, err := u.t.stat(u.name); err == nil && e.dir {
		return false, ErrIsFolder
	}
	return u.t.move(u.part, u.name, replace)
}

func (u *dirUpload) abort() {
	_ = u.Close() // it goes away
	_ = u.t.root.Remove(u.part)
}

func (t *dirTree) syncFolder(name string) error {
	f, err := t.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
