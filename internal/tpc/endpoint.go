package tpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"weir/internal/content"
	"weir/internal/digest"
	"weir/internal/pause"
)

// Info is an endpoint's report on a file.
type Info struct {
	Size  int64  // -1 if it is not reported
	Adler string // 8 hex digits, or a checksum of another algorithm as digest.Short has it; "" if it was not requested or is unknown
	ETag  string
}

// Time limits for responses: for a small response, and for a response for which a file has to be
// read.
const (
	shortAnswer = 2 * time.Minute
	longAnswer  = time.Hour
)

// firstAsk is the wait before a checksum is requested again; it doubles.
const firstAsk = 500 * time.Millisecond

// Stat requests the properties of a file with HEAD.
func (c *Client) Stat(ctx context.Context, t Target) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, shortAnswer)
	defer cancel()
	res, err := c.Do(ctx, Request{Method: http.MethodHead, Target: t})
	if err != nil {
		return Info{}, err
	}
	end(res)
	return c.info(ctx, t, res)
}

// info reads the properties from a response to HEAD.
func (c *Client) info(ctx context.Context, t Target, res *http.Response) (info Info, err error) {
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusNoContent {
		return Info{}, Answered("HEAD", res)
	}
	info = Info{Size: res.ContentLength, ETag: res.Header.Get("Etag")}
	if info.Size < 0 { // Apache sends no length for an empty file
		info.Size, err = c.length(ctx, t)
	}
	return info, err
}

// A Wish is a request for a checksum.
type Wish struct {
	Size     int64         // of the file, as far as it is known
	Want     string        // the expected checksum, as Info.Adler; its algorithm is requested. "" means an unknown adler32
	Patience time.Duration // the time for repeated requests to an endpoint that has the file but sends no checksum
	Brief    time.Duration // the same for an endpoint that does not report a computation (202, as dCache does); 0 means Patience
}

// Checksum returns the result of Stat with the file's checksum. If an endpoint does not send it
// yet, as some do right after a copy, the request is repeated for up to the wish's patience: half
// of that for each consecutive time that the endpoint reported no checksum. On a connection with
// earlier requests XRootD before 5.5.4 may send another file's checksum, so an unexpected checksum
// is requested again on a connection of its own.
func (c *Client) Checksum(ctx context.Context, t Target, w Wish) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, longAnswer)
	defer cancel()
	info, err := c.checksum(ctx, t, w, w.Want == "")
	var e *Error
	// so does XRootD up to 6.2
	refused := errors.As(err, &e) && (e.Status == http.StatusBadRequest || e.Status == http.StatusInternalServerError)
	if w.Want != "" && (refused || err == nil && info.Adler != "" && info.Adler != w.Want) {
		info, err = c.checksum(ctx, t, w, true)
	}
	return info, err
}

func (c *Client) checksum(ctx context.Context, t Target, w Wish, alone bool) (Info, error) {
	ask := Request{Method: http.MethodHead, Target: t, Header: http.Header{}, alone: alone}
	kind, _ := digest.Split(w.Want)
	askDigest(ask.Header, kind)
	began := time.Now()
	at := server(t.URL) + " " + kind.Name
	until := began.Add(w.Patience >> c.silence(at))
	for wait := firstAsk; ; wait *= 2 {
		var res *http.Response
		leave, err := c.kinds.Enter(ctx, t.URL, kind.Name)
		if err != nil {
			return Info{}, fmt.Errorf("HEAD: %w", err)
		}
		err = c.sums.Ask(ctx, server(t.URL), w.Size, func(ctx context.Context) (err error) {
			if res, err = c.Do(ctx, ask); err == nil { //nolint:bodyclose // end does
				end(res)
			}
			return err
		})
		leave()
		if err != nil {
			return Info{}, err
		}
		sum := kind.Kept(kind.InHeader(res.Header))
		if sum == "" && res.StatusCode == http.StatusOK && res.ContentLength == 0 {
			sum = emptySum(kind) // XRootD does not report it
		}
		last := until
		if brief := began.Add(w.Brief >> c.silence(at)); w.Brief > 0 && res.StatusCode != http.StatusAccepted && brief.Before(last) {
			last = brief
		}
		if again := sum == "" && time.Now().Add(wait).Before(last); !again || res.StatusCode/100 != 2 { // 202: dCache is computing it
			info, err := c.info(ctx, t, res)
			if err == nil {
				c.heard(at, sum != "", began)
				info.Adler = sum
			}
			return info, err
		}
		if !pause.For(ctx, wait) {
			return Info{}, fmt.Errorf("HEAD: %w", context.Cause(ctx))
		}
	}
}

// emptySum returns the checksum of no bytes.
func emptySum(kind digest.Algorithm) string {
	h, err := content.NewHash(kind.Name)
	if err != nil {
		return ""
	}
	return digest.Short(content.Text(kind.Name, h))
}

// length requests a file's length with GET; -1 if the response has no length either.
func (c *Client) length(ctx context.Context, t Target) (int64, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // its bytes are not needed
	res, err := c.Do(ctx, Request{Method: http.MethodGet, Target: t})
	if err != nil {
		return -1, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return -1, Answered("GET", res)
	}
	return res.ContentLength, nil
}

// A silence counts the consecutive responses of an endpoint without a checksum of an algorithm, and
// has the time of the last of them.
type silence struct {
	times int
	last  time.Time
}

// mostSilence is enough for no patience to be left.
const mostSilence = 30

func (c *Client) silence(at string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silent[at].times
}

// heard notes whether an endpoint reported a checksum that was requested at began. Concurrent
// requests count once.
func (c *Client) heard(at string, reported bool, began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.silent[at]
	switch {
	case reported:
		delete(c.silent, at)
	case s.last.Before(began) && (s.times > 0 || len(c.silent) < mostWays):
		c.silent[at] = silence{min(s.times+1, mostSilence), time.Now()}
	}
}

