// Package rucio injects copies as rules of Rucio, by its REST API.
//
// A file is registered once in Rucio, at its source, and each copy is a rule for it at the destination.
// Rucio can have a file once at each storage element (RSE), so a file is copied to a destination again
// only when its replica there is gone: a pool keeps the account. Rules have a lifetime, so that a
// challenge that is never cleaned ends by itself.
package rucio

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"sync"
	"time"

	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/service"
	"weir/storage"
)

// journalName is the file in Config.Dir.
const journalName = "rucio.jsonl"

// A line of the journal: the first line has the run, and each further line copies, before their rules
// are requested.
type line struct {
	Run    string  `json:"run,omitempty"` // random, in the comment of all rules
	Copies []saved `json:"copies,omitempty"`
}

// saved is a copy in the journal.
type saved struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	RSE  string `json:"rse"`
}

// A flight is a copy with a rule, or one for which a rule is being requested. It ends when the rule is
// ended.
type flight struct {
	copy    inject.Copy
	at      place
	rule    string // "": not known yet
	since   time.Time
	sending bool      // a request for its rule may be going on
	settled time.Time // end of that request: a list of rules that was requested later has the rule
	made    bool      // its rule is OK
	leaving bool      // its rule is to be deleted
}

// An injector has Rucio make copies.
type injector struct {
	conf    inject.Config
	plan    *challenge.Challenge
	pairs   []service.Pair // by link
	cred    storage.Credentials
	api     *api
	copies  *service.Copies
	journal *service.Journal
	run     string // of the journal
	past    map[int64]saved

	background context.Context // of the goroutines; Close ends it
	stop       context.CancelFunc
	running    sync.WaitGroup
	submit     service.Wake // there is something to request
	poll       service.Wake // poll now

	mu      sync.Mutex
	pool    *pool
	ready   map[int][]inject.Copy // copies that have their places, by link
	flights map[int64]*flight
	known   map[place]bool // files that are registered at their source
	rses    map[string]rseInfo
}

// New returns an injector of the Rucio at c.Challenge.Inject.URL. It reads the journal of an earlier
// process of the challenge in c.Dir. The caller closes it; the end of ctx does not end it.
func New(ctx context.Context, c inject.Config) (inject.Injector, error) {
	i := &injector{conf: c, plan: c.Challenge, copies: service.NewCopies(c.Report), past: map[int64]saved{},
		submit: service.NewWake(), poll: service.NewWake(), pool: newPool(), ready: map[int][]inject.Copy{},
		flights: map[int64]*flight{}, known: map[place]bool{}, rses: map[string]rseInfo{}}
	in := &c.Challenge.Inject
	if in.Account == "" || in.Scope == "" {
		return nil, errors.New("inject: Rucio needs account and scope")
	}
	var err error
	if i.pairs, err = service.Pairs(c.Challenge); err != nil {
		return nil, err
	}
	if i.cred, err = in.Auth.Read(); err != nil {
		return nil, fmt.Errorf("inject.%w", err)
	}
	i.api = &api{}
	if i.api.session, err = newSession(cmp.Or(in.AuthURL, in.URL), in.Account, &i.cred); err != nil {
		return nil, err
	}
	if i.api.client, err = service.NewClient(in.URL, i.cred, i.api.session.authorize); err != nil {
		return nil, err
	}
	if i.journal, err = service.OpenJournal(c.Dir, journalName, i.read); err != nil {
		return nil, err
	}
	if i.run == "" {
		i.run = rand.Text()
		if err := i.journal.Append(line{Run: i.run}); err != nil {
			return nil, errors.Join(err, i.journal.Close())
		}
	}
	i.background, i.stop = context.WithCancel(context.WithoutCancel(ctx))
	i.running.Go(func() { i.submit.Rounds(i.background, leastPoll, mostPoll, i.submitReady) })
	i.running.Go(func() { i.poll.Rounds(i.background, leastPoll, mostPoll, i.follow) })
	return i, nil
}

