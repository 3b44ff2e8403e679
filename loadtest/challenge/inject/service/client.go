// Package service has the parts that the injectors share: a client of a REST API, a record of the
// copies in flight, a journal for the time after a kill, rounds of requests, and the meaning of FTS's
// reasons of failures.
package service

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"weir/internal/pause"
	"weir/internal/redact"
	"weir/loadtest/challenge/inject"
	"weir/storage"
)

const (
	requestTime = time.Minute      // limit of a request
	busyTime    = 5 * time.Second  // pause after a refusal without Retry-After
	longestBusy = time.Minute      // longest pause that a service may request
	maxBody     = 256 << 20        // bytes of a response that are read
	leastSkew   = 2 * time.Second  // difference of clocks that is corrected: Date has seconds
	idleTime    = 90 * time.Second // of kept connections
	connections = 8                // kept connections
)

// A Client sends requests to the REST API of a service and measures its answers. It is safe for
// concurrent use. Close ends it.
type Client struct {
	base      string
	http      *http.Client
	authorize func(context.Context, *http.Request) error

	mu     sync.Mutex
	health inject.Health
	spent  time.Duration
	until  time.Time     // end of the pause that the service requested
	skew   time.Duration // of the service's clock against that of this machine when the client was made
	made   time.Time     // with the reading of the monotonic clock
	wall   time.Time     // the same without
}

// NewClient returns a client of the API at an http or https URL. authorize adds credentials to each
// request; the client certificate of cred is presented in TLS. It returns an error if a secret of
// cred would be sent to another machine without TLS.
func NewClient(base string, cred storage.Credentials, authorize func(context.Context, *http.Request) error) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("inject.url: %s is not the address of an API: use https://HOST:PORT or https://HOST:PORT/PATH", redact.URL(base))
	}
	if err := (&storage.Target{URL: u, Cred: cred}).InClear(); err != nil {
		return nil, fmt.Errorf("inject.url: %w", err)
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig: cred.TLS, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: connections, IdleConnTimeout: idleTime,
	}
	home, now := u.Host, time.Now()
	return &Client{base: strings.TrimSuffix(base, "/"), authorize: authorize, made: now, wall: now.Round(0), http: &http.Client{
		Transport: transport, Timeout: requestTime,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Host != home || len(via) > 3 { // credentials stay with the service
				return http.ErrUseLastResponse
			}
			return nil
		},
	}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// A Request is a request to a service.
type Request struct {
	Method string
	Path   string // below the URL of the API, with a leading slash and with its query
	Body   []byte // nil: no body
	Type   string // of the body; "": JSON
	Accept string // "": JSON
	Urgent bool   // sent although the service requested a pause: cancellations
}

// An Error is a request without a useful answer.
type Error struct {
	Request string // method and path, without the query
	Status  int    // of HTTP; 0: there was no answer
	Kind    string // name of the error, if the service reports it
	Message string // of the service, one line without secrets
	Err     error
}

// Error returns the request, the status and the message.
func (e *Error) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("%s: %v", e.Request, e.Err)
	}
	return fmt.Sprintf("%s: status %d: %s", e.Request, e.Status, cmp.Or(e.Message, http.StatusText(e.Status)))
}

// Unwrap returns the error with the meaning of the status.
func (e *Error) Unwrap() error { return e.Err }

// Definite reports whether the service has processed the request and refused it, so that repeating
// it is useless.
func (e *Error) Definite() bool {
	return e.Status >= 400 && e.Status < 500 && e.Status != http.StatusTooManyRequests && e.Status != http.StatusRequestTimeout
}

// AsError returns the *Error of err, or a new one.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Request: "request", Err: err}
}

