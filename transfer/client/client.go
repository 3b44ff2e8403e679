// Package client sends requests to a coordinator, for commands, pages and tests.
//
// All paths are below the coordinator's URL; responses are JSON. A failed request returns a
// *wire.Error with the HTTP status and a sentence for people.
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"weir/internal/trust"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/catalog"
)

// A Config has the address of a coordinator and the credentials of the client.
type Config struct {
	URLs  []string      `json:"urls"`          // https://HOST:PORT, or http:// on loopback; several if there is a standby
	Pin   string        `json:"pin,omitempty"` // SHA-256 of its certificate; "": authorities verify it
	Token string        `json:"token,omitempty"`
	Wait  time.Duration `json:"-"` // for one response; 0 is 2 minutes

	CAFile   string `json:"ca_file,omitempty"`   // authorities; "": the authorities of the system
	CertFile string `json:"cert_file,omitempty"` // client certificate
	KeyFile  string `json:"key_file,omitempty"`
}

// Address returns the coordinator's URLs with its pin, if it has one, in the notation of users and
// Find: URL#PIN, or URL,URL#PIN if there is a standby.
func (c Config) Address() string {
	urls := strings.Join(c.URLs, ",")
	if c.Pin == "" {
		return urls
	}
	return urls + "#" + c.Pin
}

// A Client sends requests to one coordinator. Its methods may be called by several goroutines at
// once.
type Client struct {
	ask  *wire.Client
	conf Config
}

// URL returns the coordinator's first URL.
func (c *Client) URL() string { return c.conf.URLs[0] }

// Address returns the address of the client's Config.
func (c *Client) Address() string { return c.conf.Address() }

// New returns a client. Close releases it.
func New(c Config) (*Client, error) {
	if len(c.URLs) == 0 {
		return nil, errors.New("no coordinator is named")
	}
	if c.Wait <= 0 {
		c.Wait = 2 * time.Minute
	}
	for _, u := range c.URLs {
		if err := fit(u); err != nil {
			return nil, err
		}
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.Pin != "" {
		secure = wire.Pinned(c.Pin)
	}
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, err
		}
		secure.Certificates = []tls.Certificate{pair}
	}
	if c.CAFile != "" && c.Pin == "" {
		var err error
		if secure.RootCAs, err = trust.Authorities(c.CAFile); err != nil {
			return nil, err
		}
	}
	return &Client{ask: wire.NewClientTLS(c.URLs, c.Token, secure, c.Wait), conf: c}, nil
}

// CheckAddress returns an error if an address is not empty and not one that Find reads.
func CheckAddress(address string) error {
	if address == "" {
		return nil
	}
	list, pin, found := strings.Cut(address, "#")
	if found && !trust.IsPin(pin) {
		return fmt.Errorf("%.200q: after # the pin is expected, which is 64 hexadecimal digits", address)
	}
	for u := range strings.SplitSeq(list, ",") {
		if err := fit(strings.TrimSpace(u)); err != nil {
			return err
		}
	}
	return nil
}

// fit returns an error if a token must not be sent to an address: without TLS it is sent to this
// machine only.
func fit(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%q is no URL of a coordinator, such as https://HOST:PORT", address)
	}
	switch u.Scheme {
	case "https":
		return nil
	case "http":
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsLoopback() || u.Hostname() == "localhost" {
			return nil
		}
		return fmt.Errorf("%s: a token is sent without TLS to this machine only: use https://", address)
	}
	return fmt.Errorf("%s: a coordinator's URL begins with https://", address)
}

// Close closes idle connections.
func (c *Client) Close() { c.ask.Close() }

func get[Out any](ctx context.Context, c *Client, path string, query url.Values) (Out, error) {
	var out Out
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	err := c.ask.Ask(ctx, path, nil, &out)
	return out, err
}

func post[Out any](ctx context.Context, c *Client, path string, in any) (Out, error) {
	var out Out
	err := c.ask.Ask(ctx, path, in, &out)
	return out, err
}

