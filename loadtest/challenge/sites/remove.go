package sites

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"weir/internal/pause"
	"weir/storage"
)

const (
	removeAttempts = 6
	// lateTime is the time in which files may still appear in the folder after the last copy: servers
	// notice after some seconds that a copy was cancelled.
	lateTime  = 30 * time.Second
	latePause = time.Second
)

// Remove removes a copy, which the caller has recorded in the manifest before it was created, and
// records that. A copy that does not exist counts as removed. Failures that may pass are repeated for
// about half a minute.
func (s *Sites) Remove(ctx context.Context, site, path string) error {
	at, err := s.place(site)
	if err != nil {
		return err
	}
	if !s.isOurs(at, path) {
		return fmt.Errorf("%s/%s is not removed: this challenge did not make it", site, path)
	}
	_, err = at.store.ask(ctx, storage.Op{Kind: storage.Remove, Path: path, Timeout: shortTime}, removeAttempts)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	if missing {
		s.mu.Lock()
		s.absent[[2]string{site, path}] = true
		s.mu.Unlock()
	}
	return s.removed(at, path)
}

// isOurs reports whether a path is in the manifest, or in the folder of the challenge, where the
// caller records copies.
func (s *Sites) isOurs(at *place, path string) bool {
	if storage.CheckPath(path) != nil || strings.HasSuffix(path, "/") {
		return false
	}
	return strings.HasPrefix(path, s.folder+"/") || s.isRecorded(at, path)
}

// Clean removes everything of the manifest that is left: files, then folders. With Files.Keep the
// files at the sources stay. It continues after errors, and returns all of them. It is called when
// no copy is in flight; copies that were cancelled a moment ago are removed if they appear late.
func (s *Sites) Clean(ctx context.Context) error {
	left, err := s.o.Manifest.Left()
	if err != nil {
		return err
	}
	files, folders := map[string][]string{}, map[string][]string{}
	for _, m := range left {
		dir, folder := strings.CutSuffix(m.Path, "/")
		switch {
		case s.c.Files.Keep && strings.HasPrefix(m.Path, s.sourceFolder()+"/"):
		case folder:
			folders[m.Site] = append(folders[m.Site], dir)
		default:
			files[m.Site] = append(files[m.Site], m.Path)
		}
		s.mu.Lock()
		s.recorded[[2]string{m.Site, m.Path}] = true
		s.mu.Unlock()
	}
	errs := make([]error, len(s.c.Sites))
	var all sync.WaitGroup
	for i := range s.c.Sites {
		name := s.c.Sites[i].Name
		all.Go(func() { errs[i] = s.cleanSite(ctx, name, files[name], folders[name]) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (s *Sites) cleanSite(ctx context.Context, site string, files, folders []string) error {
	queue := make(chan string, len(files))
	for _, path := range files {
		queue <- path
	}
	close(queue)
	errs := make([]error, mostClients)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for path := range queue {
				if err := s.Remove(ctx, site, path); err != nil && errs[i] == nil {
					errs[i] = err
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("site %s: %w", site, err)
	}
	for _, dir := range folders {
		if err := s.removeFolder(ctx, s.places[site], dir); err != nil {
			return fmt.Errorf("site %s: folder %s: %w", site, dir, err)
		}
	}
	return nil
}

// removeFolder removes a folder when it is empty. Copies that appear late are removed before.
func (s *Sites) removeFolder(ctx context.Context, at *place, dir string) error {
	until := time.Now().Add(lateTime)
	for {
		_, err := at.store.ask(ctx, storage.Op{Kind: storage.Remove, Path: dir + "/", Folder: true, Timeout: shortTime}, 1)
		switch class := storage.Classify(err); {
		case err == nil, class == storage.NotFound:
			return s.removed(at, dir+"/")
		case class == storage.Denied, errors.Is(err, errors.ErrUnsupported), time.Now().After(until):
			return err
		}
		if dir == s.folder {
			if late := s.removeLate(ctx, at); late != nil {
				return errors.Join(err, late)
			}
		}
		if !pause.For(ctx, latePause) {
			return context.Cause(ctx)
		}
	}
}

// removeLate removes the copies that are in the folder of the challenge now, and were not when they
// were to be removed. It removes no other file, whatever its name is.
func (s *Sites) removeLate(ctx context.Context, at *place) error {
	res, err := at.store.ask(ctx, storage.Op{Kind: storage.List, Path: s.folder, Timeout: shortTime}, removeAttempts)
	if err != nil {
		return err
	}
	for _, e := range res.Entries {
		s.mu.Lock()
		late := s.absent[[2]string{at.site.Name, s.folder + "/" + e.Name}]
		s.mu.Unlock()
		if e.Dir || !late {
			continue
		}
		if err := s.Remove(ctx, at.site.Name, s.folder+"/"+e.Name); err != nil {
			return err
		}
	}
	return nil
}
