package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"weir/internal/lock"
	"weir/storage"
)

// A service's folder is below the system's folder for temporary files. Only this user can read it,
// so all files in it come from the service and its programs. The service holds a lock on the
// folder's manifest. A free lock indicates that the folder's weir was killed.
const (
	folderPrefix = "weir-command-"
	manifestName = "manifest"
	manifestText = "this folder, with all that is in it, is of one run of weir and its programs\n"
)

// makeFolder makes a service's folder, after it has removed the folders of killed runs of this
// user. The manifest must be closed after the folder is removed.
func makeFolder() (dir string, manifest *os.File, err error) {
	clearLeftovers(os.TempDir())
	if dir, err = os.MkdirTemp("", folderPrefix); err != nil {
		return "", nil, err
	}
	if manifest, err = lock.Claim(dir, manifestName, []byte(manifestText)); err != nil {
		return "", nil, errors.Join(err, os.Remove(dir))
	}
	return dir, manifest, nil
}

func clearLeftovers(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // making a folder there will report the reason
	}
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		if !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}
		if manifest := abandoned(dir); manifest != nil {
			removeAll(dir)
			_ = manifest.Close() // only held
		}
	}
}

// abandoned returns the manifest of a folder that is this user's and no process's any more, locked; nil for all
// others.
func abandoned(dir string) *os.File {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 || !lock.Mine(info) {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, manifestName), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	text := make([]byte, len(manifestText))
	if lock.Alone(f) == nil {
		if _, err := io.ReadFull(f, text); err == nil && string(text) == manifestText {
			return f
		}
	}
	_ = f.Close() // only read
	return nil
}

// job runs the command as an analysis job on the file of op.
func (c *client) job(ctx context.Context, op *storage.Op) (storage.Result, error) {
	res := storage.Result{Size: -1}
	l := c.tool.lines[storage.Run]
	argv, err := l.expand(c.value(op, storage.Range{}, "", ""))
	if err != nil {
		return res, err
	}
	if l.dir, err = c.folder(); err != nil {
		return res, fmt.Errorf("folder to run in: %w: %w", storage.ErrScratch, unclassed{err})
	}
	defer c.clear(l.dir)
	r, err := c.run(ctx, l, argv, false, func(int) {})
	res.Process = r.usage
	switch said := tidy(r.words, c.secrets()); {
	case err == nil && r.status != 0:
		err = &exitError{program: l.program, result: r, text: said}
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%s had not ended in time and was killed: %w", l.program, err)
		if said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
	}
	return res, err
}

// folder returns an empty folder for the next job: a new folder, unless the last job has left its
// own folder unchanged.
func (c *client) folder() (string, error) {
	if dir := c.room; dir != "" {
		return dir, nil
	}
	c.jobs++
	dir := fmt.Sprintf("%sjob-%d", c.base, c.jobs)
	return dir, os.Mkdir(dir, 0o700)
}

// clear removes the files of a job, with its folder if there are any.
func (c *client) clear(dir string) {
	c.room = ""
	if untouched(dir) {
		c.room = dir
		return
	}
	removeAll(dir)
}

func untouched(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Mode() != fs.ModeDir|0o700 {
		return false
	}
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

// removeAll removes dir even if a program removed its own permission for that, as some programs do
// for their caches. Close reports files that could not be removed.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// vacate makes sure that op's Dest can be made, and that a program finds no file there: some
// programs refuse to write to an existing file.
func vacate(op *storage.Op) error {
	d, err := op.OpenDest()
	if err == nil {
		err = d.Close(nil)
	}
	if err != nil {
		return err
	}
	info, err := os.Lstat(op.Dest)
	if err == nil && info.Mode().IsRegular() {
		err = os.Remove(op.Dest)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", storage.ErrScratch, err)
	}
	return nil
}

// classifyScratch wraps err in storage.ErrScratch if a program that wrote to dest failed, or wrote too little, because
// of the disk of this machine: by the program's error text (of the C library or curl), or if dest cannot grow. (xrdcp 5.5 and gfal-copy end
// with status 0 on a full disk, and without a word.)
func classifyScratch(err error, dest string) error {
	if errors.Is(err, storage.ErrShort) {
		if why := appendError(dest); why != nil {
			return fmt.Errorf("%w: %w: %w", storage.ErrScratch, why, err)
		}
		return err
	}
	var e *exitError
	if !errors.As(err, &e) {
		return err
	}
	text := strings.ToLower(e.text)
	for _, words := range []string{
		"no space left", "quota exceeded", "file too large", "read-only file system",
		"failure writing output", "failed writing body", "failed to open the file",
	} {
		if strings.Contains(text, words) {
			return fmt.Errorf("%w: %s: %w", storage.ErrScratch, dest, err)
		}
	}
	return err
}

// appendError returns the error of appending to a file, nil if it can grow. It leaves the file unchanged.
func appendError(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil // there is no such file
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	_, err = f.Write(make([]byte, 64<<10)) // more than is left of its last block
	if terr := f.Truncate(info.Size()); err == nil {
		err = terr
	}
	return err
}
