// Package remote accesses files at the endpoints of other sites: those of https and http URLs with package tpc, those of root and roots
// URLs with the XRootD protocol.
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

// A Client asks endpoints. For root and roots URLs, which tpc.Client does not know, its methods do the same and fail with the same
// errors (tpc.Error). A token goes to a root URL's server only by TLS: with ztn, and with a roots URL as authz as well. It is safe for
// concurrent use. The caller closes it.
type Client struct {
	*tpc.Client
	root  root
	kinds tpc.Kinds // by host and path: a server may be asked by https and by root
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

// IsRoot reports whether a URL is one of the XRootD protocol.
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

// Checksum is Stat with the file's checksum. One kind of checksum is requested of a file at a time.
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

// Parents makes the folders above a file that are missing.
func (c *Client) Parents(ctx context.Context, t tpc.Target) error {
	if IsRoot(t.URL) {
		return nil // they are made with the file
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

// Store makes a file of size bytes, or replaces one, of what open returns.
func (c *Client) Store(ctx context.Context, t tpc.Target, size int64, open func() (io.ReadCloser, error)) error {
	if IsRoot(t.URL) {
		return c.root.store(ctx, t, size, open)
	}
	return c.Client.Store(ctx, t, size, open)
}

// Move gives a file another name, which must be free (else tpc.Exists). It looks before: XRootD replaces what is there.
func (c *Client) Move(ctx context.Context, t tpc.Target, to string) error {
	if IsRoot(t.URL) {
		return c.root.move(ctx, t, to)
	}
	return c.Client.Move(ctx, t, to)
}

// Replace is Move to a name that another file may have.
func (c *Client) Replace(ctx context.Context, t tpc.Target, to string) error {
	if IsRoot(t.URL) {
		return c.root.replace(ctx, t, to)
	}
	return c.Client.Replace(ctx, t, to)
}

// Remove deletes a file. Nothing there is no error.
func (c *Client) Remove(ctx context.Context, t tpc.Target) error {
	if IsRoot(t.URL) {
		return c.root.remove(ctx, t)
	}
	return c.Client.Remove(ctx, t)
}

// Ask asks an endpoint what it can do: one of a root URL whether it accepts the login.
func (c *Client) Ask(ctx context.Context, t tpc.Target) (tpc.Abilities, error) {
	if IsRoot(t.URL) {
		return c.root.ask(ctx, t)
	}
	return c.Client.Ask(ctx, t)
}

// Macaroon asks an endpoint for a macaroon. Those of root URLs issue none.
func (c *Client) Macaroon(ctx context.Context, t tpc.Target, activities string, life time.Duration) (string, error) {
	if IsRoot(t.URL) {
		return "", &tpc.Error{Kind: tpc.Unsupported, Text: "the XRootD protocol has no macaroons"}
	}
	return c.Client.Macaroon(ctx, t, activities, life)
}

// Drive has an endpoint copy a file from or to another one.
func (c *Client) Drive(ctx context.Context, o tpc.Order, tell func(moved int64)) error {
	switch root := IsRoot(o.Active.URL); {
	case root && IsRoot(o.Passive.URL) && !o.Push:
		return c.root.drive(ctx, o, tell)
	case root || IsRoot(o.Passive.URL):
		return &tpc.Error{Kind: tpc.Unsupported, Text: "no protocol for copies between the two"}
	}
	return c.Client.Drive(ctx, o, tell)
}
