package coordinator

import (
	"context"
	"encoding/json"
	"fmt"

	"weir/transfer"
	"weir/transfer/fts"
)

// jobTokens are the tokens of a file of a job. They are encrypted in the database, and sent to the endpoint that each is for, or by
// that of the other end to it.
type jobTokens struct {
	Sources map[string]jobToken `json:"from,omitempty"` // by site
	Dest    jobToken            `json:"to,omitzero"`
	Proxy   *proxyID            `json:"proxy,omitempty"` // delegated, of a job without tokens
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
	sealed, job, number, err := c.queue.PairSecret(ctx, item)
	if err != nil || job == "" || len(sealed) == 0 {
		return t, job, err
	}
	text, err := c.box.open(sealed, tokenOwner(job, number))
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

// lend fills in the tokens of a lease, or the proxy.
func (c *Coordinator) lend(ctx context.Context, l *transfer.Lease, t jobTokens) error {
	source, err := c.value(ctx, t.Sources[l.Source.Site])
	if err != nil {
		return fmt.Errorf("%s: %w", l.Source.Site, err)
	}
	dest, err := c.value(ctx, t.Dest)
	if err != nil {
		return fmt.Errorf("%s: %w", l.Dest.Site, err)
	}
	l.Source.Token, l.Dest.Token = source, dest
	if t.Proxy != nil {
		cert, err := c.validProxy(ctx, *t.Proxy)
		if err != nil {
			return err
		}
		l.Source.Cert, l.Dest.Cert = cert, cert
	}
	return nil
}

// lent returns a lease with the tokens of its job, if it is of one.
func (c *Coordinator) lent(ctx context.Context, l transfer.Lease) (transfer.Lease, error) {
	if l.Job == "" {
		return l, nil
	}
	return c.lentFor(ctx, l)
}

// lentFor is lent for a lease of which only the item is known.
func (c *Coordinator) lentFor(ctx context.Context, l transfer.Lease) (transfer.Lease, error) {
	t, job, err := c.tokensOf(ctx, l.Item)
	if l.Job = job; err == nil {
		err = c.lend(ctx, &l, t)
	}
	return l, err
}