// Do sends a request and returns the header and the body of its response. Unless the request is
// urgent, it first waits for the end of a pause that the service has requested. The error is an
// *Error.
func (c *Client) Do(ctx context.Context, r Request) (http.Header, []byte, error) {
	what := r.Method + " " + strings.SplitN(r.Path, "?", 2)[0]
	if len(what) > 120 {
		what = what[:120] + "..."
	}
	if !r.Urgent && !c.rest(ctx) {
		return nil, nil, &Error{Request: what, Err: ctx.Err()}
	}
	req, err := c.request(ctx, r)
	if err != nil { // a failure of the issuer of credentials is none of the service
		return nil, nil, &Error{Request: what, Err: err}
	}
	begun := time.Now()
	header, status, body, err := c.send(req)
	e := &Error{Request: what, Status: status, Err: err}
	if err == nil && status >= 300 {
		e.Kind, e.Message = message(body)
		if e.Err = storage.HTTPError(status); e.Err == nil {
			e.Err = errors.New("refused")
		}
	}
	c.account(ctx, begun, header, e)
	if e.Err != nil {
		return header, body, e
	}
	return header, body, nil
}

// rest waits for the end of a requested pause. It returns false if ctx ends first.
func (c *Client) rest(ctx context.Context) bool {
	c.mu.Lock()
	d := time.Until(c.until)
	c.mu.Unlock()
	return d <= 0 && ctx.Err() == nil || d > 0 && pause.For(ctx, d)
}

// Paused reports whether the service has requested a pause that has not ended, so that only urgent
// requests are sent.
func (c *Client) Paused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.until)
}

// request returns a request with credentials.
func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, c.base+r.Path, body)
	if err != nil {
		return nil, err
	}
	if r.Body != nil {
		req.Header.Set("Content-Type", cmp.Or(r.Type, "application/json"))
	}
	req.Header.Set("Accept", cmp.Or(r.Accept, "application/json"))
	req.Header.Set("User-Agent", "weir")
	return req, c.authorize(ctx, req)
}

func (c *Client) send(req *http.Request) (http.Header, int, []byte, error) {
	res, err := c.http.Do(req)
	if err != nil {
		return nil, 0, nil, redact.Error(err)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return nil, 0, nil, err
	}
	if len(text) > maxBody {
		return nil, 0, nil, fmt.Errorf("the response has more than %d bytes", maxBody)
	}
	return res.Header, res.StatusCode, text, nil
}

// account adds a request to the health of the service.
func (c *Client) account(ctx context.Context, begun time.Time, header http.Header, e *Error) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Err != nil && ctx.Err() != nil {
		return // the end of the challenge is no failure of the service
	}
	c.health.Requests++
	c.spent += now.Sub(begun)
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		middle := begun.Add(now.Sub(begun) / 2).Sub(c.made) // steps of the wall clock change nothing
		c.skew = date.Add(time.Second / 2).Sub(c.wall.Add(middle))
	}
	if e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable {
		wait := busyTime
		if text := header.Get("Retry-After"); text != "" {
			wait = pause.After(text, now, longestBusy)
		}
		c.until, c.health.Busy = now.Add(wait), true
	}
	if e.Err != nil && e.Status != http.StatusNotFound {
		c.health.Failed++
		c.health.Reason = Line(e.Error())
	}
}

// Health returns the state of the service since the last call.
func (c *Client) Health() inject.Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.health
	if h.Requests > 0 {
		h.Latency = c.spent / time.Duration(h.Requests)
	}
	h.Busy = h.Busy || time.Now().Before(c.until)
	c.health, c.spent = inject.Health{}, 0
	return h
}

// Local returns a time of the service's clock as a time of this process, with a reading of the
// monotonic clock as time.Now returns it, or the zero time for the zero time.
func (c *Client) Local(t time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.IsZero() {
		return t
	}
	since := t.Sub(c.wall)
	if c.skew.Abs() >= leastSkew {
		since -= c.skew
	}
	return c.made.Add(since)
}

// message returns the name of an error and its text from the body of a response: JSON of FTS or of
// Rucio, or plain text.
func message(body []byte) (kind, text string) {
	var in struct {
		Message   string `json:"message"`
		Class     string `json:"ExceptionClass"`
		Exception any    `json:"ExceptionMessage"`
	}
	if json.Unmarshal(body, &in) != nil {
		text = string(body)
	} else if text = in.Message; in.Class != "" {
		text = fmt.Sprintf("%s: %v", in.Class, in.Exception)
	}
	return in.Class, Line(text)
}

const maxLine = 500

// Line returns a text as one line of at most 500 bytes without secrets.
func Line(text string) string {
	text = strings.Join(strings.Fields(redact.Text(text)), " ")
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "") + "..."
	}
	return text
}
