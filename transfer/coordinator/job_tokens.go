package coordinator

import (
	"context"
	"encoding/json"
	"fmt"

	"weir/transfer"
)

// jobTokens are the tokens of a file of a job. They are encrypted in the database, and sent to the endpoint that each is for, or by
// that of the other end to it.
type jobTokens struct {
	Sources map[string]string `json:"sources,omitempty"` // by site
	Dest    string            `json:"dest,omitempty"`
}

func (t *jobTokens) add(site, token string) {
	if t.Sources == nil {
		t.Sources = map[string]string{}
	}
	t.Sources[site] = token
}

// tokenOwner is who owns the tokens of a file of a job, for the secretBox.
func tokenOwner(job string, number int) string { return fmt.Sprintf("file %d of job %s", number, job) }

// sealTokens encrypts the tokens of a file; nil if it has none.
func (c *Coordinator) sealTokens(t jobTokens, job string, number int) ([]byte, error) {
	if t.Dest == "" && len(t.Sources) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return c.box.close(string(text), tokenOwner(job, number)), nil
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
	sealed, job, number, err := c.queue.PairSecret(ctx, l.Item)
	if l.Job = job; err != nil || job == "" || len(sealed) == 0 {
		return l, err
	}
	text, err := c.box.open(sealed, tokenOwner(job, number))
	if err != nil { // another key: as if there were none, and the endpoints refuse the copy
		c.health.set("tokens of jobs", err)
		return l, nil
	}
	var t jobTokens
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return l, err
	}
	l.Source.Token, l.Dest.Token = t.Sources[l.Source.Site], t.Dest
	return l, nil
}
