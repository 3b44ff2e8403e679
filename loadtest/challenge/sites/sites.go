// Package sites makes the files of a data challenge at their sources, verifies its copies and
// removes them: only paths that are in the manifest.
//
// A challenge has one folder at each site, below the URL of the site. Its name has a random part,
// so that no other program has files in it. The files at the sources are in the same folder or,
// with Files.Keep, in a folder that later challenges with the same seed use again.
package sites

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"weir/internal/tpc"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/storage"
)

// A Made is a file or folder that the challenge created, or was about to create.
type Made struct {
	Site string // name
	Path string // below the URL of the site; folders end in a slash
	Size int64  // bytes
	Seed uint64 // of files at sources: the content, as package content generates it
}

// A Recorder records the creations of a challenge, so that nothing else is ever removed, even by
// another process after a kill. It is safe for concurrent use.
type Recorder interface {
	// Created is called before a file or folder is created.
	Created(m Made) error
	// Removed is called after a file or folder was removed.
	Removed(site, path string) error
	// Left returns the files and folders that were created and not removed, in the order of creation.
	Left() ([]Made, error)
}

// Options configure Open.
type Options struct {
	Challenge   *challenge.Challenge
	Drivers     []storage.Driver // of this program
	Credentials func(site string) (storage.Credentials, error)
	Manifest    Recorder
	// Path returns the path of a file by its name, if the service that makes the copies chooses paths. Each
	// source then has files of its own names. nil: files are in folders of the challenge.
	Path func(name string) string
}

// Sites are the sites of a challenge. Their methods are safe for concurrent use. The caller closes
// them.
type Sites struct {
	o      Options
	c      *challenge.Challenge
	folder string  // of the challenge, at each site
	begun  bool    // by another process
	files  []*file // of sources, unless each has its own
	places map[string]*place
	sums   tpc.Sums
	// attempts of an operation before the first copy, and of verifications
	attempts int

	mu       sync.Mutex
	recorded map[[2]string]bool // paths in the manifest that were not removed, by site
	absent   map[[2]string]bool // copies that did not exist when they were to be removed
	foreign  map[[2]string]bool // files of others at paths of copies
}

// A place is a site that is opened.
type place struct {
	site     *challenge.Site
	store    *store
	root     *store // the same folder by root; nil if the site has no such URL
	from, to bool   // it is a source, a destination
	files    []*file
}

// Open opens the storage of all sites, without network access. If the manifest has entries,
// the challenge is resumed: the same folders and files are used again.
func Open(ctx context.Context, o Options) (*Sites, error) {
	s := &Sites{o: o, c: o.Challenge, places: map[string]*place{}, recorded: map[[2]string]bool{}, absent: map[[2]string]bool{},
		foreign: map[[2]string]bool{}, attempts: makeAttempts}
	left, err := o.Manifest.Left()
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		s.attempts = pastAttempts
	}
	prefix := "weir-" + s.c.Name + "-"
	for _, m := range left {
		s.recorded[[2]string{m.Site, m.Path}] = true
		if dir, ok := strings.CutSuffix(m.Path, "/"); ok && strings.HasPrefix(dir, prefix) {
			s.folder, s.begun = dir, true
		}
	}
	if s.folder == "" {
		s.folder = prefix + strings.ToLower(rand.Text()[:8])
	}
	if s.files, err = newFiles(s.c, func(name string) string { return s.sourceFolder() + "/" + name }); err != nil {
		return nil, err
	}
	for i := range s.c.Sites {
		if err := s.open(ctx, &s.c.Sites[i]); err != nil {
			return nil, errors.Join(fmt.Errorf("site %s: %w", s.c.Sites[i].Name, err), s.Close())
		}
	}
	return s, nil
}

func (s *Sites) open(ctx context.Context, site *challenge.Site) error {
	cred, err := s.o.Credentials(site.Name)
	if err != nil {
		return err
	}
	p := &place{site: site}
	s.places[site.Name] = p
	for _, l := range s.c.Links {
		p.from, p.to = p.from || l.From == site.Name, p.to || l.To == site.Name
	}
	if p.files = s.files; s.o.Path != nil {
		p.files, err = newFiles(s.c, func(name string) string { return s.o.Path(s.sourceFolder() + "-" + site.Name + "-" + name) })
		if err != nil {
			return err
		}
	}
	if p.store, err = s.openStore(ctx, site.URL, cred); err != nil || site.Root == "" {
		return err
	}
	p.root, err = s.openStore(ctx, site.Root, cred)
	return err
}

func (s *Sites) openStore(ctx context.Context, at string, cred storage.Credentials) (*store, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, errors.New("the URL cannot be read") // the error has the URL, which may have a password
	}
	i := slices.IndexFunc(s.o.Drivers, func(d storage.Driver) bool { return slices.Contains(d.Schemes, u.Scheme) })
	if i < 0 {
		return nil, fmt.Errorf("no driver supports %.20s: use davs, https, http, root or roots", u.Scheme)
	}
	service, err := s.o.Drivers[i].Open(ctx, storage.Target{URL: u, Cred: cred, Resume: storage.ResumeShared})
	if err != nil {
		return nil, err
	}
	return newStore(service, u.Host), nil
}

// Folder returns the folder of the challenge, which is the same at all sites.
func (s *Sites) Folder() string { return s.folder }

// sourceFolder returns the folder of files at sources.
func (s *Sites) sourceFolder() string {
	if s.c.Files.Keep {
		return fmt.Sprintf("weir-sources-%d", s.c.Seed)
	}
	return s.folder
}

// Source returns the n-th file for copies of a link. After the last file, the first follows again.
// It is called after Prepare.
func (s *Sites) Source(link, n int) inject.File {
	files := s.places[s.c.Links[link].From].files
	f := files[n%len(files)]
	return inject.File{Path: f.path, Size: f.size, Sum: f.sum()}
}

// Dest returns the path of the copy with the given id, which no other file has. The caller records
// it in the manifest before it is created.
func (s *Sites) Dest(link int, id int64) string {
	return fmt.Sprintf("%s/%s-%08d.dat", s.folder, s.c.Links[link].From, id)
}

// place returns the site of the given name.
func (s *Sites) place(site string) (*place, error) {
	if p := s.places[site]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("site %q: the challenge has no such site", site)
}

// Close closes the connections to all sites.
func (s *Sites) Close() error {
	var errs []error
	for _, p := range s.places {
		for _, store := range []*store{p.store, p.root} {
			if store != nil {
				errs = append(errs, store.close())
			}
		}
	}
	return errors.Join(errs...)
}
