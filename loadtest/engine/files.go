package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"syscall"

	"weir/internal/say"
	"weir/loadtest/workload"
	"weir/storage"
)

// mostLooked is the number of files of a list whose sizes are compared with the service's.
const mostLooked = 16

// sizes requests the unknown sizes of files from the service if the work uses them: a few at a
// time, and each file once. It returns the files without the files that the service refuses, of
// which it warns; of a listing also without files that do not exist. If the work needs sizes, the
// error wraps workload.ErrSizes if the service does not give some of them, and fs.ErrNotExist if
// files do not exist. Sizes of a list are compared with the service's for a sample of the files;
// the error of a different size wraps storage.ErrSize.
func (p *preparer) sizes(ctx context.Context, files []workload.File) ([]workload.File, error) {
	named := commandNeedsSizes(p.Plan.Command)
	if !named && !slices.ContainsFunc(p.Plan.Works(), workload.UsesSizes) {
		return files, nil
	}
	var unknown, listed []*workload.File
	for i := range files {
		switch f := &files[i]; {
		case f.Size < 0:
			unknown = append(unknown, f)
		case !f.Made && p.Plan.Files.List != "":
			listed = append(listed, f)
		}
	}
	if len(listed)+len(unknown) > 0 && !p.Plan.Files.Listing {
		if err := p.contact(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.compareSizes(ctx, sample(listed, mostLooked)); err != nil {
		return nil, err
	}
	left, err := p.askSizes(ctx, unknown, named || slices.ContainsFunc(p.Plan.Works(), workload.NeedsSizes))
	if err != nil || left.n == 0 {
		return files, err
	}
	if left.n == len(files) {
		return nil, fmt.Errorf("sizes of files: none of %s can be used: %.200q: %w", say.Plural(left.n, "file"), left.first, left.why)
	}
	files = slices.DeleteFunc(files, func(f workload.File) bool { return f.Size == leftOut })
	return files, p.warn("%s left out, the first is %.200q: %v", say.Plural(left.n, "file"), left.first, left.why)
}

// leftOut is the size that marks a file which is left out.
const leftOut = -2

// commandNeedsSizes reports whether the arguments of a user's program contain sizes.
func commandNeedsSizes(command []string) bool {
	return slices.ContainsFunc(command, func(arg string) bool {
		plain := strings.ReplaceAll(arg, "{{", "")
		return strings.Contains(plain, "{size}") || strings.Contains(plain, "{length}")
	})
}

// sample returns at most n of the files, evenly spread over all of them.
func sample(files []*workload.File, n int) []*workload.File {
	if len(files) <= n {
		return files
	}
	some := make([]*workload.File, n)
	for i := range some {
		some[i] = files[i*len(files)/n]
	}
	return some
}

// askSizes requests the size of each file and keeps it there. Unless they are needed, sizes that
// the service does not give stay unknown. left counts the files that it marks as leftOut.
func (p *preparer) askSizes(ctx context.Context, files []*workload.File, needed bool) (left *missing, err error) {
	m, left := missing{all: len(files)}, &missing{}
	err = p.each(ctx, len(files), "sizes asked", func(ctx context.Context, s storage.Client, i int) error {
		size, err := p.sizeOf(ctx, s, files[i].Path)
		files[i].Size = size
		switch {
		case err == nil:
		case p.unusable(err):
			files[i].Size = leftOut
			left.add(files[i].Path, err)
			return nil
		case errors.Is(err, syscall.EISDIR):
			return folderListed(files[i].Path, err)
		default:
			m.add(files[i].Path, err)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, workload.ErrSizes) {
			return nil // other files may have a size
		}
		return err
	})
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return left, fmt.Errorf("sizes of files: %w", err)
	}
	if !needed {
		return left, nil
	}
	return left, m.err()
}

// folderListed returns the error of a list that names a folder.
func folderListed(path string, err error) error {
	return fmt.Errorf("files.list: %.200q is a folder: name files: %w", path, err)
}

// unusable reports whether a file whose size is refused with err is left out: files that may not be
// read, and entries of a listing that do not exist or are folders.
func (p *preparer) unusable(err error) bool {
	return errors.Is(err, fs.ErrPermission) ||
		p.Plan.Files.Listing && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR))
}

// sizeOf requests the size of one file, and if the response has no size, the file's first byte,
// with which some services give it. The size is negative beside an error, which wraps
// workload.ErrSizes if the service gives no size.
func (p *preparer) sizeOf(ctx context.Context, s storage.Client, path string) (int64, error) {
	res, err := p.ask(ctx, s, &storage.Op{Kind: storage.Stat, Path: path, Size: -1})
	if err == nil && res.Folder {
		return -1, syscall.EISDIR
	}
	if res.Encoding != "" {
		p.encoding.Store(res.Encoding)
	}
	// Apache's HEAD of an empty file has no length, and often no length of content made on demand.
	if err == nil && res.Size < 0 {
		begin := storage.Op{Kind: storage.Read, Path: path, Size: -1, Ranges: []storage.Range{{Length: 1}}}
		if read, _ := p.ask(ctx, s, &begin); read.Size >= 0 { // an empty file has no first byte, but a size
			return read.Size, nil
		}
	}
	switch {
	case err != nil:
		return -1, err
	case res.Size < 0:
		return -1, fmt.Errorf("%w: the service does not give the size of %.200q", workload.ErrSizes, path)
	}
	return res.Size, nil
}

// missing counts the files of which there is no size. Its methods may be called by
// many goroutines.
type missing struct {
	all     int
	mu      sync.Mutex
	n, lost int    // without a size; of these, not there
	first   string // path
	why     error  // of the first
}

func (m *missing) add(path string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n++
	if errors.Is(err, fs.ErrNotExist) {
		m.lost++
	}
	if m.why == nil {
		m.first, m.why = path, err
	}
}

func (m *missing) err() error {
	switch {
	case m.n == 0:
		return nil
	case m.lost == m.n:
		return fmt.Errorf("%d of %s are not there, the first is %.200q: %w", m.n, say.Plural(m.all, "file"), m.first, m.why)
	case errors.Is(m.why, workload.ErrSizes):
		return fmt.Errorf("%w: the service gives none for %d of %s, the first is %.200q", workload.ErrSizes, m.n,
			say.Plural(m.all, "file"), m.first)
	case errors.Is(m.why, errors.ErrUnsupported):
		return fmt.Errorf("%w: %s, and the client cannot ask for them: %w", workload.ErrSizes, say.Plural(m.all, "file"), m.why)
	}
	return fmt.Errorf("%w: %d of %s, the first is %.200q: %w", workload.ErrSizes, m.n, say.Plural(m.all, "file"), m.first, m.why)
}

// compareSizes checks whether the files have the sizes that the list gives. A file whose size the
// service does not report is not compared: the load shows the error.
func (p *preparer) compareSizes(ctx context.Context, files []*workload.File) error {
	return p.each(ctx, len(files), "sizes compared", func(ctx context.Context, s storage.Client, i int) error {
		size, err := p.sizeOf(ctx, s, files[i].Path)
		if errors.Is(err, syscall.EISDIR) {
			return folderListed(files[i].Path, err)
		}
		if err != nil {
			return nil
		}
		if err := storage.CheckSize(files[i].Size, size); err != nil {
			return fmt.Errorf("files.list: %.200q: %w", files[i].Path, err)
		}
		return nil
	})
}
