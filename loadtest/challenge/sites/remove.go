package sites

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/internal/content"
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

// RemoveRest removes the file that a copy has left which has failed, was cancelled, or has an unknown
// state after a kill, and records that. The service may have found a foreign file at its path: a file
// that does not begin like the copy's source stays, and counts as removed. An empty file is removed.
func (s *Sites) RemoveRest(ctx context.Context, id int64) error {
	link, n := s.c.CopyOf(id)
	if link < 0 {
		return fmt.Errorf("copy %d: the challenge has no such copy", id)
	}
	l := &s.c.Links[link]
	at, path := s.places[l.To], s.Dest(link, id)
	files := s.places[l.From].files
	ours, err := s.begins(ctx, at, path, files[n%int64(len(files))])
	switch {
	case errors.Is(err, fs.ErrNotExist), ours:
		return s.Remove(ctx, l.To, path)
	case err != nil:
		return fmt.Errorf("%s/%s may be a foreign file, and stays: %w", l.To, path, err)
	}
	s.mu.Lock()
	s.foreign[[2]string{l.To, path}] = true
	s.mu.Unlock()
	return s.removed(at, path)
}

// headSize is the number of bytes by which a file is recognized.
const headSize = 64 << 10

// begins reports whether a file begins like f and is no larger. An empty file does.
func (s *Sites) begins(ctx context.Context, at *place, path string, f *file) (bool, error) {
	res, err := at.store.ask(ctx, storage.Op{Kind: storage.Stat, Path: path, Timeout: shortTime}, removeAttempts)
	if err != nil || res.Size == 0 || res.Size > f.size {
		return err == nil && res.Size == 0, err
	}
	head := storage.Range{Length: min(res.Size, headSize)}
	want, err := content.Sum("adler32", f.seed, 0, head.Length)
	if err != nil {
		return false, err
	}
	res, err = at.store.ask(ctx, storage.Op{Kind: storage.Read, Path: path, Size: res.Size, Ranges: []storage.Range{head}, Sum: "adler32",
		Timeout: shortTime}, removeAttempts)
	return err == nil && res.Sum == want, err
}

// removeMade removes a file of the manifest. The state of a copy is not known.
func (s *Sites) removeMade(ctx context.Context, m Made) error {
	if link, _ := s.c.CopyOf(int64(m.Seed)); link >= 0 && s.c.Links[link].To == m.Site && s.Dest(link, int64(m.Seed)) == m.Path {
		return s.RemoveRest(ctx, int64(m.Seed))
	}
	return s.Remove(ctx, m.Site, m.Path)
}

// idOf returns the id in the name of a copy, 0 for other names.
func idOf(name string) int64 {
	name = strings.TrimSuffix(name, ".dat")
	id, _ := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 64)
	return id
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
	files, folders := map[string][]Made{}, map[string][]string{}
	for _, m := range left {
		dir, folder := strings.CutSuffix(m.Path, "/")
		switch {
		case s.keeps(m):
		case folder:
			folders[m.Site] = append(folders[m.Site], dir)
		default:
			files[m.Site] = append(files[m.Site], m)
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

// keeps reports whether a file or folder stays for the next challenge.
func (s *Sites) keeps(m Made) bool {
	own := strings.HasPrefix(path.Base(m.Path), s.sourceFolder()+"-"+m.Site+"-") // if the service chooses paths
	return s.c.Files.Keep && (own || strings.HasPrefix(m.Path, s.sourceFolder()+"/"))
}

func (s *Sites) cleanSite(ctx context.Context, site string, files []Made, folders []string) error {
	queue := make(chan Made, len(files))
	for _, m := range files {
		queue <- m
	}
	close(queue)
	errs := make([]error, mostClients)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for m := range queue {
				if err := s.removeMade(ctx, m); err != nil && errs[i] == nil {
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
	if dir == s.folder {
		if err := s.foreignFiles(at); err != nil {
			return err
		}
	}
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

// foreignFiles returns an error if files of others are in the folder of the challenge.
func (s *Sites) foreignFiles(at *place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, such := 0, ""
	for k := range s.foreign {
		if k[0] == at.site.Name {
			n, such = n+1, k[1]
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("it has %d files that this challenge did not make, such as %s: move them, and clean again", n, such)
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
		if err := s.removeMade(ctx, Made{Site: at.site.Name, Path: s.folder + "/" + e.Name, Seed: uint64(idOf(e.Name))}); err != nil {
			return err
		}
	}
	return nil
}
