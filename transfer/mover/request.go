package mover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"weir/internal/tpc"
	"weir/transfer"
)

// maxHops is the maximum number of redirects followed for one request.
const maxHops = 5

// A question is one request. Its header values are checked when it is sent.
type question struct {
	method string
	url    *url.URL
	token  string        // a bearer token; a secret
	pin    string        // of the host of url
	others []string      // servers that may also receive the token if a redirect leads to them
	header []string      // names and values alternately
	body   *os.File      // nil if there is no body
	off    int64         // offset in body of the first byte sent
	size   int64         // number of bytes sent
	sent   func(n int64) // called with the numbers of body bytes as they are sent
	wait   time.Duration // for the head of the response; 0 is the stall time of the pool
	alone  bool          // on a connection of its own

	unexpected bool // the server refused Expect
}

// An answer is the response to a question. Its method close returns the connection to the pool.
type answer struct {
	*http.Response
	conn *conn
	pool *pool
	from *url.URL // after redirects
	left int64    // bytes of the body not taken yet; -1 if unknown
	raw  bool     // the body is read from the connection, bypassing Body
	stop func() bool
	done bool
}

// ask sends q and follows redirects. The token is sent to the scheme, host and port that it was
// issued for and to the servers named with it, such as the data servers of a cluster. Once it was
// sent over TLS, it is never sent without.
func (p *pool) ask(ctx context.Context, q question) (*answer, error) {
	home := tpc.Target{URL: q.url.String(), Token: q.token, Servers: q.others}
	for range maxHops {
		a, err := p.once(ctx, q)
		if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
			err = failf(transfer.Transient, "%s did not answer within %s", q.url.Host, max(q.wait, p.stall))
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", q.method, shown(q.url), err)
		}
		to, err := a.redirect()
		if err != nil || to == nil {
			return a, err
		}
		a.close()
		if to.Host != q.url.Host {
			q.pin = ""
		}
		q.token = home.TokenAt(to)
		q.url = to
	}
	return nil, failf(transfer.Permanent, "%s %s: redirected more than %d times", q.method, shown(q.url), maxHops)
}

// isXRootD reports whether a response came from an XRootD server.
func isXRootD(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Server")), "xrootd")
}

// shown formats a URL without the parts that may be secret: user and query.
func shown(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// redirect returns the target of a redirect, or nil if the response is not a redirect.
func (a *answer) redirect() (*url.URL, error) {
	switch a.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	to, err := a.from.Parse(a.Header.Get("Location"))
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		a.close()
		return nil, failf(transfer.Transient, "%s redirects to what is no URL", shown(a.from))
	}
	return to, nil
}

// once sends q, and if necessary sends it again: a kept connection may have been closed by the
// other side just when it was taken.
func (p *pool) once(ctx context.Context, q question) (*answer, error) {
	to := placeOf(q)
	for {
		c, kept, err := p.get(ctx, to, q.alone)
		if err != nil {
			return nil, err
		}
		a, heard, err := p.talk(ctx, c, q)
		if err == nil && q.asks() && a.StatusCode == http.StatusExpectationFailed {
			a.close()
			q.unexpected = true
			continue
		}
		if err == nil {
			a.Close = a.Close || q.alone
			return a, nil
		}
		_ = c.Close() // it has failed already
		if !kept || heard || ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, err
		}
	}
}

func placeOf(q question) place {
	host := q.url.Host
	if q.url.Port() == "" {
		port := "80"
		if q.url.Scheme == "https" {
			port = "443"
		}
		host = net.JoinHostPort(q.url.Hostname(), port)
	}
	return place{scheme: q.url.Scheme, host: host, pin: q.pin}
}

// talk sends q on c and reads the head of the response. heard is true if the other side has sent
// anything.
func (p *pool) talk(ctx context.Context, c *conn, q question) (a *answer, heard bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // wakes pending reads and writes
	defer func() {
		if err != nil {
			stop()
		}
	}()
	if err := c.SetDeadline(time.Now().Add(p.stall)); err != nil {
		return nil, false, err
	}
	if ctx.Err() != nil { // the deadline set by it may just have been overwritten
		return nil, false, context.Cause(ctx)
	}
	head, err := q.head()
	if err != nil {
		return nil, true, err
	}
	if _, err := c.Write(head); err != nil {
		return nil, false, err
	}
	resp, heard, err := p.body(ctx, c, q) //nolint:bodyclose // answer.close ends it
	if err != nil {
		return nil, heard, err
	}
	return &answer{Response: resp, conn: c, pool: p, from: q.url, left: bodyLength(q.method, resp), stop: stop}, true, nil
}

