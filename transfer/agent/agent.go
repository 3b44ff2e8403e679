// Package agent runs a site: its endpoint, through which other sites read and write its files, and
// the mover that carries files between this endpoint and others.
//
// The agent dials out. It requests leases from the coordinator and reports their outcomes, so that
// a site behind a firewall, without an endpoint, can also pull and push. While the coordinator is
// unavailable, copies continue and reports are kept; outcomes stay in a journal on disk until the
// coordinator has acknowledged them, so that no outcome is lost when the process ends, for any
// reason.
//
// Requests to an agent contain only paths below the root of its site. No request can make it run a
// program.
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

// Options configure an Agent.
type Options struct {
	Site        string
	Root        string           // an existing folder; all files of the site are below it
	State       string           // a folder for journal and keys; "": a folder in the root, which the endpoint hides
	Coordinator client.Config    // with a token of the site
	SiteCA      string           // PEM file of authorities of other sites' certificates, besides the system's authorities
	Slots       int              // copies at once; 0 is 32
	Buffer      int              // bytes of the mover's buffers; 0 is mover.DefaultBuffer
	Endpoint    *EndpointOptions // nil: the site only dials out
	Private     *bool            // allow connections to other sites at addresses that are not of the public internet; nil: see reach
	NewRoot     bool             // the root may differ from the root that the site had before
	Version     string           // of the program
	Log         *slog.Logger     // nil logs nothing
}

// MostSlots is the maximum of Options.Slots.
const MostSlots = 1000

const (
	usualSlots = 32
	stateName  = ".weir-serve-agent" // package serve hides names with this prefix
	lockName   = "lock"
)

// An Agent runs one site. It is made by New, runs once, and is closed.
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
	endpoint  *localEndpoint // nil if there is no endpoint
	trust     *x509.CertPool
	session   string
	scheduler *scheduler
	reach     *reach
	runs      sync.WaitGroup
	left      []memory  // attempts of an earlier process
	tidied    time.Time // the time of the last request about finished temporaries; only used by the reporter

	mu    sync.Mutex
	known bool // the coordinator has accepted our registration
	heard bool // it has done so at least once
	away  bool // it does not respond
}

// ErrTaken is the error if another agent uses the root, or the state.
var ErrTaken = errors.New("another agent has it: end that one first, or give this one another folder")

var siteName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// IsSiteName reports whether a site can have a name.
func IsSiteName(name string) bool { return siteName.MatchString(name) }

// New opens the resources of an agent: its root, its state, its endpoint. It sends no request. The
// caller closes the Agent.
func New(ctx context.Context, o Options) (*Agent, error) {
	if !IsSiteName(o.Site) {
		return nil, fmt.Errorf("a site cannot be called %q: use letters, digits, dots, dashes and underscores, 64 at most", o.Site)
	}
	if o.Slots < 0 || o.Slots > MostSlots {
		return nil, fmt.Errorf("%d copies at once: use 1 to %d", o.Slots, MostSlots)
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

// claim locks the root and the state, so that no second agent uses them.
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

// Close releases the resources of the Agent, after Run has returned.
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

// URL returns the URL of the site's endpoint, "" if it has no endpoint.
func (a *Agent) URL() string {
	if a.endpoint == nil {
		return ""
	}
	return a.endpoint.url
}

// plainError formats err without the location of the root on this machine.
func (a *Agent) plainError(err error) string {
	return strings.ReplaceAll(err.Error(), strings.TrimSuffix(a.o.Root, "/")+"/", "")
}
