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

	"weir/internal/pause"
)

// Info is what an endpoint tells of a file.
type Info struct {
	Size  int64  // -1 if it does not tell
	Adler string // 8 hex digits; "" if it was not asked for or is not told
	ETag  string
}

// How long an answer may take: a small one, and one for which a file has to be read.
const (
	shortAnswer = 2 * time.Minute
	longAnswer  = time.Hour
)

// firstAsk is the wait before a checksum is asked for again; it doubles.
const firstAsk = 500 * time.Millisecond

// Stat asks about a file with HEAD. With adler it asks for the checksum, too; an
// endpoint that has the file but does not tell it yet, as some do right after a
// copy, is asked again for up to patience.
func (c *Client) Stat(ctx context.Context, t Target, adler bool, patience time.Duration) (Info, error) {
	h, limit := http.Header{}, shortAnswer
	if adler {
		AskAdler(h)
		limit = longAnswer
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	until := time.Now().Add(patience)
	for wait := firstAsk; ; wait *= 2 {
		res, err := c.Do(ctx, Request{Method: http.MethodHead, Target: t, Header: h})
		if err != nil {
			return Info{}, err
		}
		end(res)
		again := adler && time.Now().Add(wait).Before(until)
		switch {
		case res.StatusCode == http.StatusOK || res.StatusCode == http.StatusNoContent:
			info := Info{Size: res.ContentLength, ETag: res.Header.Get("Etag")}
			if adler {
				info.Adler = ToldAdler(res.Header)
			}
			if !adler || info.Adler != "" || !again {
				return info, nil
			}
		case res.StatusCode != http.StatusAccepted || !again: // 202: dCache, the checksum is being computed
			return Info{}, Answered("HEAD", res)
		}
		if !pause.For(ctx, wait) {
			return Info{}, fmt.Errorf("HEAD: %w", context.Cause(ctx))
		}
	}
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
	err := c.mkcol(ctx, t, u.String())
	var e *Error
	if errors.As(err, &e) && (e.Status == http.StatusConflict || e.Status == http.StatusNotFound) {
		if err := c.parents(ctx, t, u, depth-1); err != nil {
			return err
		}
		err = c.mkcol(ctx, t, u.String())
	}
	return err
}

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

// Move gives a file another name at the same endpoint, which must be free (else
// Exists). It looks before, since XRootD 5 does not know Overwrite and replaces what
// is there: at such an endpoint a file that comes in between is lost.
func (c *Client) Move(ctx context.Context, t Target, to string) error {
	taken := t
	taken.URL = to
	switch _, err := c.Stat(ctx, taken, false, 0); {
	case err == nil:
		return &Error{Kind: Exists, Text: "MOVE: a file of this name is there already"}
	case KindOf(err) != Missing && KindOf(err) != Denied: // who may not look may perhaps move
		return err
	}
	h := http.Header{"Destination": {to}, "Overwrite": {"F"}}
	return c.done(ctx, Request{Method: "MOVE", Target: t, Header: h})
}

// Remove deletes a file. Nothing there is no error.
func (c *Client) Remove(ctx context.Context, t Target) error {
	err := c.done(ctx, Request{Method: http.MethodDelete, Target: t})
	if KindOf(err) == Missing {
		return nil
	}
	return err
}

// done asks for a change.
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

// Abilities are what an endpoint says it can do.
type Abilities struct {
	Copy   bool   // it knows COPY; whether from and to others shows only when it is tried
	Move   bool   // it knows MOVE
	Server string // what it calls itself
}

// Ask asks an endpoint what it can do, with OPTIONS.
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
	a := Abilities{Server: firstLine(res.Header.Get("Server"))}
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
