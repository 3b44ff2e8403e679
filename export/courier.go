package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"weir/internal/pause"
	"weir/internal/redact"
	"weir/internal/say"
	"weir/storage"
)

// A courier brings payloads to a receiver.
type courier struct {
	receiver Receiver
	client   *http.Client
	backoff  time.Duration // after the first failure; doubles up to longestBackoff
}

// What a courier waits for.
const (
	requestTime    = 30 * time.Second
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 15 * time.Second
)

// errRefused tells that the receiver will never take a payload.
var errRefused = errors.New("refused")

func newCourier(t Receiver) (*courier, error) {
	cred, err := t.Auth.Read()
	if err != nil {
		return nil, err
	}
	if _, err := authorization(t, cred); err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = cred.TLS
	transport.MaxIdleConnsPerHost = 1
	return &courier{receiver: t, backoff: firstBackoff, client: &http.Client{
		Transport: transport,
		Timeout:   requestTime,
		// A redirected POST becomes a GET: nobody would get anything.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (c *courier) close() { c.client.CloseIdleConnections() }

// bring sends p until it was taken (nil) or refused (errRefused), or ctx ends.
// As remote write asks (https://prometheus.io/docs/specs/prw/remote_write_spec/),
// it tries again after 5xx and 429, as well as when there was no answer, with
// growing pauses or after what Retry-After says, and never after another 4xx.
// trouble is told of each failure that is tried again.
func (c *courier) bring(ctx context.Context, p payload, trouble func(error)) error {
	backoff := c.backoff
	for {
		again, err := c.once(ctx, p)
		if err == nil || errors.Is(err, errRefused) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		trouble(err)
		if !pause.For(ctx, max(backoff, again)) {
			return ctx.Err()
		}
		backoff = min(2*backoff, longestBackoff)
	}
}

// once sends p. again is what the receiver asks to wait.
func (c *courier) once(ctx context.Context, p payload) (again time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.receiver.URL.String(), bytes.NewReader(p.body))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errRefused, err)
	}
	// Tokens are renewed in their files while a run goes on.
	cred, err := c.receiver.Auth.Read()
	if err != nil {
		return 0, err
	}
	proof, err := authorization(c.receiver, cred)
	if err != nil {
		return 0, err
	}
	c.headers(req, proof)
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, plainError(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 2<<10))      // it only explains
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // so that the connection can be used again
	if resp.StatusCode/100 == 2 {
		return 0, nil
	}
	err = fmt.Errorf("it answered %s", brief(resp.Status))
	if said := brief(string(text)); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	if resp.StatusCode/100 == 5 || resp.StatusCode == http.StatusTooManyRequests {
		return pause.After(resp.Header.Get("Retry-After"), time.Now(), mostPause), err
	}
	return 0, fmt.Errorf("%w: %w", errRefused, err)
}

func (c *courier) headers(req *http.Request, proof string) {
	req.Header.Set("User-Agent", "weir")
	if c.receiver.kind == influxDB {
		req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	} else {
		req.Header.Set("Content-Type", "application/x-protobuf")
		req.Header.Set("Content-Encoding", "snappy")
		req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0") // as the specification 1.0 has it
	}
	if proof != "" {
		req.Header.Set("Authorization", proof)
	}
}

// authorization proves who we are. InfluxDB has a word of its own for tokens.
func authorization(t Receiver, cred storage.Credentials) (string, error) {
	method := cred.Method
	switch {
	case method == "token" || method == "" && cred.Token != "":
		if strings.ContainsFunc(cred.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return "", errors.New("the token has characters that no token has: white space, control or non-ASCII characters")
		}
		if t.kind == influxDB {
			return "Token " + cred.Token, nil
		}
		return "Bearer " + cred.Token, nil
	case method == "basic" || method == "" && cred.User != "":
		if strings.Contains(cred.User, ":") {
			return "", fmt.Errorf("user %q has a colon, which basic authentication cannot send", cred.User)
		}
		req := &http.Request{Header: http.Header{}}
		req.SetBasicAuth(cred.User, cred.Password)
		return req.Header.Get("Authorization"), nil
	case method == "", method == "none", method == "x509":
		return "", nil
	}
	return "", fmt.Errorf("auth method %q: use one of none, basic, token, x509", method)
}

// mostPause is how long a receiver may put us off.
const mostPause = 10 * time.Minute

// mostSaid is how much is told of what a receiver said, in characters.
const mostSaid = 400

// brief is text of a receiver as people can be shown it: some send whole pages.
func brief(text string) string {
	runes := []rune(strings.TrimSpace(say.Plain(redact.Text(text))))
	if len(runes) > mostSaid {
		return string(runes[:mostSaid]) + " ..."
	}
	return string(runes)
}

// plainError leaves out the address, which the report names already.
func plainError(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil || !strings.HasPrefix(err.Error(), "Post ") {
			return redact.Error(err)
		}
		err = inner
	}
}
