package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"weir/internal/adler"
	"weir/transfer/catalog"
)

// Folder yields the files below a folder of a site's root ("" is the whole root), in no particular
// order, with checksums computed from their content. Links to files are followed, but not links to
// folders or out of the root. A file is left out and reported if it changes during reading, if the
// catalog cannot have its name, or if it is not a regular file. Names that begin with .weir are
// left out as well, because agents neither copy nor show them; they are also reported, except for
// the agents' own folders in the root, which contain no data.
func Folder(ctx context.Context, root *os.Root, folder string, o Options) iter.Seq2[catalog.Entry, error] {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	top := path.Clean("/" + folder)[1:]
	buffers := make([][]byte, o.Workers)
	return parallel(ctx, o, func(ctx context.Context, found func(string) bool, wrong func(string, error) bool) error {
		return walk(ctx, root, top, func(name string) bool { return !o.matches(belowTop(name, top)) || found(name) }, wrong)
	}, func(ctx context.Context, worker int, name string) result {
		if buffers[worker] == nil {
			buffers[worker] = make([]byte, 1<<20)
		}
		e := o.entry(belowTop(name, top), name)
		var err error
		if _, err = catalog.CheckEntry(e); err == nil { // before it is read
			err = read(ctx, root, name, buffers[worker], &e)
		}
		return result{name, e, err}
	})
}

// belowTop returns the path of a file below the folder top.
func belowTop(name, top string) string { return strings.TrimPrefix(strings.TrimPrefix(name, top), "/") }

func walk(ctx context.Context, root *os.Root, top string, found func(string) bool, wrong func(string, error) bool) error {
	if strings.HasPrefix(top, ours) || strings.Contains(top, "/"+ours) {
		return fmt.Errorf("%s: %w", top, errOurs)
	}
	if info, err := root.Stat(dot(top)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s below the site's root", top)
	} else if err != nil {
		return ledOut(root, top, err)
	} else if !info.IsDir() {
		return fmt.Errorf("%s is no folder", top)
	}
	return fs.WalkDir(root.FS(), dot(top), func(name string, d fs.DirEntry, err error) error {
		goOn := true
		switch {
		case err != nil && name == dot(top):
			return err
		case err != nil:
			goOn = wrong(name, err)
		case name != dot(top) && strings.HasPrefix(d.Name(), ours):
			if !d.IsDir() || path.Dir(name) != "." {
				goOn = wrong(name, errOurs)
			}
			if d.IsDir() {
				err = fs.SkipDir
			}
		case d.IsDir():
			if !utf8.ValidString(name) {
				goOn = wrong(name, errors.New("its name is not UTF-8"))
				err = fs.SkipDir
			}
		case d.Type().IsRegular() || d.Type()&fs.ModeSymlink != 0:
			goOn = found(name)
		default:
			goOn = wrong(name, errNoFile)
		}
		if !goOn {
			return ctx.Err()
		}
		return err
	})
}

// dot returns the name of a folder in the notation of package fs, in which the root is ".".
func dot(top string) string {
	if top == "" {
		return "."
	}
	return top
}

var (
	errNoFile  = errors.New("it is no file, and no link to one")
	errOurs    = errors.New("names that begin with .weir are the agent's own: call it something else")
	errChanged = errors.New("it changed while it was read: import it again when it is complete")
)

// ledOut returns an error that describes a link which does not lead to a file of the site. If the
// file is not a link, it returns err.
func ledOut(root *os.Root, name string, err error) error {
	to, failed := root.Readlink(name)
	switch {
	case failed != nil, errors.Is(err, fs.ErrPermission):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("it is a link to %s, which is not there", to)
	}
	return fmt.Errorf("it is a link to %s: links are followed only to files below the site's root", to)
}

// read computes the checksum of a file. The name must refer to the same, unchanged file before and
// after.
func read(ctx context.Context, root *os.Root, name string, buffer []byte, e *catalog.Entry) (err error) {
	// Opening a pipe that has just taken the name would otherwise wait for a writer.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ledOut(root, name, err)
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return err
	}
	if !before.Mode().IsRegular() {
		return errNoFile
	}
	sum := uint32(1)
	for {
		n, err := f.Read(buffer)
		sum = adler.Update(sum, buffer[:n])
		e.Size += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	after, err := root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return errChanged
	}
	if err != nil {
		return err
	}
	if !os.SameFile(before, after) || after.Size() != e.Size || before.Size() != e.Size || !after.ModTime().Equal(before.ModTime()) {
		return errChanged
	}
	e.Adler, e.Verified = adler.Text(sum), time.Now().UTC()
	return nil
}
