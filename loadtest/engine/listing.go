package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"weir/internal/say"
	"weir/loadtest/workload"
	"weir/storage"
)

// A file set from a listing has at most so many files, found in at most so many folders that are at
// most so deep: a listing can be endless (a link to a parent folder, a service that generates
// names).
const (
	mostListed  = 1_000_000
	mostFolders = 100_000
	deepest     = 100
)

// ErrNoFiles is wrapped by the error of Prepare if the target has no files.
var ErrNoFiles = errors.New("no files")

// A listing is the list of all files below the target while it is made.
type listing struct {
	*preparer
	client     storage.Client
	files      []workload.File
	folders    []string // to be listed
	looked     int      // folders that were listed
	incomplete bool     // some listing was made for browsers
	marked     bool     // and those listings tell folders from files
	surplus    int      // files beyond mostListed
	omitted    int      // entries that no operation can name
	omission   error    // the reason for the first of them
	closed     missing  // folders that may not be listed, or are not there any more
}

// list requests all files below the target, folder by folder. If the target is a file, it is the
// only file.
func (p *preparer) list(ctx context.Context) ([]workload.File, error) {
	if err := p.contact(ctx); err != nil {
		return nil, err
	}
	l := &listing{preparer: p, client: p.Service.Client(), folders: []string{p.root()}}
	defer func() { _ = l.client.Close() }() // its operations have ended
	for checked := 0; len(l.folders) > 0; {
		err := l.walk(ctx)
		if l.looked == 0 && errors.Is(err, syscall.ENOTDIR) && p.isFile(ctx, l.client) {
			return []workload.File{{Path: p.root(), Size: -1}}, nil
		}
		if err == nil && l.incomplete && !l.marked {
			checked, err = l.findFolders(ctx, checked)
		}
		if err != nil {
			return nil, fmt.Errorf("files.listing: %w", err)
		}
	}
	if err := l.warnings(); err != nil {
		return nil, err
	}
	if len(l.files) == 0 {
		return nil, fmt.Errorf("files.listing: %w below %s", ErrNoFiles, p.Plan.FilesAt())
	}
	if l.incomplete {
		return l.files, p.checkLinks(ctx, l.files)
	}
	return l.files, nil
}

// isFile reports whether the target is a file.
func (p *preparer) isFile(ctx context.Context, s storage.Client) bool {
	res, err := p.ask(ctx, s, &storage.Op{Kind: storage.Stat, Path: p.root(), Size: -1})
	return err == nil && !res.Folder
}

// walk lists the folders and the folders that it finds in them.
func (l *listing) walk(ctx context.Context) error {
	for len(l.folders) > 0 {
		folder := l.folders[0]
		l.folders = l.folders[1:]
		res, err := l.ask(ctx, l.client, &storage.Op{Kind: storage.List, Path: folder})
		switch {
		case folder != l.root() && (errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist)):
			l.closed.add(folder, err)
			continue
		case err != nil:
			return err
		}
		l.add(folder, &res)
		if l.looked++; l.looked+len(l.folders) > mostFolders || strings.Count(folder, "/") >= deepest {
			return fmt.Errorf("the folders below %s do not end (%d seen, one is %.200q): give the paths of the files in files.list",
				l.Plan.Target, l.looked+len(l.folders), folder)
		}
		if l.advance != nil {
			l.advance("files found", len(l.files), 0)
		}
	}
	return nil
}

// add adds the entries of a folder.
func (l *listing) add(folder string, res *storage.Result) {
	l.incomplete = l.incomplete || res.Incomplete
	if l.omitted += res.Omitted; l.omission == nil {
		l.omission = res.Omission
	}
	for _, e := range res.Entries {
		path := l.root() + strings.TrimPrefix(strings.TrimPrefix(folder, l.root())+"/"+e.Name, "/")
		switch {
		case e.Dir:
			l.folders = append(l.folders, path)
			l.marked = l.marked || res.Incomplete
		case !res.Incomplete && !l.Plan.Files.Match(path):
		case len(l.files) < mostListed:
			l.files = append(l.files, workload.File{Path: path, Size: e.Size})
		default:
			l.surplus++
		}
	}
}

// findFolders requests the type of the entries, from the given entry on, that pages list without a
// slash, as some servers list folders like this as well: it adds folders to the folders to be
// listed. It returns the number of files without them.
func (l *listing) findFolders(ctx context.Context, from int) (int, error) {
	var mu sync.Mutex
	files := l.files[from:]
	err := l.each(ctx, len(files), "files looked at", func(ctx context.Context, s storage.Client, i int) error {
		f := &files[i]
		if f.Size >= 0 {
			return nil
		}
		res, err := l.ask(ctx, s, &storage.Op{Kind: storage.Stat, Path: f.Path})
		if class := storage.Classify(err); class == storage.Canceled || class == storage.Timeout {
			return err
		}
		switch { // other errors occur again when the file is read
		case err == nil && res.Folder:
			f.Size = leftOut
			mu.Lock()
			l.folders = append(l.folders, f.Path)
			mu.Unlock()
		case err == nil:
			f.Size = res.Size
		}
		return nil
	})
	slices.Sort(l.folders)
	l.files = slices.DeleteFunc(l.files, func(f workload.File) bool { return f.Size == leftOut })
	return len(l.files), err
}

// warnings writes warnings of entries that the listing lacks.
func (l *listing) warnings() error {
	var errs []error
	if l.omitted > 0 {
		errs = append(errs, l.warn("%s of the listing left out, as no operation can name %s: %v", say.Plural(l.omitted, "entry"),
			say.Either(l.omitted, "it", "them"), l.omission))
	}
	if n := l.closed.n; n > 0 {
		errs = append(errs, l.warn("%s left out, as %s cannot be listed, the first is %.200q: %v", say.Plural(n, "folder"),
			say.Either(n, "it", "they"), l.closed.first, l.closed.why))
	}
	if l.surplus > 0 {
		errs = append(errs, l.warn("%s of the listing left out: a run takes the first %s (choose with files.include and files.exclude)",
			say.Plural(l.surplus, "file"), strconv.Itoa(mostListed)))
	}
	return errors.Join(errs...)
}

// checkLinks checks a sample of files that were found as links of pages: the links of a page that
// is no listing, such as a login form, are no files.
func (p *preparer) checkLinks(ctx context.Context, files []workload.File) error {
	all := make([]*workload.File, len(files))
	for i := range files {
		all[i] = &files[i]
	}
	all = sample(all, mostLooked)
	var lost atomic.Int64
	err := p.each(ctx, len(all), "files compared", func(ctx context.Context, s storage.Client, i int) error {
		_, err := p.ask(ctx, s, &storage.Op{Kind: storage.Stat, Path: all[i].Path})
		switch {
		case errors.Is(err, fs.ErrNotExist):
			lost.Add(1)
			return nil
		case errors.Is(err, fs.ErrPermission): // it is there
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