// read reads a line of the journal.
func (i *injector) read(text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("malformed: %w", err)
	}
	if i.run = cmp.Or(i.run, l.Run); i.run == "" {
		return errors.New("the first line must have the key run")
	}
	for _, c := range l.Copies {
		i.past[c.ID] = c
	}
	return nil
}

// comment is the comment of all rules of the challenge.
func (i *injector) comment() string { return "weir challenge " + i.plan.Name + " " + i.run }

func rseOf(s *challenge.Site) string { return cmp.Or(s.RSE, s.Name) }

func (i *injector) did(name string) did { return did{i.plan.Inject.Scope, name} }

// placeOf returns the place of a copy.
func (i *injector) placeOf(c *inject.Copy) place {
	return place{path.Base(c.Source.Path), rseOf(i.pairs[c.Link].To)}
}

// Check contacts Rucio and checks that its storage elements are usable and have the files at the
// paths of the challenge.
func (i *injector) Check(ctx context.Context) error {
	if _, err := i.api.do(ctx, http.MethodGet, "/accounts/"+url.PathEscape(i.plan.Inject.Account), nil, false); err != nil {
		return err
	}
	for n, p := range i.pairs {
		for operation, s := range map[string]*challenge.Site{"third_party_copy_read": p.From, "third_party_copy_write": p.To} {
			info, err := i.info(ctx, rseOf(s))
			if err != nil {
				return fmt.Errorf("links[%d]: site %s: RSE %s: %w", n, s.Name, rseOf(s), err)
			}
			if s == p.From && !info.Read || s == p.To && !info.Write {
				return fmt.Errorf("links[%d]: site %s: Rucio has RSE %s as not available for this link: set its availability", n, s.Name, rseOf(s))
			}
			if err := i.checkPath(ctx, s, operation, info); err != nil {
				return fmt.Errorf("links[%d]: site %s: %w", n, s.Name, err)
			}
		}
	}
	return nil
}

// info returns the description of an RSE. It requests it once.
func (i *injector) info(ctx context.Context, rse string) (rseInfo, error) {
	i.mu.Lock()
	info, known := i.rses[rse]
	i.mu.Unlock()
	if known {
		return info, nil
	}
	info, err := i.api.rse(ctx, rse)
	if err == nil {
		i.mu.Lock()
		i.rses[rse] = info
		i.mu.Unlock()
	}
	return info, err
}

// checkPath checks that a deterministic RSE has files at the paths that Path returns, below the URL of
// the site.
func (i *injector) checkPath(ctx context.Context, s *challenge.Site, operation string, info rseInfo) error {
	if !info.Deterministic {
		return nil
	}
	const name = "weir-check"
	got, err := i.api.pfn(ctx, rseOf(s), operation, i.did(name))
	if err != nil {
		return err
	}
	want := Path(i.plan.Inject.Scope, name)
	for _, base := range []string{s.URL, s.Root} {
		if base != "" && samePath(got, service.URLOf(&challenge.Site{URL: base}, "", want)) {
			return nil
		}
	}
	return fmt.Errorf("RSE %s has the file %s of scope %s at %s instead of %s: the site's url must be the prefix of the RSE, "+
		"with Rucio's hash algorithm of paths", rseOf(s), name, i.plan.Inject.Scope, service.Line(got), service.URLOf(s, "", want))
}

// samePath reports whether two URLs have the same server and path; schemes differ by protocol.
func samePath(a, b string) bool {
	x, err1 := url.Parse(a)
	y, err2 := url.Parse(b)
	return err1 == nil && err2 == nil && x.Hostname() == y.Hostname() && path.Clean("/"+x.Path) == path.Clean("/"+y.Path)
}

// Health returns the state of Rucio and of its authentication server since the last call.
func (i *injector) Health() inject.Health {
	h := i.api.client.Health()
	if issuer := i.api.session.client.Health(); issuer.Requests > 0 {
		h.Issuer = &issuer
	}
	return h
}

// Close ends the injector. Rules stay until their lifetime ends.
func (i *injector) Close() error {
	i.stop()
	i.running.Wait()
	i.api.client.Close()
	i.api.session.close()
	return i.journal.Close()
}
