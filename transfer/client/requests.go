package client

import (
	"cmp"
	"context"
	"net/url"
	"strconv"

	"weir/transfer"
)

// Submit requests a dataset at a site. POST /api/v1/requests
func (c *Client) Submit(ctx context.Context, s transfer.Submission) (transfer.Request, error) {
	return post[transfer.Request](ctx, c, "/api/v1/requests", s)
}

// Requests returns the requests that f selects, the newest first. GET /api/v1/requests?...
func (c *Client) Requests(ctx context.Context, f transfer.Filter) ([]transfer.Request, error) {
	q := url.Values{}
	for key, v := range map[string]string{"status": string(f.Status), "to": f.To, "dataset": f.Dataset, "by": f.By} {
		if v != "" {
			q.Set(key, v)
		}
	}
	if f.Open {
		q.Set("open", "true")
	}
	if f.Before > 0 {
		q.Set("before", strconv.FormatInt(f.Before, 10))
	}
	if f.Limit > 0 {
		q.Set("n", strconv.Itoa(f.Limit))
	}
	return get[[]transfer.Request](ctx, c, "/api/v1/requests", q)
}

func of(id int64, what string) string {
	return "/api/v1/requests/" + strconv.FormatInt(id, 10) + what
}

// Request returns one request. GET /api/v1/requests/ID
func (c *Client) Request(ctx context.Context, id int64) (transfer.Request, error) {
	return get[transfer.Request](ctx, c, of(id, ""), nil)
}

// Items returns up to n files (0: 1000) of a request whose numbers are above after, in one state,
// or in any state if state is "". GET /api/v1/requests/ID/items?state=&after=&n=
func (c *Client) Items(ctx context.Context, id int64, state transfer.State, after int64, n int) ([]transfer.Item, error) {
	q := page(strconv.FormatInt(after, 10), n)
	if state != "" {
		q.Set("state", string(state))
	}
	return get[[]transfer.Item](ctx, c, of(id, "/items"), q)
}

// First returns the first n files (0: 1000) of a request in these states, as of one moment: the
// files in the first state, then the files in the next state. GET
// /api/v1/requests/ID/items?state=&state=&n=
func (c *Client) First(ctx context.Context, id int64, states []transfer.State, n int) ([]transfer.Item, error) {
	q := page("", n)
	for _, s := range states {
		q.Add("state", string(s))
	}
	return get[[]transfer.Item](ctx, c, of(id, "/items"), q)
}

// Attempts returns up to n attempts (0: 1000) at one of the files of a request, the oldest first,
// or (item 0) at all of its files, file by file. They are requested page by page. GET
// /api/v1/requests/ID/attempts?item=&n=
func (c *Client) Attempts(ctx context.Context, id, item int64, n int) (all []transfer.Attempt, err error) {
	if n <= 0 {
		n = pageSize
	}
	if item != 0 {
		q := page("", min(n, 10*pageSize)) // more attempts than a file can have
		q.Set("item", strconv.FormatInt(item, 10))
		return get[[]transfer.Attempt](ctx, c, of(id, "/attempts"), q)
	}
	err = c.eachAttempt(ctx, id, min(n, pageSize), func(a transfer.Attempt) bool {
		all = append(all, a)
		return len(all) < n
	})
	return all, err
}

// EachAttempt calls f for each attempt at the files of a request, file by file, the oldest first;
// no more than a page of them is in memory. It stops at the first error of f. GET
// /api/v1/requests/ID/attempts?n=&after=&epoch=&late=
func (c *Client) EachAttempt(ctx context.Context, id int64, f func(transfer.Attempt) error) (err error) {
	asked := c.eachAttempt(ctx, id, pageSize, func(a transfer.Attempt) bool {
		err = f(a)
		return err == nil
	})
	return cmp.Or(err, asked)
}

// eachAttempt requests pages of n attempts until f returns false.
func (c *Client) eachAttempt(ctx context.Context, id int64, n int, f func(transfer.Attempt) bool) error {
	for q := page("", n); ; {
		list, err := get[[]transfer.Attempt](ctx, c, of(id, "/attempts"), q)
		if err != nil {
			return err
		}
		for _, a := range list {
			if !f(a) {
				return nil
			}
		}
		if len(list) < n {
			return nil
		}
		last := list[n-1]
		q.Set("after", strconv.FormatInt(last.Item, 10))
		q.Set("epoch", strconv.FormatInt(last.Epoch, 10))
		q.Set("late", strconv.FormatBool(last.Late))
	}
}

// Explain returns the reasons why the files of a request do not move now; file "" selects all
// files. GET /api/v1/requests/ID/explain?file=
func (c *Client) Explain(ctx context.Context, id int64, file string) (transfer.Explanation, error) {
	q := url.Values{}
	if file != "" {
		q.Set("file", file)
	}
	return get[transfer.Explanation](ctx, c, of(id, "/explain"), q)
}

// A word is the body of a decision.
type word struct {
	Reason string `json:"reason,omitempty"`
}

// Approve approves a request, which then begins. POST /api/v1/requests/ID/approve
func (c *Client) Approve(ctx context.Context, id int64, reason string) (transfer.Request, error) {
	return post[transfer.Request](ctx, c, of(id, "/approve"), word{reason})
}

// Reject ends a request that was not approved. POST /api/v1/requests/ID/reject
func (c *Client) Reject(ctx context.Context, id int64, reason string) (transfer.Request, error) {
	return post[transfer.Request](ctx, c, of(id, "/reject"), word{reason})
}

// Cancel ends a request. Running copies are aborted, and files that have arrived stay. POST
// /api/v1/requests/ID/cancel
func (c *Client) Cancel(ctx context.Context, id int64, reason string) (transfer.Request, error) {
	return post[transfer.Request](ctx, c, of(id, "/cancel"), word{reason})
}

// Retry tries the files of a request that failed or were cancelled again. POST
// /api/v1/requests/ID/retry
func (c *Client) Retry(ctx context.Context, id int64, reason string) (transfer.Request, error) {
	return post[transfer.Request](ctx, c, of(id, "/retry"), word{reason})
}
