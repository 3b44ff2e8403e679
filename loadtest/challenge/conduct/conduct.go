// Package conduct carries out a data challenge: it prepares files, holds the target rates, records
// the copies in a run directory and removes them.
//
// Run is the sequence; read it downward. One goroutine has all state of the copies: ten times a
// second it takes the reports of the injector, decides, and requests copies.
package conduct

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir/loadtest/challenge"
	"weir/loadtest/challenge/control"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/sites"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/monitor"
	"weir/storage"
)

// A Config configures a challenge.
type Config struct {
	Plan  *scenario.Plan // with Challenge
	Dir   string         // run directory: new, or that of the challenge to resume
	About results.About  // of a new run directory
	// Finish ends the challenge: from then on no copy is requested, and copies in flight are cancelled.
	// The results are kept and the copies removed. Stop ends that as well: everything stays where it is.
	Finish, Stop context.Context
	Ending       func() measure.Ending // of a challenge that Finish has ended
	View         View
	Watched      func(monitor.Sink) // takes the sink of samples that others make, nil at the end; may be nil
	Parts
}

// Parts opens the parts of a challenge that act on the world.
type Parts struct {
	Sites      func(ctx context.Context, o sites.Options) (Sites, error)
	Injector   func(ctx context.Context, c inject.Config) (inject.Injector, error)
	Controller func(o control.Options) Controller
	Path       func(name string) string // of files, if the service of the injector chooses paths; else nil
	Drivers    []storage.Driver
}

// Sites makes the files at the sources and removes copies. It is a *sites.Sites, or a fake in tests.
type Sites interface {
	Prepare(ctx context.Context, advance func(done, total int)) error
	Source(link, n int) inject.File
	Dest(link int, id int64) string
	Verify(ctx context.Context, site, path string, f inject.File) (bool, error)
	Remove(ctx context.Context, site, path string) error
	RemoveRest(ctx context.Context, id int64) error
	Clean(ctx context.Context) error
	Close() error
}

// A Controller decides how many copies each link has. It is a *control.Controller, or a fake in tests.
type Controller interface {
	Decide(now time.Duration, seen []control.Seen) []control.Decision
}

// A View shows the challenge while it goes on. Its methods may be called by several goroutines at once.
type View interface {
	monitor.Sink
	Advance(what string, done, total int) // of preparation and clean-up
	Load()                                // the profile begins
	Status(s Status)                      // once a second
	Event(e measure.Event)
	End() // the preparation, the profile or the clean-up has ended
}

// ErrOver is the error for a challenge that is resumed though its profile was held to its end.
var ErrOver = errors.New("the challenge is over: its profile was held to the end; start a new one with weir challenge")

// A session is one challenge.
type session struct {
	Config
	c        *challenge.Challenge
	out      *results.Writer
	manifest *results.Manifest
	sites    Sites
	injector inject.Injector
	remover  inject.Remover // the injector, if it removes copies itself; else nil
	control  Controller
	inbox    inbox
	ledger   *ledger
	clock    clock
	begun    time.Time        // of the profile in this process, on the ledger's clock
	next     []int64          // number of the next copy of each link
	seen     []control.Seen   // of each link, for the next decision
	left     *left            // of the challenge that is resumed; nil: it is new
	pool     *pool            // verifies and removes copies
	commits  *commits         // removals that wait for the records
	watch    *monitor.Watch   // nil: not started yet
	notes    notes            // events that were written
	waiting  map[int64]*ended // copies that are verified, by id
	loaded   bool             // the profile has begun

	credentials func(site string) (storage.Credentials, error)
}

// Run carries out the challenge of c.Plan in a new run directory. The run directory is kept if the
// profile has begun, and removed otherwise.
func Run(c Config) error {
	s := newSession(c)
	made := results.Missing(c.Dir)
	out, err := results.Create(c.Dir, c.Plan, c.About)
	if err != nil {
		return err
	}
	s.record(out)
	err = s.run()
	if err != nil && !s.loaded {
		err = errors.Join(err, s.discard(made))
	}
	return err
}

// Resume continues the challenge in c.Dir with the rest of its profile. Copies of the process that
// was killed are taken over, or end as failed, and are removed.
func Resume(c Config) error {
	out, run, err := results.Resume(c.Dir)
	if err != nil {
		return err
	}
	s := newSession(c)
	s.record(out)
	if s.left, err = readLeft(run, s.c); err != nil {
		return errors.Join(err, out.Close())
	}
	return s.run()
}

func newSession(c Config) *session {
	of := c.Plan.Challenge
	return &session{Config: c, c: of, next: make([]int64, len(of.Links)), seen: make([]control.Seen, len(of.Links)),
		waiting: map[int64]*ended{}, clock: newClock(),
		credentials: newCredentials(of.Sites)}
}

// record sets the run directory.
func (s *session) record(out *results.Writer) {
	s.out, s.commits = out, &commits{sync: out.SyncTransfers}
}

// run does everything from the check of the sites to the end of the clean-up.
func (s *session) run() (err error) {
	defer func() { err = errors.Join(err, s.out.Close()) }()
	if s.manifest, err = results.OpenManifest(s.Dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.manifest.Close()) }()
	err = s.prepared(func() error { return s.load() })
	if s.Stop.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // as requested; the end event reports it
	}
	return err
}

// prepared opens sites and injector, makes the files and calls load. Everything that was made is
// removed afterwards, whatever failed.
func (s *session) prepared(load func() error) (err error) {
	if s.sites, err = s.Sites(s.Stop, sites.Options{Challenge: s.c, Drivers: s.Drivers, Credentials: s.credentials,
		Manifest: recorder{s.manifest}, Path: s.Path}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.sites.Close()) }()
	s.pool = newPool(s.Stop)
	defer func() { err = errors.Join(err, s.clean()) }()
	if err := s.openInjector(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.closeInjector()) }()
	if err := s.takeOver(); err != nil {
		return err
	}
	err = s.sites.Prepare(s.Finish, func(done, total int) { s.View.Advance("making files at the sources", done, total) })
	s.View.End()
	if err != nil {
		if s.Finish.Err() != nil {
			return fmt.Errorf("before the first copy was requested: %w", context.Cause(s.Finish))
		}
		return err
	}
	return load()
}

// clean removes what is left of the challenge, unless Stop has ended it. Failures are warnings.
func (s *session) clean() (err error) {
	unsaved := s.commits.close()
	defer func() { err = errors.Join(unsaved, err) }()
	s.pool.close()
	if s.Stop.Err() != nil {
		return s.warn(fmt.Sprintf("the files of this challenge stay at the sites: weir clean %s removes them", s.Dir))
	}
	s.View.Advance("removing the files of the challenge", 0, 0)
	err = s.sites.Clean(s.Stop)
	s.View.End()
	if err != nil {
		return s.warn(fmt.Sprintf("not everything could be removed (weir clean %s tries again): %v", s.Dir, err))
	}
	return nil
}

// event writes an event, and shows it.
func (s *session) event(e measure.Event) error {
	if e.Time.IsZero() {
		e.Time = s.clock.now()
	}
	e.Time = e.Time.UTC()
	s.View.Event(e)
	return s.out.Event(e)
}

// warn writes a warning. The lines of joined errors become one.
func (s *session) warn(text string) error {
	text = strings.ReplaceAll(text, "\n", "; ")
	return s.event(measure.Event{Kind: measure.EventWarning, Text: text})
}
