// Package agent is a site: its endpoint, through which others read and write its
// files, and the mover that carries files between this endpoint and others.
//
// It dials out. It asks the coordinator for leases and tells it the outcome of
// them, so that a site behind a firewall, which has no endpoint, can pull and push
// all the same. While the coordinator is away it goes on copying and keeps what
// it has to tell; outcomes stand in a journal on disk until the coordinator has
// acknowledged them, so that no end of the process, of whatever kind, loses one.
//
// All that is asked of an agent are paths below the root of its site. No request can
// make it run a program.
package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"weir/internal/lock"
	"weir/internal/trust"
	"weir/transfer/client"
	"weir/transfer/mover"
)

// Options say which site it is.
type Options struct {
	Site        string
	Root        string           // an existing folder; all files of the site are below it
	State       string           // a folder for journal and keys; "": one in the root, which the endpoint does not show
	Coordinator client.Config    // with a token of the site
	SiteCA      string           // PEM file of authorities of other sites' certificates, besides those of the system
	Slots       int              // copies at once; 0 is 32
	Buffer      int              // bytes of the mover's buffers; 0 is mover.DefaultBuffer
	Endpoint    *EndpointOptions // nil: the site only dials out
	Private     *bool            // connect to other sites at addresses that are not of the public internet; nil: see reach
	NewRoot     bool             // the root may be another one than the site had before
	Version     string           // of the program
	Log         *slog.Logger     // nil is silence
}

const (
	usualSlots = 32
	mostSlots  = 1000
	stateName  = ".weir-serve-agent" // names that begin so are hidden by package serve
	lockName   = "lock"
)

// An Agent is one site. It is made by New, runs once, and is closed.
type Agent struct {
	o         Options
	log       *slog.Logger
	ask       *client.Client
	dir       *os.File // the root, for its free space
	root      *os.Root
	state     string
	lock      *os.File
	journal   *journal
	activity  *activity
	clock     *clock
	samples   *samples
	mover     *mover.Mover
	endpoint  *localEndpoint // nil: none
	trust     *x509.CertPool
	session   string
	scheduler *scheduler
	reach     *reach
	runs      sync.WaitGroup
	left      []memory  // of an earlier process
	tidied    time.Time // when the coordinator was asked which temporaries are over; the reporter's

	mu    sync.Mutex
	known bool // the coordinator has taken our registration
	heard bool // it has done so at least once
	away  bool // it does not answer
}

// ErrTaken tells that another agent has the root, or the state.
var ErrTaken = errors.New("another agent has it: end that one first, or give this one another folder")

var siteName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// New opens what an agent needs: its root, its state, its endpoint. It sends no request
// anything. The caller closes the Agent.
func New(ctx context.Context, o Options) (*Agent, error) {
	if !siteName.MatchString(o.Site) {
		return nil, fmt.Errorf("a site cannot be called %q: use letters, digits, dots, dashes and underscores, 64 at most", o.Site)
	}
	if o.Slots < 0 || o.Slots > mostSlots {
		return nil, fmt.Errorf("%d copies at once: use 1 to %d", o.Slots, mostSlots)
	}
	o.Slots = cmp.Or(o.Slots, usualSlots)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := newActivity()
	c := new(clock)
	a := &Agent{o: o, log: o.Log, activity: h, clock: c, samples: &samples{activity: h, clock: c}, session: rand.Text(),
		scheduler: newScheduler(o.Slots), reach: newReach(o.Site, o.Private)}
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Agent) open(ctx context.Context) (err error) {
	if a.dir, err = os.Open(a.o.Root); err != nil {
		return fmt.Errorf("root of the site: %w", err)
	}
	if a.root, err = os.OpenRoot(a.o.Root); err != nil {
		return fmt.Errorf("root of the site: %w", err)
	}
	if a.state = a.o.State; a.state == "" {
		a.state = filepath.Join(a.o.Root, stateName)
	}
	if err := os.MkdirAll(a.state, 0o700); err != nil {
		return fmt.Errorf("folder for the agent's state: %w (choose one that can be written with --state DIR)", err)
	}
	if err := a.claim(); err != nil {
		return err
	}
	if a.journal, a.left, err = openJournal(a.state, a.log); err != nil {
		return err
	}
	if a.trust, err = trust.WithSystem(a.o.SiteCA); err != nil {
		return fmt.Errorf("authorities of sites: %w", err)
	}
	if err := a.wasRooted(); err != nil {
		return err
	}
	o := mover.Options{Root: a.o.Root, Now: a.clock.now, CAs: a.trust, Guard: a.reach.check, Buffer: a.o.Buffer}
	if a.o.State != "" {
		o.State = filepath.Join(a.state, "mover")
		if err := os.MkdirAll(o.State, 0o700); err != nil {
			return fmt.Errorf("folder for the agent's state: %w", err)
		}
	}
	if a.mover, err = mover.New(o); err != nil {
		return err
	}
	if err := a.isRooted(); err != nil {
		return err
	}
	if a.ask, err = client.New(a.o.Coordinator); err != nil {
		return err
	}
	if a.o.Endpoint != nil {
		a.endpoint, err = a.openEndpoint(ctx)
		a.samples.endpoint = a.endpoint
	}
	return err
}

// claim keeps a second agent out of the root and of the state.
func (a *Agent) claim() error {
	path := filepath.Join(a.state, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("folder for the agent's state: %w", err)
	}
	a.lock = f
	for what, f := range map[string]*os.File{a.state: f, a.o.Root: a.dir} {
		if err := lock.Alone(f); errors.Is(err, lock.ErrTaken) {
			return fmt.Errorf("%s: %w", what, ErrTaken)
		}
	}
	return nil
}

// Close frees what the Agent holds, after Run has returned.
func (a *Agent) Close() error {
	var errs []error
	if a.endpoint != nil {
		errs = append(errs, a.endpoint.close())
	}
	if a.ask != nil {
		a.ask.Close()
	}
	if a.mover != nil {
		errs = append(errs, a.mover.Close())
	}
	if a.journal != nil {
		errs = append(errs, a.journal.close())
	}
	if a.root != nil {
		errs = append(errs, a.root.Close())
	}
	for _, f := range []*os.File{a.lock, a.dir} {
		if f != nil {
			errs = append(errs, lock.Close(f))
		}
	}
	return errors.Join(errs...)
}

// URL returns where the site's endpoint is, "" if it has none.
func (a *Agent) URL() string {
	if a.endpoint == nil {
		return ""
	}
	return a.endpoint.url
}

// plainError is err without where on this machine the root is.
func (a *Agent) plainError(err error) string {
	return strings.ReplaceAll(err.Error(), strings.TrimSuffix(a.o.Root, "/")+"/", "")
}
