package scratch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/internal/lock"
	"weir/internal/say"
)

// A Leftover is a run's folder that was found.
type Leftover struct {
	Folder  string
	Removed int   // copies of a run that was killed
	Err     error // why the folder was left alone, or stays; nil: it is gone
}

// String says what became of the folder, in a sentence.
func (l Leftover) String() string {
	if l.Err != nil {
		return l.Err.Error()
	}
	return fmt.Sprintf("a run that was killed had left %s in %s: removed", say.Plural(l.Removed, "copy"), l.Folder)
}

// Clear looks in parent for folders of runs that were killed, and removes them
// with their copies. Those that a run still has, that are somebody else's or
// whose manifest is not to be understood are left alone; all are told.
func Clear(parent string) []Leftover {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil // who wants to use it will say so
	}
	var all []Leftover
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		l := Leftover{Folder: filepath.Join(parent, e.Name())}
		l.Removed, l.Err = leftover(l.Folder)
		if _, err := os.Lstat(l.Folder); l.Err != nil && errors.Is(err, fs.ErrNotExist) {
			continue // its run has ended just now
		}
		all = append(all, l)
	}
	return all
}

// leftover removes one folder, if it is ours and nobody has it.
func leftover(folder string) (removed int, err error) {
	dir, err := enter(folder)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	info, err := dir.Stat(".")
	if err != nil || !lock.Mine(info) {
		return 0, fmt.Errorf("%s stays: it is another user's", folder)
	}
	held, m, err := readManifest(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && time.Since(info.ModTime()) > time.Minute && os.Remove(folder) == nil:
		return 0, nil // it was empty
	case errors.Is(err, lock.ErrTaken):
		return 0, fmt.Errorf("%s stays: a run that is going on uses the same disk for its copies", folder)
	case err != nil:
		return 0, fmt.Errorf("%s stays: what it may hold is not known: %w", folder, err)
	}
	removed, err = sweep(folder, m.Copies)
	return removed, errors.Join(err, held.Close())
}

// readManifest returns a folder's manifest, and its file with the lock.
func readManifest(dir *os.Root) (*os.File, manifest, error) {
	var m manifest
	info, err := dir.Lstat(manifestName)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", manifestName)
	}
	if err != nil {
		return nil, m, err
	}
	f, err := dir.OpenFile(manifestName, os.O_RDWR, 0)
	if err != nil {
		return nil, m, err
	}
	err = lock.Alone(f)
	if err == nil {
		err = json.NewDecoder(io.LimitReader(f, 4096)).Decode(&m)
	}
	if err == nil && (m.Format != format || m.Copies < 0 || m.Copies > mostCopies) {
		err = fmt.Errorf("%s is not one that this version of weir writes", manifestName)
	}
	if err != nil {
		return nil, m, errors.Join(err, f.Close())
	}
	return f, m, nil
}
