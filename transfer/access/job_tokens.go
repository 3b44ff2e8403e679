package access

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

// JobTokens are the tokens of a file of a job. They are encrypted in the database. Each is sent to
// its own endpoint, or by the endpoint at the other end to it.
type JobTokens struct {
	Sources map[string]JobToken `json:"from,omitempty"` // by site
	Dest    JobToken            `json:"to,omitzero"`
	Proxy   *ProxyID            `json:"proxy,omitempty"` // delegated, of a job without tokens

	SciTag, ArchiveMetadata string // of its parameters, see fts.Marks
}

// A JobToken is a token as it is, or the id of a token that is renewed.
type JobToken struct {
	Raw    string `json:"raw,omitempty"`
	Bearer string `json:"bearer,omitempty"`
}

// Add adds the token of a source.
func (t *JobTokens) Add(site string, one JobToken) {
	if t.Sources == nil {
		t.Sources = map[string]JobToken{}
	}
	t.Sources[site] = one
}

// Managed reports whether tokens or the proxy are renewed.
func (t *JobTokens) Managed() bool {
	for _, one := range t.Sources {
		if one.Bearer != "" {
			return true
		}
	}
	return t.Dest.Bearer != "" || t.Proxy != nil
}

// tokenOwner returns the owner of the tokens of a file of a job, for the Box.
func tokenOwner(job string, number int) string { return fmt.Sprintf("file %d of job %s", number, job) }

// SealTokens encrypts the tokens of a file. It returns nil if the file has no tokens.
func (c *Control) SealTokens(t JobTokens, job string, number int) ([]byte, error) {
	if t.Dest == (JobToken{}) && len(t.Sources) == 0 && t.Proxy == nil {
		return nil, nil
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return c.box.Seal(string(text), tokenOwner(job, number)), nil
}

// A TokenReader reads the tokens of a submission. It inspects each token that is renewed once.
type TokenReader struct {
	c       *Control
	as      bool // as they are: unmanaged_tokens
	known   map[string]JobToken
	bearers map[string]*bearer
	Proxy   *ProxyID // of the submitter; nil: the submitter has no proxy
}

// NewTokenReader returns a TokenReader for a submission. unmanaged means that its tokens are used as they are.
func (c *Control) NewTokenReader(unmanaged bool) *TokenReader {
	return &TokenReader{c: c, as: unmanaged, known: map[string]JobToken{}, bearers: map[string]*bearer{}}
}

// Read returns a token in its stored form.
func (n *TokenReader) Read(ctx context.Context, raw string) (t JobToken, err error) {
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

// TokensOf returns the tokens of a file of a job, and the job; "" if the file belongs to no job.
func (c *Control) TokensOf(ctx context.Context, item int64) (t JobTokens, job string, err error) {
	p, job, err := c.queue.Read.PairSecret(ctx, item)
	if err != nil || job == "" {
		return t, job, err
	}
	t.SciTag, t.ArchiveMetadata = fts.Marks(p.Params)
	if len(p.Secret) == 0 {
		return t, job, nil
	}
	text, err := c.box.Open(p.Secret, tokenOwner(job, p.Number))
	if err != nil { // another key: the file is treated as having no tokens, and the endpoints refuse the copy
		c.health.Set("tokens of jobs", err)
		return t, job, nil
	}
	return t, job, json.Unmarshal([]byte(text), &t)
}

// value returns a token in the form that is sent.
func (c *Control) value(ctx context.Context, t JobToken) (string, error) {
	if t.Bearer == "" {
		return t.Raw, nil
	}
	return c.fresh(ctx, t.Bearer)
}

// TokenSlack is the time for which an expired token may still be accepted: the clocks of services differ.
const TokenSlack = time.Minute

// Expired returns an error if a token expired longer ago than slack.
func (c *Control) Expired(raw string, slack time.Duration) error {
	at := token.ExpiryOf(raw)
	if at.IsZero() || c.now().Before(at.Add(slack)) {
		return nil
	}
	return &TokenError{err: fmt.Errorf("the token of %s expired at %s, and is not renewed", cmp.Or(say.Plain(token.IssuerOf(raw)), "the job"),
		say.UTC(at))}
}

// Spent returns the error of a token that will not be valid again: the token is not renewed and
// expired longer ago than slack, or its issuer refuses to renew it.
func (c *Control) Spent(ctx context.Context, t JobToken, slack time.Duration) error {
	if t.Bearer == "" {
		return c.Expired(t.Raw, slack)
	}
	_, err := c.fresh(ctx, t.Bearer)
	if IsFinal(err) {
		return err
	}
	return nil
}

// IsFinal reports whether err is the error of a credential that will not become valid by waiting.
func IsFinal(err error) bool {
	var e *TokenError
	return errors.As(err, &e) && e.After == 0
}

// Lend fills in the tokens of a lease, or the proxy. It fills in the valid tokens even if others
// are invalid.
func (c *Control) Lend(ctx context.Context, l *transfer.Lease, t JobTokens) error {
	var failed []error
	for _, one := range []struct {
		end   *transfer.End
		token JobToken
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
	if i := slices.IndexFunc(failed, IsFinal); i >= 0 {
		return failed[i]
	}
	return cmp.Or(failed...)
}

// Lent returns a lease with the token of its destination, if it belongs to a job.
func (c *Control) Lent(ctx context.Context, l transfer.Lease) (transfer.Lease, error) {
	if l.Job == "" {
		return l, nil
	}
	return c.LentFor(ctx, l)
}

// LentFor does the same as Lent for a lease of which only the item is known.
func (c *Control) LentFor(ctx context.Context, l transfer.Lease) (transfer.Lease, error) {
	t, job, err := c.TokensOf(ctx, l.Item)
	t.Sources = nil
	if l.Job = job; err == nil {
		err = c.Lend(ctx, &l, t)
	}
	return l, err
}