// server returns the server of a URL, as HOST:PORT.
func server(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return at
	}
	return hostPort(u)
}

// maxDepth bounds the folders above a file that are made.
const maxDepth = 64

// Parents makes the folders above a file that are missing, from the lowest up and
// down again, so that a folder that is there costs one question.
func (c *Client) Parents(ctx context.Context, t Target) error {
	u, err := url.Parse(t.URL)
	if err != nil {
		return &Error{Kind: Unsupported, Text: "MKCOL: the URL cannot be read"}
	}
	return c.parents(ctx, t, *u, maxDepth)
}

func (c *Client) parents(ctx context.Context, t Target, u url.URL, depth int) error {
	dir := path.Dir(strings.TrimSuffix(u.Path, "/"))
	if dir == "/" || dir == "." || depth == 0 {
		return nil
	}
	u.Path, u.RawPath = dir+"/", ""
	for try := 0; ; try++ {
		err := c.mkcol(ctx, t, u.String())
		var e *Error
		if !errors.As(err, &e) || e.Status == 0 || try == mostFolders || ctx.Err() != nil {
			return err
		}
		switch {
		case e.Status == http.StatusConflict || e.Status == http.StatusNotFound:
			if err := c.parents(ctx, t, u, depth-1); err != nil {
				return err
			}
		case e.Status == http.StatusUnauthorized || !pause.For(ctx, 50*time.Millisecond<<try):
			return err
		}
	}
}

// mostFolders is the number of attempts to make a folder: another client may make the same folder
// at that moment, and then Apache responds with 403, rclone with 423 and other servers with another
// status.
const mostFolders = 3

// mkcol makes a folder, or finds that there is one.
func (c *Client) mkcol(ctx context.Context, t Target, at string) error {
	t.URL = at
	ctx, cancel := context.WithTimeout(ctx, shortAnswer)
	defer cancel()
	res, err := c.Do(ctx, Request{Method: "MKCOL", Target: t})
	if err != nil {
		return err
	}
	defer end(res)
	if res.StatusCode < 300 || res.StatusCode == http.StatusMethodNotAllowed { // 405: RFC 4918, something is there
		return nil
	}
	return Answered("MKCOL", res)
}

// Move gives a file another name at the same endpoint, which must be free (else Exists). It checks
// that before, since XRootD 5 ignores Overwrite and replaces an existing file: at such an endpoint
// a file that is created in between is lost.
func (c *Client) Move(ctx context.Context, t Target, to string) error {
	taken := t
	taken.URL = to
	switch _, err := c.Stat(ctx, taken); {
	case err == nil:
		return &Error{Kind: Exists, Text: "MOVE: a file of this name is there already"}
	case KindOf(err) != Missing && KindOf(err) != Denied: // who may not look may perhaps move
		return err
	}
	h := http.Header{"Destination": {to}, "Overwrite": {"F"}}
	return c.done(ctx, Request{Method: "MOVE", Target: t, Header: h})
}

// Replace works like Move to a name that another file may have, which is replaced. If the endpoint
// does not replace it in one step, it is removed first.
func (c *Client) Replace(ctx context.Context, t Target, to string) error {
	move := Request{Method: "MOVE", Target: t, Header: http.Header{"Destination": {to}, "Overwrite": {"T"}}}
	err := c.done(ctx, move)
	var e *Error
	if !errors.As(err, &e) || e.Status != http.StatusPreconditionFailed && e.Status != http.StatusConflict {
		return err
	}
	taken := t
	taken.URL = to
	if err := c.Remove(ctx, taken); err != nil {
		return err
	}
	return c.done(ctx, move)
}

// Remove deletes a file. Nothing there is no error.
func (c *Client) Remove(ctx context.Context, t Target) error {
	err := c.done(ctx, Request{Method: http.MethodDelete, Target: t})
	if KindOf(err) == Missing {
		return nil
	}
	return err
}

// done sends a request for a change.
func (c *Client) done(ctx context.Context, r Request) error {
	ctx, cancel := context.WithTimeout(ctx, shortAnswer)
	defer cancel()
	res, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	defer end(res)
	if res.StatusCode < 300 && res.StatusCode != http.StatusMultiStatus {
		return nil
	}
	return Answered(r.Method, res)
}

// Abilities are the features that an endpoint reports.
type Abilities struct {
	Copy   bool   // it supports COPY; only an attempt shows for which other endpoints
	Move   bool   // it supports MOVE
	Server string // its Server header
}

// Ask requests an endpoint's features with OPTIONS.
func (c *Client) Ask(ctx context.Context, t Target) (Abilities, error) {
	ctx, cancel := context.WithTimeout(ctx, shortAnswer)
	defer cancel()
	res, err := c.Do(ctx, Request{Method: http.MethodOptions, Target: t})
	if err != nil {
		return Abilities{}, err
	}
	defer end(res)
	if res.StatusCode >= 300 {
		return Abilities{}, Answered("OPTIONS", res)
	}
	a := Abilities{Server: FirstLine(res.Header.Get("Server"))}
	for _, line := range res.Header.Values("Allow") {
		for method := range strings.SplitSeq(line, ",") {
			switch strings.TrimSpace(method) {
			case "COPY":
				a.Copy = true
			case "MOVE":
				a.Move = true
			}
		}
	}
	return a, nil
}

// askDigest sets the headers that request a checksum: the header of RFC 3230, which all storage
// servers support, and the header of RFC 9530.
func askDigest(h http.Header, a digest.Algorithm) {
	h.Set("Want-Digest", a.RFC3230)
	h.Set("Want-Repr-Digest", a.RFC9530+"=5")
}
