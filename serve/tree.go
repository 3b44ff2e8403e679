package serve

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A tree is the served content: a folder, or files in memory. Names are below the top folder,
// separated by slashes, "." being the top folder itself. It is safe for concurrent use. Errors wrap
// errors of io/fs and syscall.
type tree interface {
	stat(name string) (entry, error)
	open(name string) (*file, error) // a file or a folder; the caller closes it
	list(name string, each func(entry) error) error
	create(name string) (upload, error) // fails early if commit cannot work
	mkdir(name string) error
	remove(name string) error                                       // a file or an empty folder
	rename(from, to string, replace bool) (created bool, err error) // replace allows that the target exists
	close() error
}

// An upload becomes a file when it is whole.
type upload interface {
	io.Writer
	commit(replace bool) (e entry, created bool, err error) // ends the upload, also if it fails
	abort()
}

// An entry is a file or a folder.
type entry struct {
	name     string // last element
	size     int64
	modified time.Time
	dir      bool
}

// etag returns the entity tag: it changes when size or time do.
func (e entry) etag() string {
	return `"` + strconv.FormatInt(e.modified.UnixNano(), 36) + "-" + strconv.FormatInt(e.size, 36) + `"`
}

// A file is an open file; content is nil for a folder.
type file struct {
	entry
	content interface {
		io.ReadSeeker
		io.ReaderAt
	}
	closer io.Closer // may be nil
}

// Close implements io.Closer.
func (f *file) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// A Refusal is an error with the status and the sentence of its answer.
type Refusal struct {
	Code   int
	Reason string
}

// Error returns the sentence.
func (e *Refusal) Error() string { return e.Reason }

var (
	// ErrIsFolder refuses a folder in place of a file.
	ErrIsFolder = &Refusal{http.StatusMethodNotAllowed, "is a folder"}
	// ErrExists refuses to replace a file.
	ErrExists = &Refusal{http.StatusPreconditionFailed, "exists already"}
	// ErrRights means that the credentials do not allow a request.
	ErrRights = &Refusal{http.StatusForbidden, "the credentials do not allow this"}

	// ErrNoParent refuses a name whose folder does not exist.
	ErrNoParent = &Refusal{http.StatusConflict, "the folder above does not exist"}

	errName      = &Refusal{http.StatusBadRequest, "not a name that can be served"}
	errFull      = &Refusal{http.StatusInsufficientStorage, "no space for this upload"}
	errCondition = &Refusal{http.StatusPreconditionFailed, "a condition of the request is not met"}
)

// hidden is the prefix of the server's own names.
const hidden = ".weir-serve"

// cleanName turns a request's path, unescaped, into a name. folder reports whether the path ends
// with a slash.
func cleanName(path string) (name string, folder bool, err error) {
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "\x00\\") {
		return "", false, errName
	}
	parts := strings.Split(path, "/")
	kept := parts[:0]
	for _, p := range parts {
		switch {
		case p == "":
		case p == "." || p == "..":
			return "", false, errName
		case strings.HasPrefix(p, hidden):
			return "", false, fs.ErrNotExist
		default:
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		return ".", true, nil
	}
	return strings.Join(kept, "/"), strings.HasSuffix(path, "/"), nil
}

// status returns the status code of an error of the file system.
func status(err error) int {
	for _, known := range []struct {
		code int
		errs []error
	}{
		{http.StatusConflict, []error{syscall.ENOTEMPTY}},
		{http.StatusInsufficientStorage, []error{syscall.ENOSPC, syscall.EDQUOT}},
		{http.StatusNotFound, []error{fs.ErrNotExist, syscall.ENOTDIR}},
		{http.StatusForbidden, []error{fs.ErrPermission, syscall.EROFS, syscall.ELOOP, syscall.EBUSY}},
		{http.StatusRequestURITooLong, []error{syscall.ENAMETOOLONG}},
		{http.StatusMethodNotAllowed, []error{fs.ErrExist, syscall.EISDIR}},
		{http.StatusConflict, []error{syscall.EINVAL}}, // a folder into itself
		{http.StatusServiceUnavailable, []error{syscall.EMFILE, syscall.ENFILE}},
	} {
		for _, e := range known.errs {
			if errors.Is(err, e) {
				return known.code
			}
		}
	}
	var errno syscall.Errno
	if _, ok := errors.AsType[*fs.PathError](err); ok && !errors.As(err, &errno) {
		return http.StatusForbidden // os.Root refuses paths that lead outside
	}
	return http.StatusInternalServerError
}
