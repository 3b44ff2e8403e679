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

// A tree is what is served: a folder, or files in memory. Names are below
// the top folder, separated by slashes, "." being the top folder itself. It
// is safe for concurrent use. Errors wrap those of io/fs and syscall.
type tree interface {
	reader
	writer
	close() error
}

// A reader gives what is there.
type reader interface {
	stat(name string) (entry, error)
	open(name string) (*file, error) // a file or a folder; the caller closes it
	list(name string, each func(entry) error) error
}

// A writer changes what is there. replace allows that the target exists.
type writer interface {
	create(name string) (upload, error) // fails early if commit cannot work
	mkdir(name string) error
	remove(name string) error // a file or an empty folder
	rename(from, to string, replace bool) (created bool, err error)
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

// What is readable has a position, and can be read elsewhere beside it.
type readable interface {
	io.ReadSeeker
	io.ReaderAt
}

// A file is an open file; content is nil for a folder.
type file struct {
	entry
	content readable
	closer  io.Closer // may be nil
}

func (f *file) close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

var (
	errName      = errors.New("not a name that can be served")
	errIsDir     = errors.New("is a folder")
	errParent    = errors.New("the folder above does not exist")
	errFull      = errors.New("no space for this upload")
	errExists    = errors.New("exists already")
	errCondition = errors.New("a condition of the request is not met")
)

// hidden is how the server's own names begin.
const hidden = ".weir-serve"

// cleanName turns a request's path, unescaped, into a name. folder says that
// the path ends with a slash.
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

// status maps an error of a tree to a status code. Those of the request's
// form are decided where they are found.
func status(err error) int {
	var errno syscall.Errno
	var pathErr *fs.PathError
	var large *tooLarge
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errName):
		return http.StatusBadRequest
	case errors.Is(err, errRights):
		return http.StatusForbidden
	case errors.Is(err, errIsDir):
		return http.StatusMethodNotAllowed
	case errors.Is(err, errEnded):
		return http.StatusLocked
	case errors.Is(err, errParent), errors.Is(err, syscall.ENOTEMPTY):
		return http.StatusConflict
	case errors.Is(err, errExists), errors.Is(err, errCondition):
		return http.StatusPreconditionFailed
	case errors.Is(err, errFull), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return http.StatusInsufficientStorage
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return http.StatusNotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EBUSY):
		return http.StatusForbidden
	case errors.Is(err, syscall.ENAMETOOLONG):
		return http.StatusRequestURITooLong
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.EISDIR):
		return http.StatusMethodNotAllowed
	case errors.Is(err, syscall.EINVAL): // a folder into itself
		return http.StatusConflict
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return http.StatusServiceUnavailable
	case errors.As(err, &pathErr) && !errors.As(err, &errno):
		return http.StatusForbidden // os.Root refuses by itself what leads outside
	}
	return http.StatusInternalServerError
}
