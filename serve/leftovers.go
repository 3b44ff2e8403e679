package serve

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync"

	"weir/internal/lock"
)

const (
	partSuffix = ".part"
	notesName  = hidden + "-folders" // in the top folder: the folders that had uploads, one quoted name a line
)

// leftovers removes the temporaries of servers that were killed. Which
// folders may have some is noted in a file of the top folder, so that no
// start has to walk through all of them. That file is locked, shared, by
// each server that writes: only a server that finds it not locked cleans up.
type leftovers struct {
	root  *os.Root
	mu    sync.Mutex
	file  *os.File // nil until the first upload, unless the file existed before
	noted map[string]bool
}

func openLeftovers(root *os.Root, readOnly bool, log *slog.Logger) (*leftovers, error) {
	l := &leftovers{root: root, noted: map[string]bool{}}
	if readOnly {
		return l, nil
	}
	f, err := root.OpenFile(notesName, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		log.Warn("temporaries of an earlier server are not looked for", "error", err)
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	l.file = f
	err = l.clean(log)
	if err == nil && !l.current(f) { // its server ended just now, and tidied up
		l.file, err = nil, f.Close()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("temporaries of an earlier server: %w", err), f.Close())
	}
	return l, nil
}

// alone locks f unless it is locked.
func alone(f *os.File) (bool, error) {
	err := lock.Alone(f)
	if errors.Is(err, lock.ErrTaken) {
		return false, nil
	}
	return err == nil, err
}

// current reports whether f, which is locked, still has its name.
func (l *leftovers) current(f *os.File) bool {
	mine, err := f.Stat()
	named, err2 := l.root.Stat(notesName)
	return err == nil && err2 == nil && os.SameFile(mine, named)
}

// clean removes the leftovers of earlier servers, unless such a server is still running.
func (l *leftovers) clean(log *slog.Logger) error {
	only, err := alone(l.file)
	if err != nil {
		return err
	}
	if !only {
		return lock.Shared(l.file)
	}
	lines := bufio.NewScanner(l.file)
	seen := map[string]bool{}
	for lines.Scan() {
		var folder string
		if n, err := fmt.Sscanf(lines.Text(), "%q", &folder); n != 1 || err != nil || seen[folder] {
			continue // cut short by the kill; that folder had no upload yet
		}
		seen[folder] = true
		l.cleanFolder(folder, log)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errors.Join(l.file.Truncate(0), lock.Shared(l.file))
}

func (l *leftovers) cleanFolder(folder string, log *slog.Logger) {
	f, err := l.root.Open(folder)
	if err != nil {
		return // removed since
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	for _, name := range names {
		if !strings.HasPrefix(name, hidden+"-") || !strings.HasSuffix(name, partSuffix) {
			continue
		}
		err := l.root.Remove(path.Join(folder, name))
		log.Info("removed the unfinished upload of an earlier server", "folder", folder, "name", name, "error", err)
	}
}

// note writes down that folder may have temporaries, once.
func (l *leftovers) note(folder string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.noted[folder] {
		return nil
	}
	for l.file == nil {
		f, err := l.root.OpenFile(notesName, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
		if err != nil {
			return err
		}
		if err := lock.Shared(f); err != nil {
			return errors.Join(err, f.Close())
		}
		if l.current(f) {
			l.file = f
		} else if err := f.Close(); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(l.file, "%q\n", folder); err != nil {
		return err
	}
	l.noted[folder] = true
	return nil
}

// close ends the notes when all uploads are over. The last server takes the
// file away.
func (l *leftovers) close() error {
	if l.file == nil {
		return nil
	}
	only, err := alone(l.file)
	if err == nil && only && l.current(l.file) {
		err = l.root.Remove(notesName)
	}
	return errors.Join(err, l.file.Close()) // and with it the lock
}
