package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/say"
	"weir/internal/token"
	"weir/transfer"
	"weir/transfer/fts"
)

// jobTokens are the tokens of a file of a job. They are encrypted in the database, and sent to the endpoint that each is for, or by
// that of the other end to it.
type jobTokens struct {
	Sources map[string]jobToken `json:"from,omitempty"` // by site
	Dest    jobToken            `json:"to,omitzero"`
	Proxy   *proxyID            `json:"proxy,omitempty"` // delegated, of a job without tokens

	sciTag, archive string // of its parameters, see fts.Marks
}

// A jobToken is a token as it is, or the id of one that is renewed.
type jobToken struct {
	Raw    string `json:"raw,omitempty"`
	Bearer string `json:"bearer,omitempty"`
}

func (t *jobTokens) add(site string, one jobToken) {
	if t.Sources == nil {
		t.Sources = map[string]jobToken{}
	}
	t.Sources[site] = one
}

// managed reports whether tokens or the proxy are renewed.
func (t *jobTokens) managed() bool {
	for _, one := range t.Sources {
		if one.Bearer != "" {
			return true
		}
	}
	return t.Dest.Bearer != "" || t.Proxy != nil
}

// tokenOwner is who owns the tokens of a file of a job, for the secretBox.
func tokenOwner(job string, number int) string { return fmt.Sprintf("file %d of job %s", number, job) }

// sealTokens encrypts the tokens of a file; nil if it has none.
func (c *Coordinator) sealTokens(t jobTokens, job string, number int) ([]byte, error) {
	if t.Dest == (jobToken{}) && len(t.Sources) == 0 && t.Proxy == nil {
		return nil, nil
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return c.box.close(string(text), tokenOwner(job, number)), nil
}

// newJobTokens reads the tokens of a submission: those that are renewed are inspected, each once.
type newJobTokens struct {
	c       *Coordinator
	as      bool // as they are: unmanaged_tokens
	known   map[string]jobToken
	bearers map[string]*bearer
	proxy   *proxyID // of the submitter; nil: none
}

func (c *Coordinator) newJobTokens(s *fts.Submission) *newJobTokens {
	return &newJobTokens{c: c, as: s.Unmanaged, known: map[string]jobToken{}, bearers: map[string]*bearer{}}
}

// read returns a token as it is kept.
func (n *newJobTokens) read(ctx context.Context, raw string) (t jobToken, err error) {
	if raw == "" {
		return t, nil
	}
	if t, known := n.known[raw]; known {
		return t, nil
	}
	var add *bearer
	if !n.as {
		if t.Bearer, add, err = n.c.inspectBearer(ctx, raw); err != nil {
			return t, err
		}
	}
	if add == nil {
		t.Raw = raw
	} else if old := n.bearers[add.id]; old == nil || add.expires.After(old.expires) {
		n.bearers[add.id] = add
	}
	n.known[raw] = t
	return t, nil
}

// tokensOf returns the tokens of a file of a job, and the job; "" if the file is in none.
func (c *Coordinator) tokensOf(ctx context.Context, item int64) (t jobTokens, job string, err error) {
	p, job, err := c.queue.PairSecret(ctx, item)
	if err != nil || job == "" {
		return t, job, err
	}
	t.sciTag, t.archive = fts.Marks(p.Params)
	if len(p.Secret) == 0 {
		return t, job, nil
	}
	text, err := c.box.open(p.Secret, tokenOwner(job, p.Number))
	if err != nil { // another key: as if there were none, and the endpoints refuse the copy
		c.health.set("tokens of jobs", err)
		return t, job, nil
	}
	return t, job, json.Unmarshal([]byte(text), &t)
}

// value returns a token as it is sent.
func (c *Coordinator) value(ctx context.Context, t jobToken) (string, error) {
	if t.Bearer == "" {
		return t.Raw, nil
	}
	return c.fresh(ctx, t.Bearer)
}

// tokenSlack is how long an expired token may still be accepted: the clocks of services differ.
const tokenSlack = time.Minute

// expired returns an error if a token says that it expired longer ago than slack.
func (c *Coordinator) expired(raw string, slack time.Duration) error {
	at := token.ExpiryOf(raw)
	if at.IsZero() || c.now().Before(at.Add(slack)) {
		return nil
	}
	return &tokenError{err: fmt.Errorf("the token of %s expired at %s, and is not renewed", cmp.Or(say.Plain(token.IssuerOf(raw)), "the job"),
		clockTime(at))}
}

// spent returns the error of a token that will not be valid again: one that is not renewed and expired longer ago than slack, or whose
// issuer refuses to renew it.
func (c *Coordinator) spent(ctx context.Context, t jobToken, slack time.Duration) error {
	if t.Bearer == "" {
		return c.expired(t.Raw, slack)
	}
	_, err := c.fresh(ctx, t.Bearer)
	if isFinal(err) {
		return err
	}
	return nil
}

// isFinal reports whether err is that of a credential for which nothing can be waited.
func isFinal(err error) bool {
	var e *tokenError
	return errors.As(err, &e) && e.after == 0
}

// lend fills in the tokens of a lease, or the proxy: as many as there are, whatever is wrong with the others.
func (c *Coordinator) lend(ctx context.Context, l *transfer.Lease, t jobTokens) error {
	var failed []error
	for _, one := range []struct {
		end   *transfer.End
		token jobToken
	}{{&l.Source, t.Sources[l.Source.Site]}, {&l.Dest, t.Dest}} {
		raw, err := c.value(ctx, one.token)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", one.end.Site, err))
			continue
		}
		one.end.Token = raw
	}
	if t.Proxy != nil {
		cert, err := c.validProxy(ctx, *t.Proxy)
		if err != nil {
			return err
		}
		l.Source.Cert, l.Dest.Cert = cert, cert
	}
	if i := slices.IndexFunc(failed, isFinal); i >= 0 {
		return failed[i]
	}
	return cmp.Or(failed...)
}

// lent returns a lease with the token of its destination, if it is of a job.
func (c *Coordinator) lent(ctx context.Context, l transfer.Lease) (transfer.Lease, error) {
	if l.Job == "" {
		return l, nil
	}
	return c.lentFor(ctx, l)
}

// lentFor is lent for a lease of which only the item is known.
func (c *Coordinator) lentFor(ctx context.Context, l transfer.Lease) (transfer.Lease, error) {
	t, job, err := c.tokensOf(ctx, l.Item)
	t.Sources = nil
	if l.Job = job; err == nil {
		err = c.lend(ctx, &l, t)
	}
	return l, err
}