// body sends the body of q, if it has one and the server accepts it, and reads the head of the
// response.
func (p *pool) body(ctx context.Context, c *conn, q question) (resp *http.Response, heard bool, err error) {
	var sendErr error
	if q.asks() {
		if resp, err = c.invited(q.method); err != nil || resp != nil {
			if resp != nil {
				resp.Close = true // it may still expect the body
			}
			return resp, resp != nil, err
		}
	}
	wait := max(q.wait, p.stall)
	if q.body != nil {
		if sendErr = p.send(c, q); sendErr != nil {
			if !broken(sendErr) || ctx.Err() != nil {
				return nil, true, sendErr
			}
			wait = shrug // it may have sent the reason for refusing the body
		}
	}
	if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return nil, false, err
	}
	if ctx.Err() != nil { // the deadline set by it was just overwritten
		return nil, false, context.Cause(ctx)
	}
	resp, heard, err = c.answer(q.method, false)
	if err != nil {
		return nil, heard || q.body != nil, errors.Join(sendErr, err)
	}
	resp.Close = resp.Close || sendErr != nil
	return resp, true, nil
}

// asks returns true if q is sent with the header "Expect: 100-continue", so that the server can
// refuse its body.
func (q *question) asks() bool { return q.body != nil && q.size >= askFirst && !q.unexpected }

// bodyLength returns the number of bytes that follow the head of a response, -1 if unknown.
func bodyLength(method string, r *http.Response) int64 {
	if method == http.MethodHead || r.StatusCode == http.StatusNoContent || r.StatusCode == http.StatusNotModified {
		return 0
	}
	return r.ContentLength
}

// head returns the head of q. A value that contains a line break, such as a forged token, is
// refused.
func (q *question) head() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: weir\r\n", q.method, q.url.RequestURI(), q.url.Host)
	header := q.header
	if q.token != "" {
		header = append(header[:len(header):len(header)], "Authorization", "Bearer "+q.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if strings.ContainsAny(header[i+1], "\r\n\x00") {
			return nil, failf(transfer.Permanent, "the header %s would have a line's end in it", header[i])
		}
		b.WriteString(header[i] + ": " + header[i+1] + "\r\n")
	}
	if q.body != nil {
		b.WriteString("Content-Length: " + strconv.FormatInt(q.size, 10) + "\r\n")
	}
	if q.asks() {
		b.WriteString("Expect: 100-continue\r\n")
	}
	b.WriteString("\r\n")
	return b.Bytes(), nil
}

// answer reads the head of a response. It skips interim responses (1xx) unless interim is set.
func (c *conn) answer(method string, interim bool) (resp *http.Response, heard bool, err error) {
	c.limit.N = headMax
	defer func() { c.limit.N = math.MaxInt64 }()
	for range maxHops {
		if _, err := c.in.Peek(1); err != nil {
			return nil, heard, err
		}
		heard = true
		resp, err = http.ReadResponse(c.in, &http.Request{Method: method})
		if err != nil {
			if c.limit.N <= 0 {
				err = failf(transfer.Permanent, "the head of the answer has more than %d bytes", headMax)
			}
			return nil, true, err
		}
		if interim || resp.StatusCode >= 200 {
			return resp, true, nil
		}
	}
	return nil, true, errors.New("only interim answers")
}

// close ends the response. The connection is kept if the response was read to its end.
func (a *answer) close() {
	if a.done {
		return
	}
	a.done = true
	if !a.raw && (a.left > 0 && a.left <= headMax || a.left < 0) { // an error's text, or the end of a chunked body
		_, _ = io.CopyN(io.Discard, a.Body, headMax)
		n, err := a.Body.Read(make([]byte, 1))
		if n == 0 && errors.Is(err, io.EOF) {
			a.left = 0
		}
	}
	free := a.stop()
	if a.left != 0 || a.Close || !free {
		_ = a.conn.Close() // the remaining data are not needed
		return
	}
	gather(a.conn, 0, mostGulp)
	a.pool.put(a.conn)
}

// text returns the beginning of an error's body as one line.
func (a *answer) text() string {
	if a.left == 0 {
		return ""
	}
	p, _ := io.ReadAll(io.LimitReader(a.Body, 200))
	if a.left > 0 {
		a.left -= int64(len(p))
	}
	return tpc.FirstLine(string(p))
}