// Sites returns all sites by name. GET /api/v1/sites
func (c *Client) Sites(ctx context.Context) ([]catalog.Site, error) {
	return get[[]catalog.Site](ctx, c, "/api/v1/sites", nil)
}

// AddSite adds a site of kind http, or changes it. POST /api/v1/sites
func (c *Client) AddSite(ctx context.Context, s transfer.NewSite) (catalog.Site, error) {
	return post[catalog.Site](ctx, c, "/api/v1/sites", s)
}

// RemoveSite removes a site and its replicas from the catalog; no file is removed at the site. POST
// /api/v1/sites/NAME/remove
func (c *Client) RemoveSite(ctx context.Context, name string) error {
	_, err := post[struct{}](ctx, c, "/api/v1/sites/"+url.PathEscape(name)+"/remove", struct{}{})
	return err
}

// Datasets returns up to n datasets (0: 1000) with a name after the given name, sorted by name. GET
// /api/v1/datasets?after=&n=
func (c *Client) Datasets(ctx context.Context, after string, n int) ([]catalog.Dataset, error) {
	return get[[]catalog.Dataset](ctx, c, "/api/v1/datasets", page(after, n))
}

// Dataset returns one dataset. GET /api/v1/dataset?name=
func (c *Client) Dataset(ctx context.Context, name string) (catalog.Dataset, error) {
	return get[catalog.Dataset](ctx, c, "/api/v1/dataset", url.Values{"name": {name}})
}

// Files returns up to n files (0: 1000) of a dataset with their replicas, sorted by name. The names
// come after the given name. GET /api/v1/dataset/files?name=&after=&n=
func (c *Client) Files(ctx context.Context, dataset, after string, n int) ([]transfer.FileReplicas, error) {
	q := page(after, n)
	q.Set("name", dataset)
	return get[[]transfer.FileReplicas](ctx, c, "/api/v1/dataset/files", q)
}

// AddFiles adds files to a dataset, which is created if it is new. The same files may be added
// again. POST /api/v1/dataset/files
func (c *Client) AddFiles(ctx context.Context, f transfer.NewFiles) (catalog.Dataset, error) {
	return post[catalog.Dataset](ctx, c, "/api/v1/dataset/files", f)
}

// RemoveDataset removes a dataset from the catalog; no file is removed at any site. POST
// /api/v1/dataset/remove
func (c *Client) RemoveDataset(ctx context.Context, name string) error {
	_, err := post[struct{}](ctx, c, "/api/v1/dataset/remove", catalog.Dataset{Name: name})
	return err
}

// Scan starts a scan by the agent of a site, which looks for files. POST /api/v1/scans
func (c *Client) Scan(ctx context.Context, s transfer.NewScan) (transfer.ScanState, error) {
	return post[transfer.ScanState](ctx, c, "/api/v1/scans", s)
}

// ScanState returns the progress of a scan. GET /api/v1/scans/ID
func (c *Client) ScanState(ctx context.Context, id int64) (transfer.ScanState, error) {
	return get[transfer.ScanState](ctx, c, "/api/v1/scans/"+strconv.FormatInt(id, 10), nil)
}

// Links returns the scheduler's state of the links between sites. GET /api/v1/links
func (c *Client) Links(ctx context.Context) ([]transfer.Link, error) {
	return get[[]transfer.Link](ctx, c, "/api/v1/links", nil)
}

// LimitChanges returns the latest changes of the limits of links after an id, the oldest first.
// With a source or a dest, it returns only changes of links from that source or to that
// destination; "" selects all links. GET /api/v1/links/changes?source=&dest=&after=&n=
func (c *Client) LimitChanges(ctx context.Context, source, dest string, after int64) ([]transfer.LimitChange, error) {
	q := page(strconv.FormatInt(after, 10), 0)
	q.Set("source", source)
	q.Set("dest", dest)
	return get[[]transfer.LimitChange](ctx, c, "/api/v1/links/changes", q)
}

