package monitor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// procFS reads the files of /proc and /sys without making garbage. It is for one goroutine at a time.
//
// github.com/prometheus/procfs costs more: the table of dependencies in CONTRIBUTING.md has the figures.
type procFS struct {
	proc, sys string
	buf       []byte
	open      map[string]*os.File // files that are read again and again
	dir       *os.File
	path      []byte
}

func newProcFS(proc, sys string) *procFS {
	proc = cmp.Or(proc, "/proc")
	sys = cmp.Or(sys, "/sys")
	return &procFS{proc: proc, sys: sys, buf: make([]byte, 16<<10), open: map[string]*os.File{}}
}

// real reports whether this is the /proc that this process lives in.
func (f *procFS) real() bool { return f.proc == "/proc" }

func (f *procFS) close() {
	for name, file := range f.open {
		_ = file.Close()
		delete(f.open, name)
	}
	if f.dir != nil {
		_ = f.dir.Close()
		f.dir = nil
	}
}

// read returns the content of a file below /proc, which stays open. The bytes are good until the next call of a
// method of f.
func (f *procFS) read(name string) ([]byte, error) {
	file := f.open[name]
	if file == nil {
		var err error
		if file, err = os.Open(f.proc + "/" + name); err != nil {
			return nil, err
		}
		f.open[name] = file
	}
	b, err := f.slurp(file)
	if err != nil {
		_ = file.Close()
		delete(f.open, name)
	}
	return b, err
}

// biggest limits the length that is read of one file of /proc. The largest files that are read
// whole, stat and diskstats, reach some hundred KB on the largest machines.
const biggest = 8 << 20

func (f *procFS) slurp(file *os.File) ([]byte, error) {
	for n := 0; ; {
		m, err := file.ReadAt(f.buf[n:], int64(n))
		n += m
		switch {
		case errors.Is(err, io.EOF):
			return f.buf[:n], nil
		case err != nil:
			return nil, err
		case n >= biggest:
			return nil, fmt.Errorf("%s: larger than %d bytes", file.Name(), biggest)
		}
		f.grow(n)
	}
}

// pids returns the numbers of all processes, ascending.
func (f *procFS) pids(into []int) ([]int, error) {
	if f.dir == nil {
		dir, err := os.Open(f.proc)
		if err != nil {
			return nil, err
		}
		f.dir = dir
	}
	if _, err := f.dir.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	names, err := f.dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	into = into[:0]
	for _, name := range names {
		if !isDigit(name[0]) {
			continue
		}
		if pid, err := strconv.Atoi(name); err == nil && pid > 0 {
			into = append(into, pid)
		}
	}
	slices.Sort(into)
	return into, nil
}

// ofPid returns the path of a file of a process.
func (f *procFS) ofPid(pid int, name string) string {
	f.path = append(append(f.path[:0], f.proc...), '/')
	f.path = strconv.AppendInt(f.path, int64(pid), 10)
	f.path = append(append(f.path, '/'), name...)
	return string(f.path)
}

// readPid returns the content of a file of a process, good until the next call.
func (f *procFS) readPid(pid int, name string) ([]byte, error) {
	return f.readOnce(f.ofPid(pid, name))
}

// readOnce goes round os.File, whose book-keeping costs more than the read.
func (f *procFS) readOnce(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	for n := 0; ; {
		m, err := unix.Read(fd, f.buf[n:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case m == 0:
			return f.buf[:n], nil
		}
		if n += m; n >= biggest {
			return nil, fmt.Errorf("%s: larger than %d bytes", path, biggest)
		}
		f.grow(n)
	}
}

// grow makes room in the buffer behind the first n bytes.
func (f *procFS) grow(n int) {
	if n == len(f.buf) {
		f.buf = append(f.buf, make([]byte, len(f.buf))...)
	}
}

// word returns the only line of a small file, without spaces around it, or "" if it cannot be read.
func (f *procFS) word(path string) string {
	b, err := f.readOnce(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
