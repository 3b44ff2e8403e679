package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"weir/storage"
	"weir/workload"
)

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
	_, err := s.Do(ctx, &storage.Op{Kind: storage.Login, Timeout: contactTimeout}, unheard{})
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
		res, err := s.Do(ctx, &storage.Op{Kind: storage.List, Path: folder, Timeout: prepareTimeout}, unheard{})
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
			return nil, fmt.Errorf("files.listing: the folders below %s do not end (%d seen, one is %.200q): give the paths of the files in files.list",
				p.Plan.Target, looked+1+len(folders), folder)
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
		_, err := s.Do(ctx, &storage.Op{Kind: storage.Stat, Path: all[i].Path, Timeout: prepareTimeout}, unheard{})
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
