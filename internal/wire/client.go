package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"weir/internal/pause"
	"weir/internal/trust"
)

// longestAnswer is the most bytes of an answer that are read.
const longestAnswer = 1 << 30

// A Client asks one server, which may be reached at several addresses. Its
// methods may be called by several goroutines at once.
type Client struct {
	urls  []string
	token string
	best  atomic.Int32 // place of the URL that answered last
	http  http.Client
}

// NewClient returns a client of the server whose certificate has the given pin,
// at the first of urls (https://HOST:PORT) that answers. A request that takes
// longer than timeout, its answer included, has failed. Close ends it.
func NewClient(urls []string, token, pin string, timeout time.Duration) *Client {
	return NewClientTLS(urls, token, Pinned(pin), timeout)
}

// NewClientTLS is NewClient with another way of knowing the server, and perhaps
// a certificate of the client's own. Without a token none is shown.
func NewClientTLS(urls []string, token string, secure *tls.Config, timeout time.Duration) *Client {
	dialer := &net.Dialer{Timeout: min(timeout, 10*time.Second), KeepAlive: 15 * time.Second}
	return &Client{urls: urls, token: token, http: http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: min(timeout, 10*time.Second),
			MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, TLSClientConfig: secure,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Pinned returns a configuration that knows a server by the pin of its
// certificate, whatever its name is and whoever signed it.
func Pinned(pin string) *tls.Config {
	conf := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "weir"}
	trust.Pin(conf, pin)
	return conf
}

// Close gives back connections that nobody uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ask sends in to path as JSON and fills out with the answer. in nil asks with
// GET. The error is an *Error if the server answered with one.
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
		if first == nil {
			first = err
		}
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
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	c.sign(req)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text := io.LimitReader(res.Body, longestAnswer)
	if res.StatusCode == http.StatusOK {
		if err := json.NewDecoder(text).Decode(out); err != nil {
			return fmt.Errorf("%s: the answer cannot be read: %w", url, err)
		}
		_, err := io.Copy(io.Discard, text) // so that the connection can be used again
		return err
	}
	return refusal(res)
}

func (c *Client) sign(r *http.Request) {
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
}

// refusal reads an answer that is none.
func refusal(res *http.Response) error {
	var f fault
	_ = json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&f) // without a text the status says it
	e := &Error{Status: res.StatusCode, Text: f.Error}
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
		e.After = time.Duration(min(s, 3600)) * time.Second
	}
	return e
}

// How long Insist waits before it asks again: at first, and doubling, at most.
const (
	firstWait   = 50 * time.Millisecond
	longestWait = 2 * time.Second
)

// Insist asks until there is an answer: while the server cannot be reached or is
// busy (429, or 500 and above), for up to limit. It gives up at once if a server
// has the wrong certificate.
func (c *Client) Insist(ctx context.Context, path string, in, out any, limit time.Duration) error {
	wait := firstWait
	begin := time.Now()
	for {
		err := c.Ask(ctx, path, in, out)
		status := Status(err)
		if err == nil || ctx.Err() != nil || errors.Is(err, trust.ErrPin) || status != 0 && status != http.StatusTooManyRequests && status < 500 {
			return err
		}
		if time.Since(begin) > limit {
			return fmt.Errorf("no answer for %v: %w", limit, err)
		}
		if !pause.For(ctx, wait/2+rand.N(wait)) { // not all at the same moment
			return err
		}
		wait = min(2*wait, longestWait)
	}
}

// silence is how long a stream may say nothing. Servers send beats.
const silence = time.Minute

// Stream asks with GET for an answer without an end, such as events. It asks one
// server only, that which answered last. Who gets the stream closes it; its end
// is an error if nothing was heard for a minute.
func (c *Client) Stream(ctx context.Context, path string) (io.ReadCloser, error) {
	ctx, stop := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.urls[int(c.best.Load())%len(c.urls)]+path, http.NoBody)
	if err != nil {
		stop(nil)
		return nil, err
	}
	c.sign(req)
	patient := c.http
	patient.Timeout = 0
	s := &stream{stop: stop, timer: time.AfterFunc(silence, func() { stop(errSilent) }), ctx: ctx}
	res, err := patient.Do(req) //nolint:bodyclose // the stream closes it
	if err != nil {
		s.timer.Stop()
		stop(nil)
		return nil, err
	}
	s.body = res.Body
	if res.StatusCode != http.StatusOK {
		defer s.Close()
		return nil, refusal(res)
	}
	return s, nil
}

// A stream is an answer that ends by itself when nothing is heard for long.
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
		s.timer.Reset(silence)
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
