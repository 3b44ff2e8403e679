package wire

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"weir/internal/pause"
	"weir/internal/trust"
)

const (
	maxResponse = 1 << 30     // bytes of a response that are read
	maxSilence  = time.Minute // longest time without data of a stream; servers send more often
	// The delays with which Insist repeats a request: the first delay, which doubles each time, and
	// the longest.
	firstWait   = 50 * time.Millisecond
	longestWait = 2 * time.Second
)

// A Client sends requests to one server, which may have several addresses. It is safe for concurrent use.
type Client struct {
	urls  []string
	token string
	best  atomic.Int32 // index of the URL that responded last
	http  http.Client
}

// NewClient returns a client of the server whose certificate has the given pin, at the first of
// urls (https://HOST:PORT) that responds. timeout limits a request, its response included. The
// caller closes the client.
func NewClient(urls []string, token, pin string, timeout time.Duration) *Client {
	return NewClientTLS(urls, token, Pinned(pin), timeout)
}

// NewClientTLS works like NewClient, with a TLS configuration instead of a pin. An empty token is
// not sent.
func NewClientTLS(urls []string, token string, secure *tls.Config, timeout time.Duration) *Client {
	connecting := min(timeout, 10*time.Second)
	return &Client{urls: urls, token: token, http: http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: connecting, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout: connecting, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, TLSClientConfig: secure,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Pinned returns a configuration that accepts the server whose certificate has the pin, with any
// name and issuer.
func Pinned(pin string) *tls.Config {
	conf := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "weir"}
	trust.Pin(conf, pin)
	return conf
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ask sends in to path as JSON and decodes the response into out. If in is nil it sends a GET
// request. The error is an *Error if the server responded with an error.
func (c *Client) Ask(ctx context.Context, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	var first error
	from := int(c.best.Load())
	for i := range c.urls {
		at := (from + i) % len(c.urls)
		err := c.ask(ctx, c.urls[at]+path, body, out)
		if err == nil || Status(err) != 0 {
			c.best.Store(int32(at))
			return err
		}
		first = cmp.Or(first, err)
		if ctx.Err() != nil {
			break
		}
	}
	return first
}

func (c *Client) ask(ctx context.Context, url string, body []byte, out any) error {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	res, err := c.send(ctx, &c.http, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text := io.LimitReader(res.Body, maxResponse)
	if err := json.NewDecoder(text).Decode(out); err != nil {
		return fmt.Errorf("%s: malformed response: %w", url, err)
	}
	_, err = io.Copy(io.Discard, text) // so that the connection can be used again
	return err
}

// send returns the response to a request if its status is 200.
func (c *Client) send(ctx context.Context, with *http.Client, method, url string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := with.Do(req)
	if err != nil || res.StatusCode == http.StatusOK {
		return res, err
	}
	defer res.Body.Close()
	var f ErrorBody
	_ = json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&f) // without a text the status describes the error
	return nil, &Error{Status: res.StatusCode, Code: f.Code, Text: f.Error,
		After: pause.After(res.Header.Get("Retry-After"), time.Now(), time.Hour)}
}

// Insist repeats Ask while the server cannot be reached or is overloaded (status 429, or 500 and above), up to
// limit. It gives up at once if a server has the wrong certificate.
func (c *Client) Insist(ctx context.Context, path string, in, out any, limit time.Duration) error {
	begin := time.Now()
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := c.Ask(ctx, path, in, out)
		status := Status(err)
		if err == nil || ctx.Err() != nil || errors.Is(err, trust.ErrPin) || status != 0 && status != http.StatusTooManyRequests && status < 500 {
			return err
		}
		if time.Since(begin) > limit {
			return fmt.Errorf("no answer for %v: %w", limit, err)
		}
		if !pause.For(ctx, wait/2+rand.N(wait)) { // clients must not send at the same moment
			return err
		}
	}
}

var errSilent = errors.New("the server sent nothing for a minute")

// Stream sends a GET request, to the first address that responds, beginning with the address of the
// last response. It returns the body of a response without an end, such as events. Reading fails if
// nothing is received for a minute. The caller closes the stream.
func (c *Client) Stream(ctx context.Context, path string) (io.ReadCloser, error) {
	ctx, stop := context.WithCancelCause(ctx)
	s := &stream{stop: stop, timer: time.AfterFunc(maxSilence, func() { stop(errSilent) }), ctx: ctx, body: http.NoBody}
	patient := c.http
	patient.Timeout = 0
	var first error
	from := int(c.best.Load())
	for i := range c.urls {
		at := (from + i) % len(c.urls)
		url := c.urls[at] + path
		res, err := c.send(ctx, &patient, http.MethodGet, url, http.NoBody) //nolint:bodyclose // the stream closes it
		if err == nil {
			c.best.Store(int32(at))
			s.body = res.Body
			return s, nil
		}
		first = cmp.Or(first, err)
		if Status(err) != 0 || ctx.Err() != nil {
			break
		}
	}
	_ = s.Close() // it has no body
	return nil, first
}

// A stream is a response body whose context ends after maxSilence.
type stream struct {
	ctx   context.Context
	stop  context.CancelCauseFunc
	timer *time.Timer
	body  io.ReadCloser
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if n > 0 {
		s.timer.Reset(maxSilence)
	}
	if cause := context.Cause(s.ctx); err != nil && cause != nil {
		err = cause
	}
	return n, err
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.timer.Stop()
	s.stop(nil)
	return s.body.Close()
}
