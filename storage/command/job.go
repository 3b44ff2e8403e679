package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"weir/storage"
)

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
	switch said := tidy(r.words, c.secrets); {
	case err == nil && r.status != 0:
		err = &exitError{program: l.program, ran: r, text: said}
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%s had not ended in time and was killed: %w", l.program, err)
		if said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
	}
	return res, err
}

// folder returns an empty folder for the next job: a new one, unless the last
// job has left its own as it was.
func (c *client) folder() (string, error) {
	if dir := c.room; dir != "" {
		return dir, nil
	}
	c.jobs++
	dir := fmt.Sprintf("%sjob-%d", c.base, c.jobs)
	return dir, os.Mkdir(dir, 0o700)
}

// clear removes what a job has left, with its folder if there is anything.
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

// removeAll removes dir also where a program took its own right to do so away,
// as some do with what they keep for the next time. What stays all the same is told by Close.
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
