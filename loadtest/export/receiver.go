package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"weir/internal/pause"
	"weir/internal/redact"
	"weir/internal/say"
	"weir/storage"
)

// A Receiver is a service that receives the values of a run.
type Receiver struct {
	URL  *url.URL
	Auth storage.Auth // methods "none", "token", "basic" and "x509"; names of files, never secrets
	kind string       // remoteWrite or influxDB
}

const (
	remoteWrite = "Prometheus remote write"
	influxDB    = "InfluxDB"
)

// RemoteWrite returns a receiver of Prometheus remote write 1.0, such as http://host:9090/api/v1/write.
func RemoteWrite(address string, auth storage.Auth) (Receiver, error) {
	u, err := parse(address, "http://host:9090/api/v1/write")
	if err == nil && strings.Trim(u.Path, "/") == "" {
		err = fmt.Errorf("%s: add the path; Prometheus has /api/v1/write (and takes it when started with "+
			"--web.enable-remote-write-receiver)", redact.URL(u.String()))
	}
	return Receiver{URL: u, Auth: auth, kind: remoteWrite}, err
}

// Influx returns the write API of InfluxDB: http://host:8086/write?db=DATABASE of 1.x,
// http://host:8086/api/v2/write?org=ORG&bucket=BUCKET of 2.x.
func Influx(address string, auth storage.Auth) (Receiver, error) {
	u, err := parse(address, "http://host:8086/write?db=DATABASE")
	if err != nil {
		return Receiver{}, err
	}
	q := u.Query()
	switch {
	case strings.HasSuffix(u.Path, "/api/v2/write") && q.Get("bucket") != "":
	case strings.HasSuffix(u.Path, "/write") && q.Get("db") != "":
	default:
		return Receiver{}, fmt.Errorf("%s: use http://host:8086/write?db=DATABASE (InfluxDB 1.x) or "+
			"http://host:8086/api/v2/write?org=ORG&bucket=BUCKET (2.x)", redact.URL(u.String()))
	}
	if q.Has("u") || q.Has("p") {
		return Receiver{}, errors.New("leave user and password out of the address: give the password in a file")
	}
	q.Set("precision", "ns")
	u.RawQuery = q.Encode()
	return Receiver{URL: u, Auth: auth, kind: influxDB}, nil
}

// parse parses an http or https URL without user and password.
func parse(address, like string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("not an address such as %s", like) // err would print a password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%s: use an address such as %s", redact.URL(u.String()), like)
	}
	if u.User != nil {
		return nil, fmt.Errorf("%s: leave user and password out of the address: give the password in a file", redact.URL(u.String()))
	}
	return u, nil
}

// encoder returns a new encoder of the receiver's format.
func (t Receiver) encoder() encoder {
	if t.kind == influxDB {
		return newInflux(1 << 20) // InfluxDB advises 5,000 lines
	}
	return newRemote(5000)
}

// String returns the name of the receiver for messages.
func (t Receiver) String() string { return t.kind + " at " + redact.URL(t.URL.String()) }

// Flag returns the option of weir for such a receiver.
func (t Receiver) Flag() string {
	if t.kind == influxDB {
		return "--influx"
	}
	return "--remote-write"
}

// Check reads the credentials, so that errors in them are found early.
func (t Receiver) Check() error {
	c, err := newUploader(t)
	if err == nil {
		c.close()
	}
	return err
}

// Once reports whether the receiver rejects values that are older than its newest value.
func (t Receiver) Once() bool { return t.kind == remoteWrite }

// An uploader sends payloads to a receiver.
type uploader struct {
	receiver Receiver
	client   *http.Client
	backoff  time.Duration // after the first failure; doubles up to longestBackoff
}

// Time limits of an uploader.
const (
	requestTime    = 30 * time.Second
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 15 * time.Second
)

// errRefused is wrapped by errors about payloads that the receiver rejects permanently.
var errRefused = errors.New("refused")

func newUploader(t Receiver) (*uploader, error) {
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
	return &uploader{receiver: t, backoff: firstBackoff, client: &http.Client{
		Transport: transport,
		Timeout:   requestTime,
		// A redirected POST becomes a GET: the payload would be lost.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (c *uploader) close() { c.client.CloseIdleConnections() }

// upload sends p until it is accepted (nil), rejected (errRefused), or ctx ends. As remote write
// requires (https://prometheus.io/docs/specs/prw/remote_write_spec/), it retries after 5xx, 429 and
// broken connections, with growing pauses or after Retry-After, and never after another 4xx. It
// passes each error that it retries to trouble.
func (c *uploader) upload(ctx context.Context, p payload, trouble func(error)) error {
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

// once sends p. again is the pause that the receiver requests.
func (c *uploader) once(ctx context.Context, p payload) (again time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.receiver.URL.String(), bytes.NewReader(p.body))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errRefused, err)
	}
	// Tokens are renewed in their files during a run.
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
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 2<<10))      // only for the error message
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // allows the connection to be reused
	if resp.StatusCode/100 == 2 {
		return 0, nil
	}
	err = fmt.Errorf("it answered %s", brief(resp.Status))
	if said := brief(string(text)); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	if resp.StatusCode/100 == 5 || resp.StatusCode == http.StatusTooManyRequests {
		return pause.After(resp.Header.Get("Retry-After"), time.Now(), longestRetryAfter), err
	}
	return 0, fmt.Errorf("%w: %w", errRefused, err)
}

func (c *uploader) headers(req *http.Request, proof string) {
	req.Header.Set("User-Agent", "weir")
	if c.receiver.kind == influxDB {
		req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	} else {
		req.Header.Set("Content-Type", "application/x-protobuf")
		req.Header.Set("Content-Encoding", "snappy")
		req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0") // required by specification 1.0
	}
	if proof != "" {
		req.Header.Set("Authorization", proof)
	}
}

// authorization returns the Authorization header. InfluxDB has its own scheme for tokens.
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

// longestRetryAfter is the longest pause that a receiver may request.
const longestRetryAfter = 10 * time.Minute

// longestReason is the maximum length of a receiver's message in reports, in characters.
const longestReason = 400

// brief returns the start of a receiver's message, safe for terminals: some receivers send whole
// pages.
func brief(text string) string {
	runes := []rune(strings.TrimSpace(say.Plain(redact.Text(text))))
	if len(runes) > longestReason {
		return string(runes[:longestReason]) + " ..."
	}
	return string(runes)
}

// plainError removes the URL from an error, because the report names the receiver.
func plainError(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil || !strings.HasPrefix(err.Error(), "Post ") {
			return redact.Error(err)
		}
		err = inner
	}
}
