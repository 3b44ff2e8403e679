package importer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"weir/internal/say"
	"weir/internal/tpc"
	"weir/storage"
	"weir/transfer/catalog"
)

// A remote is a folder of a storage service that is searched for files.
type remote struct {
	Service storage.Service // the source of the listing; its opener closes it
	Folder  string          // below the service's address, "" is its root
	// Sums requests the adler32 of each file. If the service reports no checksums, files have no
	// checksum.
	Sums bool
	// Fresh requests each checksum in a new session: over HTTP, XRootD before 5.5.4 may return the
	// checksum of another file in a session that had other requests.
	Fresh bool
	// Timeout bounds each request. 0 selects a minute, and an hour for checksums, which the service
	// may have to compute.
	Timeout time.Duration
}

// deepest is the maximum depth of nested folders: links may form a circle.
const deepest = 64

// listingOf yields the files below a folder of a storage service, in no particular order, with
// their sizes and, with Sums, the checksums that the service reports. The entries are not verified,
// because no checksum was computed from the content just now. Folders that cannot be listed and
// files that cannot be requested are left out and reported. Names that begin with .weir are
// skipped.
func listingOf(ctx context.Context, r remote, o Options) iter.Seq2[catalog.Entry, error] {
	if o.Workers <= 0 {
		o.Workers = 8
	}
	l := &listing{remote: r, options: o, clients: make([]storage.Client, o.Workers)}
	l.Folder = path.Clean("/" + r.Folder)[1:]
	files := parallel(ctx, o, l.find, l.look)
	return func(yield func(catalog.Entry, error) bool) {
		defer l.close()
		files(yield)
	}
}

// A listing is the state of a listing that is under way.
type listing struct {
	remote
	options Options
	clients []storage.Client // of workers
	noSums  atomic.Bool
	sums    tpc.Sums
}

// A listed file is an entry of a listing with its path below the folder.
type listed struct {
	path string
	size int64
}

// find lists folders, one after another.
func (l *listing) find(ctx context.Context, found func(listed) bool, wrong func(string, error) bool) error {
	client := l.Service.Client()
	defer client.Close()
	for folders := []string{""}; len(folders) > 0; {
		last := len(folders) - 1
		folder := folders[last]
		folders = folders[:last]
		listing, err := l.list(ctx, client, folder)
		if err == nil && strings.Count(folder, "/") >= deepest {
			err = fmt.Errorf("more than %d folders lie in each other", deepest)
		}
		if err != nil {
			if folder == "" {
				return err
			}
			if !wrong("/"+below(l.Folder, folder), err) {
				return ctx.Err()
			}
			continue
		}
		if listing.Omitted > 0 && !wrong("/"+below(l.Folder, folder), fmt.Errorf("%s of its listing left out, as no operation can name %s: %w",
			say.Plural(listing.Omitted, "entry"), say.Either(listing.Omitted, "it", "them"), listing.Omission)) {
			return ctx.Err()
		}
		unmarked := listing.Incomplete && !slices.ContainsFunc(listing.Entries, func(e storage.Entry) bool { return e.Dir })
		for _, e := range listing.Entries {
			if unmarked && !e.Dir { // pages of some servers list folders without a slash
				e.Dir, e.Size = l.isFolder(ctx, client, below(folder, e.Name))
			}
			one := listed{below(folder, strings.TrimSuffix(e.Name, "/")), e.Size}
			switch {
			case e.Name == "" || storage.CheckPath(e.Name) != nil || path.Clean("/"+one.path) != "/"+one.path:
				if !wrong("/"+below(l.Folder, folder), fmt.Errorf("the service lists %q there: %w", e.Name, fs.ErrInvalid)) {
					return ctx.Err()
				}
			case strings.HasPrefix(path.Base(one.path), ours):
			case e.Dir:
				folders = append(folders, one.path)
			case !l.options.matches(one.path):
			case !found(one):
				return ctx.Err()
			}
		}
	}
	return nil
}

func (l *listing) list(ctx context.Context, c storage.Client, folder string) (storage.Result, error) {
	return c.Do(ctx, &storage.Op{Kind: storage.List, Path: below(l.Folder, folder), Timeout: l.patience(time.Minute)}, storage.NoProgress{})
}

// isFolder reports whether an entry is a folder, and the size of a file. The size is negative if it
// is unknown.
func (l *listing) isFolder(ctx context.Context, c storage.Client, path string) (folder bool, size int64) {
	r, err := c.Do(ctx, &storage.Op{Kind: storage.Stat, Path: below(l.Folder, path), Timeout: l.patience(time.Minute)}, storage.NoProgress{})
	if err != nil {
		return false, -1 // look reports it
	}
	return r.Folder, r.Size
}

func (l *listing) patience(usual time.Duration) time.Duration {
	if l.Timeout > 0 {
		return l.Timeout
	}
	return usual
}

// look requests the size and the checksum of a file if the listing did not contain them.
func (l *listing) look(ctx context.Context, worker int, one listed) result {
	at := below(l.Folder, one.path)
	e := l.options.entry(one.path, at)
	e.Size = one.size
	if _, err := catalog.CheckEntry(catalog.Entry{File: catalog.File{Name: e.Name, Block: e.Block}, Path: e.Path}); err != nil {
		return result{at, e, err}
	}
	if l.clients[worker] == nil {
		l.clients[worker] = l.Service.Client()
	}
	client := l.clients[worker]
	if one.size < 0 {
		r, err := client.Do(ctx, &storage.Op{Kind: storage.Stat, Path: at, Timeout: l.patience(time.Minute)}, storage.NoProgress{})
		if err != nil {
			return result{at, e, err}
		}
		if e.Size = r.Size; e.Size < 0 {
			return result{at, e, errors.New("the service does not tell its size")}
		}
	}
	var err error
	if l.Sums && !l.noSums.Load() {
		e.Adler, err = l.sum(ctx, client, at, e.Size)
	}
	return result{at, e, err}
}

func (l *listing) sum(ctx context.Context, c storage.Client, at string, size int64) (string, error) {
	if l.Fresh {
		c = l.Service.Client()
		defer c.Close()
	}
	var r storage.Result
	err := l.sums.Ask(ctx, "", size, func(ctx context.Context) (err error) {
		r, err = c.Do(ctx, &storage.Op{Kind: storage.Checksum, Path: at, Sum: "adler32", Timeout: l.patience(time.Hour)}, storage.NoProgress{})
		return err
	})
	if errors.Is(err, errors.ErrUnsupported) {
		l.noSums.Store(true)
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("its checksum: %w", err)
	}
	_, sum, _ := strings.Cut(r.Sum, ":")
	return sum, nil
}

func (l *listing) close() {
	for _, c := range l.clients {
		if c != nil {
			_ = c.Close() // nothing is written
		}
	}
}