// Tries returns up to n past attempts (0: 1000) after the given number, the oldest first. next is
// the number for the next call; 0: there are no more attempts. GET /api/v1/history?after=&n=
func (c *Client) Tries(ctx context.Context, after int64, n int) (tries []transfer.PastAttempt, next int64, err error) {
	a, err := get[transfer.History](ctx, c, "/api/v1/history", page(strconv.FormatInt(after, 10), n))
	return a.Tries, a.Next, err
}

// Samples returns up to n samples (0: 1000) of a site's host after a time, the
// oldest first. GET /api/v1/samples?site=&after=&n=
func (c *Client) Samples(ctx context.Context, site string, after time.Time, n int) ([]transfer.Sample, error) {
	q := page(strconv.FormatInt(after.UnixNano(), 10), n)
	q.Set("site", site)
	return get[[]transfer.Sample](ctx, c, "/api/v1/samples", q)
}

// Token has the coordinator issue a token. POST /api/v1/tokens
func (c *Client) Token(ctx context.Context, t transfer.NewToken) (string, error) {
	raw, _, err := c.NamedToken(ctx, t)
	return raw, err
}

// NamedToken does the same as Token, and also returns the id with which the token can be revoked.
func (c *Client) NamedToken(ctx context.Context, t transfer.NewToken) (raw, id string, err error) {
	a, err := post[transfer.IssuedToken](ctx, c, "/api/v1/tokens", t)
	return a.Token, a.ID, err
}

// Tokens returns the tokens that were issued and are valid or ended recently, the newest first. GET
// /api/v1/tokens
func (c *Client) Tokens(ctx context.Context) ([]transfer.Token, error) {
	return get[[]transfer.Token](ctx, c, "/api/v1/tokens", nil)
}

// RevokeToken revokes a token. Revoking it again is no error. POST /api/v1/tokens/ID/revoke
func (c *Client) RevokeToken(ctx context.Context, id string) (transfer.Token, error) {
	return post[transfer.Token](ctx, c, "/api/v1/tokens/"+url.PathEscape(id)+"/revoke", struct{}{})
}

// PageCode has the coordinator create a code with which a browser can sign in once, with the rights
// of this client's token. The page is at the coordinator's URL followed by #code=CODE. POST
// /session/code
func (c *Client) PageCode(ctx context.Context) (string, error) {
	type answer struct {
		Code string `json:"code"`
	}
	a, err := post[answer](ctx, c, "/session/code", struct{}{})
	return a.Code, err
}

func page(after string, n int) url.Values {
	q := url.Values{}
	if after != "" {
		q.Set("after", after)
	}
	if n > 0 {
		q.Set("n", strconv.Itoa(n))
	}
	return q
}

// Notifications returns notifications, the latest first. GET /api/v1/notifications
func (c *Client) Notifications(ctx context.Context) ([]transfer.Notification, error) {
	return get[[]transfer.Notification](ctx, c, "/api/v1/notifications", nil)
}

// TestNotify sends a test to a target of notifications, or to all targets if it is "", and returns
// the results. POST /api/v1/notifications/test
func (c *Client) TestNotify(ctx context.Context, target string) ([]transfer.NotifyResult, error) {
	return post[[]transfer.NotifyResult](ctx, c, "/api/v1/notifications/test", transfer.NotifyTest{Target: target})
}

// Advise adds advice for the user to an error of the coordinator at url.
func Advise(url string, err error) error {
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, trust.ErrPin):
		return fmt.Errorf("coordinator %s: %w", url, err)
	case wire.Status(err) == http.StatusUnauthorized:
		return fmt.Errorf("the coordinator at %s refuses this token: %w (name another one with --token-file; "+
			"its administrator makes one with `weir coordinator token`)", url, err)
	case wire.Status(err) == http.StatusServiceUnavailable:
		return fmt.Errorf("the coordinator at %s is busy: %w: try again in a moment", url, err)
	case Unreachable(err):
		return fmt.Errorf("the coordinator at %s does not answer: %w (start it with `weir coordinator`, or name another one with --coordinator)",
			url, err)
	}
	return err
}
