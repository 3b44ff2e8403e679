package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"weir/internal/say"
	"weir/storage"
	"weir/workload"
)

// mostLooked is how many files of a list are looked at to compare the list's sizes
// with the service's.
const mostLooked = 16

// sizes asks the service for the sizes of files that have none, where the work uses
// them: a few at a time, and each file once. Where the work needs them, its error
// wraps workload.ErrSizes if the service does not give some of them, and
// fs.ErrNotExist if files are not there. Sizes of a list are compared with the
// service's for a sample of the files; the error of one that differs wraps
// storage.ErrSize.
func (p *preparer) sizes(ctx context.Context, files []workload.File) error {
	named := commandNeedsSizes(p.Plan.Command)
	if !named && !workload.UsesSizes(p.Plan.Work) {
		return nil
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
			return err
		}
	}
	if err := p.compareSizes(ctx, sample(listed, mostLooked)); err != nil {
		return err
	}
	return p.askSizes(ctx, unknown, named || workload.NeedsSizes(p.Plan.Work))
}

// commandNeedsSizes says whether a program of the user's is given sizes.
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

// askSizes asks for the size of each file and keeps it there. Unless they are
// needed, sizes that the service does not give stay unknown.
func (p *preparer) askSizes(ctx context.Context, files []*workload.File, needed bool) error {
	m := missing{all: len(files)}
	err := p.each(ctx, len(files), "sizes asked", func(ctx context.Context, s storage.Client, i int) error {
		size, err := sizeOf(ctx, s, files[i].Path)
		files[i].Size = size
		if err != nil {
			m.add(files[i].Path, err)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, workload.ErrSizes) {
			return nil // others may have one
		}
		return err
	})
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("sizes of files: %w", err)
	}
	if !needed {
		return nil
	}
	return m.err()
}

// sizeOf asks for the size of one file, and if the service answers without one, for
// its first byte, with which some give it. The size is negative beside an error,
// which wraps workload.ErrSizes if the service gives none.
func sizeOf(ctx context.Context, s storage.Client, path string) (int64, error) {
	res, err := s.Do(ctx, &storage.Op{Kind: storage.Stat, Path: path, Size: -1, Timeout: prepareTimeout}, unheard{})
	if err == nil && res.Size < 0 { // Apache's HEAD of an empty file has no length, that of content made on demand often has none
		begin := storage.Op{Kind: storage.Read, Path: path, Size: -1, Ranges: []storage.Range{{Length: 1}}, Timeout: prepareTimeout}
		if read, _ := s.Do(ctx, &begin, unheard{}); read.Size >= 0 { // an empty file has no first byte, but a size
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
		return fmt.Errorf("%w: the service gives none for %d of %s, the first is %.200q", workload.ErrSizes, m.n, say.Plural(m.all, "file"), m.first)
	case errors.Is(m.why, errors.ErrUnsupported):
		return fmt.Errorf("%w: %s, and the client cannot ask for them: %w", workload.ErrSizes, say.Plural(m.all, "file"), m.why)
	}
	return fmt.Errorf("%w: %d of %s, the first is %.200q: %w", workload.ErrSizes, m.n, say.Plural(m.all, "file"), m.first, m.why)
}

// compareSizes looks whether the files have the sizes that the list gives. What the
// service does not answer is not compared: the load shows it.
func (p *preparer) compareSizes(ctx context.Context, files []*workload.File) error {
	return p.each(ctx, len(files), "sizes compared", func(ctx context.Context, s storage.Client, i int) error {
		size, err := sizeOf(ctx, s, files[i].Path)
		if err != nil {
			return nil
		}
		if err := storage.CheckSize(files[i].Size, size); err != nil {
			return fmt.Errorf("files.list: %.200q: %w", files[i].Path, err)
		}
		return nil
	})
}
