package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	if !named && !slices.ContainsFunc(p.Plan.Works(), workload.UsesSizes) {
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
	return p.askSizes(ctx, unknown, named || slices.ContainsFunc(p.Plan.Works(), workload.NeedsSizes))
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
		size, err := p.sizeOf(ctx, s, files[i].Path)
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
func (p *preparer) sizeOf(ctx context.Context, s storage.Client, path string) (int64, error) {
	res, err := p.ask(ctx, s, &storage.Op{Kind: storage.Stat, Path: path, Size: -1})
	if err == nil && res.Size < 0 { // Apache's HEAD of an empty file has no length, that of content made on demand often has none
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

// compareSizes looks whether the files have the sizes that the list gives. What the
// service does not answer is not compared: the load shows it.
func (p *preparer) compareSizes(ctx context.Context, files []*workload.File) error {
	return p.each(ctx, len(files), "sizes compared", func(ctx context.Context, s storage.Client, i int) error {
		size, err := p.sizeOf(ctx, s, files[i].Path)
		if err != nil {
			return nil
		}
		if err := storage.CheckSize(files[i].Size, size); err != nil {
			return fmt.Errorf("files.list: %.200q: %w", files[i].Path, err)
		}
		return nil
	})
}

// A file set from a listing has at most so many files, found in at most so many
// folders that are at most so deep: a listing can be endless (a link to a folder
// above, a service that invents names).
const (
	mostListed  = 1_000_000
	mostFolders = 100_000
	deepest     = 100
)

// ErrNoFiles is wrapped by the error of Prepare if the target has no files.
var ErrNoFiles = errors.New("no files")

// contactTimeout is how long the target may take to answer its first client: a
// server of another protocol often waits for ever.
const contactTimeout = 30 * time.Second

// contact fails if the target takes a connection and does not answer on it. All other
// errors are left to the operations that follow.
func (p *preparer) contact(ctx context.Context) error {
	s := p.Service.Client()
	_, err := s.Do(ctx, &storage.Op{Kind: storage.Login, Timeout: contactTimeout}, noProgress{})
	_ = s.Close() // nothing is left to be said
	if storage.Classify(err) == storage.Timeout {
		return fmt.Errorf("no answer within %v: %w", contactTimeout, err)
	}
	return nil
}

// list asks the target for all files below it, folder by folder.
func (p *preparer) list(ctx context.Context) ([]workload.File, error) {
	if err := p.contact(ctx); err != nil {
		return nil, err
	}
	s := p.Service.Client()
	defer func() { _ = s.Close() }() // nothing is left to be said
	var files []workload.File
	looked, incomplete := 0, false
	for folders := []string{""}; len(folders) > 0; looked++ {
		folder := folders[0]
		folders = folders[1:]
		res, err := p.ask(ctx, s, &storage.Op{Kind: storage.List, Path: folder})
		if err != nil {
			return nil, fmt.Errorf("files.listing: %w", err)
		}
		incomplete = incomplete || res.Incomplete
		for _, e := range res.Entries {
			path := strings.TrimPrefix(folder+"/"+e.Name, "/")
			switch {
			case e.Dir:
				folders = append(folders, path)
			case len(files) < mostListed:
				files = append(files, workload.File{Path: path, Size: e.Size})
			}
		}
		if looked+len(folders) >= mostFolders || strings.Count(folder, "/") >= deepest {
			return nil, fmt.Errorf("files.listing: the folders below %s do not end (%d seen, one is %.200q): "+
				"give the paths of the files in files.list", p.Plan.Target, looked+1+len(folders), folder)
		}
		if p.advance != nil {
			p.advance("files found", len(files), 0)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("files.listing: %w below %s", ErrNoFiles, p.Plan.Target)
	}
	if incomplete {
		return files, p.checkLinks(ctx, files)
	}
	return files, nil
}

// checkLinks looks at a sample of files that were found as links of pages: those of
// a page that is no listing, such as a form to log in, are no files.
func (p *preparer) checkLinks(ctx context.Context, files []workload.File) error {
	all := make([]*workload.File, len(files))
	for i := range files {
		all[i] = &files[i]
	}
	all = sample(all, mostLooked)
	var lost atomic.Int64
	err := p.each(ctx, len(all), "files compared", func(ctx context.Context, s storage.Client, i int) error {
		_, err := p.ask(ctx, s, &storage.Op{Kind: storage.Stat, Path: all[i].Path})
		if errors.Is(err, fs.ErrNotExist) {
			lost.Add(1)
			return nil
		}
		return err
	})
	if err == nil && lost.Load() == int64(len(all)) {
		err = fmt.Errorf("%w: the links of its page lead to no files, such as %.200q", storage.ErrNoListing, all[0].Path)
	}
	if err != nil {
		return fmt.Errorf("files.listing: %w", err)
	}
	return nil
}
