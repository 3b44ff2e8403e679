// Package remote accesses files at the endpoints of other sites: with package tpc for https and
// http URLs, and with the XRootD protocol for root and roots URLs.
package remote

import (
	"context"
	"crypto/tls"
	"io"
	"net/url"
	"strings"
	"time"

	"weir/internal/digest"
	"weir/internal/tpc"
)

// A Client sends requests to endpoints. For root and roots URLs, which tpc.Client does not support,
// its methods do the same and fail with the same errors (tpc.Error). A token is sent to a root
// URL's server only by TLS: with ztn, and for a roots URL also as authz. It is safe for concurrent
// use. The caller closes it.
type Client struct {
	*tpc.Client
	root  root
	kinds tpc.Kinds // by host and path: a server may be accessed by https and by root
}

// New returns a Client with the given authorities.
func New(name string, conf *tls.Config) *Client {
	return &Client{Client: tpc.New(tpc.Options{Name: name, TLS: conf}), root: root{tls: conf}}
}

// Close closes idle connections.
func (c *Client) Close() {
	c.Client.Close()
	c.root.close()
}

// IsRoot reports whether the scheme of a URL is root or roots.
func IsRoot(address string) bool {
	return strings.HasPrefix(address, "root://") || strings.HasPrefix(address, "roots://")
}

// Web returns the URL with the scheme https or http, for rules that concern its host only.
func Web(u *url.URL) *url.URL {
	same := *u
	switch u.Scheme {
	case "roots":
		same.Scheme = "https"
	case "root":
		same.Scheme = "http"
	}
	if same.Scheme != u.Scheme && same.Port() == "" {
		same.Host += ":1094"
	}
	return &same
}

// Stat returns the size of a file.
func (c *Client) Stat(ctx context.Context, t tpc.Target) (tpc.Info, error) {
	if IsRoot(t.URL) {
		return c.root.stat(ctx, t)
	}
	return c.Client.Stat(ctx, t)
}

// Checksum does the same as Stat and also returns the file's checksum. It requests one kind of
// checksum of a file at a time.
func (c *Client) Checksum(ctx context.Context, t tpc.Target, w tpc.Wish) (tpc.Info, error) {
	if u, err := url.Parse(t.URL); err == nil {
		kind, _ := digest.Split(w.Want)
		leave, err := c.kinds.Enter(ctx, strings.ToLower(u.Hostname())+"/"+strings.TrimLeft(u.Path, "/"), kind.Name)
		if err != nil {
			return tpc.Info{}, err
		}
		defer leave()
	}
	if IsRoot(t.URL) {
		return c.root.checksum(ctx, t, w)
	}
	return c.Client.Checksum(ctx, t, w)
}

// Parents creates the missing folders above a file.
func (c *Client) Parents(ctx context.Context, t tpc.Target) error {
	if IsRoot(t.URL) {
		return nil // they are created with the file
	}
	return c.Client.Parents(ctx, t)
}

// Open returns the bytes of a file. The caller closes them.
func (c *Client) Open(ctx context.Context, t tpc.Target) (io.ReadCloser, error) {
	if IsRoot(t.URL) {
		return c.root.open(ctx, t)
	}
	return c.Client.Open(ctx, t)
}

// Store creates a file of size bytes, or replaces it, with the bytes that open returns.
func (c *Client) Store(ctx context.Context, t tpc.Target, size int64, open func() (io.ReadCloser, error)) error {
	if IsRoot(t.URL) {
		return c.root.store(ctx, t, size, open)
	}
	return c.Client.Store(ctx, t, size, open)
}

// Move renames a file. The new name must be free (else tpc.Exists). It checks that before the
// request, because XRootD replaces existing files.
func (c *Client) Move(ctx context.Context, t tpc.Target, to string) error {
	if IsRoot(t.URL) {
		return c.root.move(ctx, t, to)
	}
	return c.Client.Move(ctx, t, to)
}

// Replace does the same as Move to a name that another file may have.
func (c *Client) Replace(ctx context.Context, t tpc.Target, to string) error {
	if IsRoot(t.URL) {
		return c.root.replace(ctx, t, to)
	}
	return c.Client.Replace(ctx, t, to)
}

// Remove deletes a file. A missing file is no error.
func (c *Client) Remove(ctx context.Context, t tpc.Target) error {
	if IsRoot(t.URL) {
		return c.root.remove(ctx, t)
	}
	return c.Client.Remove(ctx, t)
}

// Ask requests the abilities of an endpoint. For a root URL, it checks whether the server accepts
// the login.
func (c *Client) Ask(ctx context.Context, t tpc.Target) (tpc.Abilities, error) {
	if IsRoot(t.URL) {
		return c.root.ask(ctx, t)
	}
	return c.Client.Ask(ctx, t)
}

// Macaroon requests a macaroon from an endpoint. Endpoints of root URLs issue no macaroons.
func (c *Client) Macaroon(ctx context.Context, t tpc.Target, activities string, life time.Duration) (string, error) {
	if IsRoot(t.URL) {
		return "", &tpc.Error{Kind: tpc.Unsupported, Text: "the XRootD protocol has no macaroons"}
	}
	return c.Client.Macaroon(ctx, t, activities, life)
}

// Drive has an endpoint copy a file from or to another endpoint.
func (c *Client) Drive(ctx context.Context, o tpc.Order, tell func(moved int64)) error {
	switch root := IsRoot(o.Active.URL); {
	case root && IsRoot(o.Passive.URL) && !o.Push:
		return c.root.drive(ctx, o, tell)
	case root || IsRoot(o.Passive.URL):
		return &tpc.Error{Kind: tpc.Unsupported, Text: "no protocol for copies between the two"}
	}
	return c.Client.Drive(ctx, o, tell)
}
