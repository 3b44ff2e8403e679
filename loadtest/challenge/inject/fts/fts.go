// Package fts injects copies as jobs of an FTS3 service, by its REST API.
//
// A job has copies of one link. Its id follows from a seed that weir chooses and writes to a journal
// before the job is submitted (id_generator deterministic), so that a submission can be repeated, and
// is found again after a kill. Jobs are asked for together, by their ids.
//
// The package was tested with the API of weir's own coordinator and compared with the requests of
// FTS's client library; FTS3 itself was not available.
package fts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"weir/internal/token"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/service"
	"weir/storage"
)

// An injector has FTS make copies.
type injector struct {
	conf    inject.Config
	plan    *challenge.Challenge
	pairs   []service.Pair // by link
	cred    storage.Credentials
	client  *service.Client
	copies  *service.Copies
	journal *service.Journal
	past    past
	proxy   delegator

	background context.Context // of the goroutines; Close ends it
	stop       context.CancelFunc
	running    sync.WaitGroup
	submit     service.Wake // there is something to submit
	poll       service.Wake // poll now

	mu      sync.Mutex
	who     *identity // nil: not requested yet
	waiting []*batch  // copies that are not submitted, the oldest batch first
	jobs    map[string]*entry
	leaving map[int64]bool // copies that are to be cancelled
}

// New returns an injector of the service at c.Challenge.Inject.URL. It reads the journal of an
// earlier process of the challenge in c.Dir. The caller closes it; the end of ctx does not end it.
func New(ctx context.Context, c inject.Config) (inject.Injector, error) {
	i := &injector{conf: c, plan: c.Challenge, copies: service.NewCopies(c.Report), past: past{jobs: map[int64]*line{}},
		submit: service.NewWake(), poll: service.NewWake(), jobs: map[string]*entry{}, leaving: map[int64]bool{}}
	var err error
	if i.pairs, err = service.Pairs(c.Challenge); err != nil {
		return nil, err
	}
	if i.cred, err = c.Challenge.Inject.Auth.Read(); err != nil {
		return nil, fmt.Errorf("inject.%w", err)
	}
	if i.client, err = service.NewClient(c.Challenge.Inject.URL, i.cred, i.authorize); err != nil {
		return nil, err
	}
	if i.journal, err = service.OpenJournal(c.Dir, journalName, i.past.read); err != nil {
		return nil, err
	}
	if i.past.run == "" {
		i.past.run = rand.Text()
		if err := i.journal.Append(line{Run: i.past.run}); err != nil {
			return nil, errors.Join(err, i.journal.Close())
		}
	}
	i.proxy.client, i.proxy.cred = i.client, &i.cred
	i.background, i.stop = context.WithCancel(context.WithoutCancel(ctx))
	i.running.Go(i.submitAll)
	i.running.Go(func() { i.poll.Rounds(i.background, leastPoll, mostPoll, i.follow) })
	return i, nil
}

func (i *injector) authorize(_ context.Context, r *http.Request) error {
	if i.cred.Token != "" {
		r.Header.Set("Authorization", "Bearer "+i.cred.Bearer().Current())
	}
	return nil
}

// Check contacts the service and checks that it can be used with the credentials of the challenge.
func (i *injector) Check(ctx context.Context) error {
	who, err := i.identity(ctx)
	if err != nil {
		return err
	}
	if len(who.Level) > 0 && who.Level["transfer"] == "" {
		return fmt.Errorf("FTS grants no transfers to %s: its service configuration must give the virtual organization %s the level transfer",
			who.DN, who.VOs[0])
	}
	for n, p := range i.pairs {
		tokens, err := i.tokens(p)
		if err != nil {
			return fmt.Errorf("links[%d]: %w", n, err)
		}
		for _, at := range []*challenge.Site{p.From, p.To} {
			if who.Method != "certificate" && tokens.source == "" && at.Auth.Method == storage.X509Auth {
				return fmt.Errorf("links[%d]: site %s requires a certificate, which FTS does not have: give inject.auth the certificate as well, "+
					"so that a proxy is delegated to FTS", n, at.Name)
			}
		}
	}
	return nil
}

// identity returns the caller's identity. It requests it once.
func (i *injector) identity(ctx context.Context) (*identity, error) {
	i.mu.Lock()
	who := i.who
	i.mu.Unlock()
	if who != nil {
		return who, nil
	}
	got, err := whoami(ctx, i.client)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	i.who = &got
	i.mu.Unlock()
	return &got, nil
}

// fileTokens are the tokens of a file; they are empty without tokens.
type fileTokens struct {
	source, dest string
	ends         time.Time // the first of them; zero: unknown
}

// tokens returns fresh tokens for the sites of a link.
func (i *injector) tokens(p service.Pair) (t fileTokens, err error) {
	if i.conf.Credentials == nil {
		return t, nil
	}
	from, err := i.conf.Credentials(p.From.Name)
	if err != nil {
		return t, fmt.Errorf("credentials of site %s: %w", p.From.Name, err)
	}
	to, err := i.conf.Credentials(p.To.Name)
	if err != nil {
		return t, fmt.Errorf("credentials of site %s: %w", p.To.Name, err)
	}
	if from.Token == "" && to.Token == "" {
		return t, nil
	}
	if from.Token == "" || to.Token == "" {
		return t, fmt.Errorf("only one of the sites %s and %s has a token: FTS needs tokens for both sites of a copy, or for no site",
			p.From.Name, p.To.Name)
	}
	t.source, t.dest = from.Bearer().Current(), to.Bearer().Current()
	t.ends = token.ExpiryOf(t.source)
	if at := token.ExpiryOf(t.dest); t.ends.IsZero() || !at.IsZero() && at.Before(t.ends) {
		t.ends = at
	}
	return t, nil
}

// Health returns the state of the service since the last call.
func (i *injector) Health() inject.Health { return i.client.Health() }

// Close ends the injector. Copies in flight go on at the service.
func (i *injector) Close() error {
	i.stop()
	i.running.Wait()
	i.client.Close()
	return i.journal.Close()
}
