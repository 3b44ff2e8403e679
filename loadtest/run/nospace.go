package run

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
)

// noSpace reports whether err is that of a full disk, of a used quota, or of a limit of file sizes
// for a file below dir, or for a folder on the way to it. The target may be full as well.
func noSpace(dir string, err error) bool {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) && !errors.Is(err, syscall.EFBIG) {
		return false
	}
	var of *fs.PathError
	if !errors.As(err, &of) {
		return false
	}
	below := func(path, folder string) bool {
		return path == folder || strings.HasPrefix(path, folder+string(filepath.Separator))
	}
	dir, path := filepath.Clean(dir), filepath.Clean(of.Path)
	return below(path, dir) || below(dir, path)
}

// NoSpace returns err with the first of its errors of a full disk that holds dir, and a hint,
// instead of all of them; it returns err itself if it has no such error.
func NoSpace(dir string, err error, hint string) error {
	var others []error
	var full error
	for _, e := range parts(err) {
		switch {
		case !noSpace(dir, e):
			others = append(others, e)
		case full == nil:
			full = e
		}
	}
	if full == nil {
		return err
	}
	return errors.Join(append(others, fmt.Errorf("%w\nhint: %s", full, hint))...)
}

// parts returns the errors that were joined to err.
func parts(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, parts(e)...)
	}
	return all
}

// noSpace returns err, the error of the session's run, as NoSpace does. explain has a hint for runs
// without load.
func (r *session) noSpace(err error) error {
	switch {
	case !r.loaded:
		return err
	case r.Series.Dir != "":
		return NoSpace(r.Dir, err, fmt.Sprintf("free space there; weir run --resume %s repeats the run", r.Series.Dir))
	case r.find != nil:
		return NoSpace(r.Dir, err, fmt.Sprintf("free space there; weir report %s writes the report, weir find --resume %s continues",
			r.Dir, r.Dir))
	}
	return NoSpace(r.Dir, err, fmt.Sprintf("free space there; weir report %s writes the report, weir run --resume %s continues",
		r.Dir, r.Dir))
}
