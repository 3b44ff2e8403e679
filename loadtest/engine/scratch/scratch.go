// Package scratch keeps the copies of files that staged jobs work on: a folder for each run, which
// is removed with the run, or after it.
//
// The paths that a run may leave behind are recorded before any of them exists: the folder's
// manifest has the number of copies that it may hold, and their names follow from the number. Only
// files with such names are ever removed, never through a link, and the folder itself only when it
// is empty. The run holds a lock on the manifest: a free lock identifies the folder of a run that
// was killed.
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

const (
	prefix       = "weir-scratch-" // of folders; the rest is random
	manifestName = "manifest.json"
	format       = 1
	// MostCopies is the largest number of copies in a folder.
	MostCopies = 10_000_000
)

// A manifest is the number of files that its folder may hold besides the manifest: so many copies.
type manifest struct {
	Format int `json:"weir_scratch"` // 1
	Copies int `json:"copies"`
}

// Copy returns the path of client number n's copy in a folder, n from 0.
func Copy(folder string, n int) string { return filepath.Join(folder, copyName(n)) }

// Output returns the path of client number n's output in a folder, n from 0.
func Output(folder string, n int) string { return filepath.Join(folder, outputName(n)) }

func outputName(n int) string { return fmt.Sprintf("output-%06d", n) }

func copyName(n int) string { return fmt.Sprintf("copy-%06d", n) }

// A Folder is the folder of one run, with its lock. A nil Folder has no path.
type Folder struct {
	path     string
	copies   int
	manifest *os.File
}

// Open makes a folder in parent for so many copies, which only this user can read. The caller
// closes it.
func Open(parent string, copies int) (*Folder, error) {
	if copies > MostCopies {
		return nil, fmt.Errorf("%d copies: at most %d clients can have one", copies, MostCopies)
	}
	path, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	f := &Folder{path: path, copies: copies}
	text, err := json.Marshal(manifest{format, copies})
	if err == nil {
		f.manifest, err = lock.Claim(path, manifestName, append(text, '\n'))
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return f, nil
}

// Path returns the path of the folder, "" for a nil Folder.
func (f *Folder) Path() string {
	if f == nil {
		return ""
	}
	return f.path
}

// Close removes the copies and the folder, and releases the lock. Its error has the names of files
// that stay, and the reasons. Files that no longer exist are no error.
func (f *Folder) Close() error {
	if f == nil {
		return nil
	}
	_, err := sweep(f.path, f.copies)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // another process was faster
	}
	return errors.Join(err, f.manifest.Close())
}

// sweep removes the copies that lie in a folder, and the folder, if nothing else
// is in it. It returns how many copies there were.
func sweep(folder string, copies int) (removed int, err error) {
	dir, err := enter(folder)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return 0, err
	}
	foreign := ""
	for _, e := range entries {
		switch {
		case e.Name() == manifestName:
		case !e.Type().IsRegular() || !isCopy(e.Name(), copies):
			foreign = e.Name()
		default:
			if err := dir.Remove(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return removed, err
			}
			removed++
		}
	}
	if foreign != "" {
		return removed, fmt.Errorf("%s is not removed: it contains %q, which weir did not create", folder, foreign)
	}
	if err := dir.Remove(manifestName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return removed, err
	}
	return removed, os.Remove(folder)
}

// isCopy reports whether a folder for so many copies may hold a file of that name: a copy, or the output of its job.
func isCopy(name string, copies int) bool {
	n := -1
	_, digits, ok := strings.Cut(name, "-")
	if _, err := fmt.Sscanf(digits, "%d", &n); !ok || err != nil {
		return false
	}
	return n >= 0 && n < copies && (name == copyName(n) || name == outputName(n))
}

// enter opens a folder that is a folder itself, and no link to a folder.
func enter(folder string) (*os.Root, error) {
	before, err := os.Lstat(folder)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("%s stays: it is no folder", folder)
	}
	dir, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	now, err := dir.Stat(".")
	if err == nil && !os.SameFile(before, now) {
		err = fmt.Errorf("%s stays: it has become another folder", folder)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// A Leftover is a run's folder that was found.
type Leftover struct {
	Folder  string
	Removed int   // copies of a run that was killed
	InUse   bool  // a running process has it
	Err     error // why the folder was left alone, or stays; nil: it is gone
}

// String returns a sentence with the outcome for the folder.
func (l Leftover) String() string {
	if l.Err != nil {
		return l.Err.Error()
	}
	return fmt.Sprintf("a run that was killed had left %s in %s: removed", say.Plural(l.Removed, "copy"), l.Folder)
}

// Clear searches parent for folders of runs that were killed, and removes them with their copies.
// Folders that a run still has, that belong to other users or whose manifest is invalid are left
// alone; all are reported.
func Clear(parent string) []Leftover {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil // a process that uses the folder gets the error
	}
	var all []Leftover
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		l := Leftover{Folder: filepath.Join(parent, e.Name())}
		l.Removed, l.Err = leftover(l.Folder)
		l.InUse = errors.Is(l.Err, errInUse)
		if _, err := os.Lstat(l.Folder); l.Err != nil && errors.Is(err, fs.ErrNotExist) {
			continue // its run has ended just now
		}
		all = append(all, l)
	}
	return all
}

var errInUse = errors.New("a run that is going on uses the same disk for its copies")

// leftover removes one folder, if it belongs to this program and is unlocked.
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
		return 0, fmt.Errorf("%s stays: %w", folder, errInUse)
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
	if err == nil && (m.Format != format || m.Copies < 0 || m.Copies > MostCopies) {
		err = fmt.Errorf("%s is not one that this version of weir writes", manifestName)
	}
	if err != nil {
		return nil, m, errors.Join(err, f.Close())
	}
	return f, m, nil
}
