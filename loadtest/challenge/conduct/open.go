package conduct

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/pause"
	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/control"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/sites"
	"weir/loadtest/results"
	"weir/monitor"
	"weir/storage"
)

// checkTimeout limits the check of the transfer service and the sites.
const checkTimeout = 2 * time.Minute

// checkPause is the time between two checks when a challenge is resumed.
const checkPause = 5 * time.Second

// stateDir is the folder in the run directory in which an injector keeps its state.
const stateDir = "injector"

// openInjector opens the injector and checks that the service can be reached.
func (s *session) openInjector() error {
	dir := filepath.Join(s.Dir, stateDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var err error
	s.injector, err = s.Injector(s.Stop, inject.Config{Challenge: s.c, Credentials: s.credentials, Report: s.inbox.add,
		Drivers: s.Drivers, Dir: dir})
	if err != nil {
		return err
	}
	s.remover, _ = s.injector.(inject.Remover)
	checked := "the sites"
	if s.c.Inject.By != challenge.Direct {
		checked = "the transfer service and the sites"
	}
	s.View.Advance("checking "+checked, 0, 0)
	ctx, cancel := context.WithTimeout(s.Finish, checkTimeout)
	defer cancel()
	defer s.View.End()
	if err := s.check(ctx); err != nil {
		return errors.Join(fmt.Errorf("check before the challenge: %w", err), s.injector.Close())
	}
	return nil
}

// check checks that the service can be reached. A challenge that is resumed waits until ctx ends for a
// service that may come back.
func (s *session) check(ctx context.Context) error {
	for {
		err := s.injector.Check(ctx)
		if err == nil || s.left == nil || !sites.MayPass(err) || !pause.For(ctx, checkPause) {
			return err
		}
	}
}

// closeInjector ends the injector and, unless Stop has ended the challenge, what its service still has
// of it.
func (s *session) closeInjector() (err error) {
	if s.remover != nil && s.Stop.Err() == nil {
		ctx, cancel := context.WithTimeout(s.Stop, checkTimeout)
		defer cancel()
		if unfinished := s.remover.Clean(ctx); unfinished != nil {
			err = s.warn(fmt.Sprintf("the transfer service still has copies (weir clean %s tries again): %v", s.Dir, unfinished))
		}
	}
	return errors.Join(err, s.injector.Close())
}

// newCredentials returns a function that reads the credentials of each site once. They are renewed
// when their files change.
func newCredentials(all []challenge.Site) func(site string) (storage.Credentials, error) {
	read := map[string]func() (storage.Credentials, error){}
	for i := range all {
		read[all[i].Name] = sync.OnceValues(all[i].Auth.Discovered().Read)
	}
	return func(site string) (storage.Credentials, error) {
		if of := read[site]; of != nil {
			return of()
		}
		return storage.Credentials{}, fmt.Errorf("site %q: the challenge has no such site", site)
	}
}

// controlOptions returns the options of the controller. It is called after the preparation.
func (s *session) controlOptions() control.Options {
	c := s.c
	o := control.Options{Ceiling: bytesPerSecond(c.Ceiling), Delay: 2 * time.Second}
	if c.Inject.By == challenge.Direct { // there is no service whose state is polled
		o.Delay = 500 * time.Millisecond
	}
	if c.Inject.By == challenge.Rucio {
		o.Delay = time.Minute
	}
	index := map[string]int{}
	for i := range c.Sites {
		index[c.Sites[i].Name] = i
		o.Sites = append(o.Sites, c.Sites[i].InFlight)
	}
	for i := range c.Links {
		l, size := &c.Links[i], int64(0)
		for n := range c.Files.Sources {
			size += s.sites.Source(i, n).Size
		}
		size /= int64(max(c.Files.Sources, 1))
		o.Links = append(o.Links, control.Limit{Source: index[l.From], Dest: index[l.To], InFlight: l.InFlight, FileBytes: size})
	}
	return o
}

// bytesPerSecond converts a rate.
func bytesPerSecond(r unit.Bitrate) float64 { return float64(r) / 8 }

// startMonitor begins to monitor the hosts of the plan and of the sites, and this machine.
func (s *session) startMonitor(ctx context.Context) (err error) {
	var servers []string
	for i := range s.c.Sites {
		servers = append(servers, s.c.Sites[i].URL)
	}
	o := monitor.Options{Target: servers[0], Others: servers[1:], Children: true}
	sink := samples{s.out, s.View}
	if s.watch, err = monitor.Start(ctx, s.Plan.Hosts, o, sink); err == nil && s.Watched != nil {
		s.Watched(sink)
	}
	return err
}

// samples takes the samples of hosts to the run directory and the view.
type samples struct {
	out  *results.Writer
	view View
}

// Sample implements monitor.Sink.
func (s samples) Sample(v *monitor.Sample) error {
	if err := s.out.Sample(v); err != nil {
		return err
	}
	return s.view.Sample(v)
}

// discard removes the run directory of a challenge that has requested no copy. made is the topmost
// folder that was made for it. A directory with files that are still at the sites stays.
func (s *session) discard(made string) error {
	_ = os.Remove(filepath.Join(s.Dir, stateDir)) // if it is empty
	return results.Discard(filepath.Clean(s.Dir), made)
}

// ownedBy separates the path of a copy that the transfer service removes from its id, in the
// manifest. Such copies are not removed at the sites.
const ownedBy = "#"

// recorder is the manifest with paths SITE/path, without copies that the transfer service removes.
type recorder struct{ m *results.Manifest }

// Created implements sites.Recorder.
func (r recorder) Created(m sites.Made) error { return r.m.Created(m.Site+"/"+m.Path, m.Size, m.Seed) }

// Removed implements sites.Recorder.
func (r recorder) Removed(site, path string) error { return r.m.Removed(site + "/" + path) }

// Left implements sites.Recorder.
func (r recorder) Left() ([]sites.Made, error) {
	made, err := r.m.Left()
	all := make([]sites.Made, 0, len(made))
	for _, m := range made {
		site, path, ok := strings.Cut(m.Path, "/")
		if !ok {
			return nil, fmt.Errorf("the manifest has %q: paths of a challenge begin with a site", m.Path)
		}
		if strings.Contains(path, ownedBy) {
			continue
		}
		all = append(all, sites.Made{Site: site, Path: path, Size: m.Size, Seed: m.Seed})
	}
	return all, err
}

// Clean removes everything that the challenge in a run directory has left at the sites. It returns
// the number of files and folders that were left, and of those that were removed.
func Clean(ctx context.Context, dir string, c *challenge.Challenge, m *results.Manifest, p Parts) (left, removed int, err error) {
	if err := cleanService(ctx, dir, c, p); err != nil {
		return 0, 0, err
	}
	r := recorder{m}
	before, err := r.Left()
	if err == nil {
		err = only(before, c.Sites)
	}
	if err != nil || len(before) == 0 {
		return 0, 0, err
	}
	opened, err := p.Sites(ctx, sites.Options{Challenge: c, Drivers: p.Drivers, Credentials: newCredentials(c.Sites),
		Manifest: r, Path: p.Path})
	if err != nil {
		return len(before), 0, err
	}
	err = opened.Clean(ctx)
	if closed := opened.Close(); err == nil {
		err = closed
	}
	after, lost := r.Left()
	if err == nil {
		err = lost
	}
	return len(before), len(before) - len(after), err
}

// cleanService ends what the transfer service still has of a challenge, if it removes copies itself.
func cleanService(ctx context.Context, dir string, c *challenge.Challenge, p Parts) error {
	if p.Path == nil {
		return nil
	}
	i, err := p.Injector(ctx, inject.Config{Challenge: c, Credentials: newCredentials(c.Sites), Report: func(inject.Report) {},
		Drivers: p.Drivers, Dir: filepath.Join(dir, stateDir)})
	if err != nil {
		return err
	}
	if r, ok := i.(inject.Remover); ok {
		err = r.Clean(ctx)
	}
	return errors.Join(err, i.Close())
}

// only refuses a manifest with sites that the challenge does not have: it may have been changed.
func only(made []sites.Made, all []challenge.Site) error {
	for _, m := range made {
		if !slices.ContainsFunc(all, func(s challenge.Site) bool { return s.Name == m.Site }) {
			return fmt.Errorf("the manifest has a file at %q, which is no site of the challenge: nothing was removed", m.Site)
		}
	}
	return nil
}
