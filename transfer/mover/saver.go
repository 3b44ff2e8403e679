package mover

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"

	"weir/internal/durable"
	"weir/transfer"
)

// alone is the size from which a file is put on stable storage by itself, so that small files do
// not wait for it.
const alone = 8 << 20

// A saver gives finished parts their names. Files that arrive while it works are saved together
// next: first all data, then all names, then each folder once. So a thousand small files share a
// few writes of the file system's journal, and still no file is reported as saved that a power
// failure could remove.
type saver struct {
	m     *Mover
	queue chan *save
	ended sync.WaitGroup
}

// A save is one file to be saved.
type save struct {
	part   *part
	to     string // below the root
	synced bool
	err    error
	done   chan struct{}
}

// together is the maximum number of files saved at once.
const together = 256

func newSaver(m *Mover) *saver {
	s := &saver{m: m, queue: make(chan *save, together)}
	s.ended.Go(s.work)
	return s
}

func (s *saver) close() {
	close(s.queue)
	s.ended.Wait()
}

// save puts a finished part on stable storage and gives it its name. Its error is
// fs.ErrExist if the name is taken.
func (s *saver) save(p *part, to string) error {
	if err := s.m.folder(path.Dir(to)); err != nil {
		return err
	}
	one := &save{part: p, to: to, synced: s.m.opt.Unsynced, done: make(chan struct{})}
	if p.size >= alone && !one.synced {
		if err := p.file.Sync(); err != nil {
			return local("put on stable storage", err)
		}
		one.synced = true
	}
	s.queue <- one
	<-one.done
	return one.err
}

func (s *saver) work() {
	for first := range s.queue {
		batch := []*save{first}
		for len(batch) < together && len(s.queue) > 0 {
			batch = append(batch, <-s.queue)
		}
		s.sync(batch)
		s.name(batch)
		for _, one := range batch {
			close(one.done)
		}
	}
}

// sync puts the data of a batch on stable storage. Many calls at once share the
// commits of the file system's journal.
func (s *saver) sync(batch []*save) {
	var all sync.WaitGroup
	turns := make(chan struct{}, 64)
	for _, one := range batch {
		if one.synced {
			continue
		}
		turns <- struct{}{}
		all.Go(func() {
			one.err = local("put on stable storage", one.part.file.Sync())
			<-turns
		})
	}
	all.Wait()
}

// name gives the files of a batch their names.
func (s *saver) name(batch []*save) {
	folders := map[string][]*save{}
	for _, one := range batch {
		if one.err == nil {
			dir := path.Dir(one.to)
			folders[dir] = append(folders[dir], one)
		}
	}
	if len(folders) == 0 {
		return
	}
	from, err := s.m.root.Open(Hidden)
	if err != nil {
		for _, one := range batch {
			one.err = errors.Join(one.err, local("open "+Hidden, err))
		}
		return
	}
	defer from.Close()
	opened := map[string]*os.File{}
	for dir, some := range folders {
		if to := s.open(dir, some); to != nil {
			opened[dir] = to
			for _, one := range some {
				one.err = s.m.rename(from, to, partName(one.part.item, one.part.epoch), one.to)
			}
		}
	}
	for dir, to := range opened { // after all names: one sync of a folder covers all its names
		err := error(nil)
		if !s.m.opt.Unsynced {
			err = local("put the folder "+dir+" on stable storage", to.Sync())
		}
		_ = to.Close() // only opened to sync it
		for _, one := range folders[dir] {
			one.err = errors.Join(one.err, err)
		}
	}
}

// open opens the folder of some files, and makes it again if it was removed. If that fails, all of
// them fail.
func (s *saver) open(dir string, some []*save) *os.File {
	to, err := s.m.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) { // removed in the meantime
		s.m.forget(dir)
		if err = s.m.folder(dir); err == nil {
			to, err = s.m.root.Open(dir)
		}
	}
	for _, one := range some {
		one.err = local("open the folder "+dir, err)
	}
	return to
}

// folder makes a folder and its parents, unless they exist.
func (m *Mover) folder(dir string) error {
	m.mu.Lock()
	known := m.dirs[dir]
	m.mu.Unlock()
	if known {
		return nil
	}
	if err := m.make(dir); err != nil {
		return local("make the folder "+dir, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.dirs) >= maxKnown {
		clear(m.dirs)
	}
	m.dirs[dir] = true
	return nil
}

// maxKnown is the maximum number of folders remembered as existing.
const maxKnown = 10_000

func (m *Mover) forget(dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.dirs, dir)
}

// make makes a folder that survives a power failure.
func (m *Mover) make(dir string) error {
	info, err := m.root.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return failf(transfer.Occupied, "a file has the name of the folder %s", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	above := path.Dir(dir)
	if err := m.make(above); err != nil {
		return err
	}
	if err := m.root.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if m.opt.Unsynced {
		return nil
	}
	f, err := m.root.Open(above)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// rename gives a part its name, and never replaces another file: its error is fs.ErrExist then.
// from and to are the open folders.
func (m *Mover) rename(from, to *os.File, part, name string) error {
	err := durable.RenameNew(m.root, from, to, part, name)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fs.ErrExist
	case errors.Is(err, syscall.EXDEV):
		return failf(transfer.Permanent, "%s is on another file system than the site's folder %s", path.Dir(name), Hidden)
	}
	return local("give the file its name", err)
}
