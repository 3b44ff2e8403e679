package tpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"weir/internal/pause"
)

// An Order is one copy that an endpoint is to make.
type Order struct {
	Active  Target // the file at the endpoint that moves the bytes
	Passive Target // the file at the other endpoint; its Token and Pin are sent to the active endpoint, but only weir supports a Pin
	Push    bool   // the active endpoint has the file; else it gets it

	// an existing file is replaced. Some endpoints, such as XRootD, replace it anyway after MOVE,
	// but never after COPY
	Overwrite bool
	Verify    bool          // the endpoint is to compare checksums, and to fail if it cannot; XRootD does not support this
	Streams   int           // connections for the bytes; 0 leaves it to the endpoint
	Stall     time.Duration // longest time, from the request on, in which no byte moves; 0 is 5 min
	Size      int64         // of the file, in bytes, for root: a server may show the file when it is complete; 0: unknown
}

// StallTime is a suitable Stall for most transfers: XRootD gives up after 2 min itself.
const StallTime = 5 * time.Minute

// Stall returns the error of a copy of which no byte has moved for a time.
func Stall(idle time.Duration) error {
	return &Error{Kind: Stalled, Begun: true, Text: fmt.Sprintf("no byte has moved for %v", idle.Round(time.Second))}
}

// errStalled is the cause of a cancelled copy without progress.
var errStalled = errors.New("no byte moved for too long")

// Drive has an endpoint make a copy, and waits for its result. tell, which may be nil, is called
// with the bytes moved so far, by one goroutine at a time. When ctx ends the connection is closed,
// which makes the endpoint give up. The error is an *Error, or wraps ctx's error; nil means that
// the endpoint reports success: a caller that needs certainty reads the file back with Stat.
func (c *Client) Drive(ctx context.Context, o Order, tell func(moved int64)) error {
	if o.Stall <= 0 {
		o.Stall = StallTime
	}
	if tell == nil {
		tell = func(int64) {}
	}
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	watch := time.AfterFunc(o.Stall, func() { give(errStalled) })
	defer watch.Stop()
	last := int64(0)
	err := c.copy(ctx, o, func(moved int64) {
		if moved != last { // a marker with the same number is no progress
			last = moved
			watch.Reset(o.Stall)
		}
		tell(moved)
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errStalled):
		return &Error{Kind: Stalled, Begun: true, Err: errStalled, Text: fmt.Sprintf("no byte moved for %v: the copy was broken off", o.Stall)}
	case ctx.Err() != nil:
		return fmt.Errorf("the copy was broken off: %w", context.Cause(ctx))
	}
	return err
}

func (c *Client) copy(ctx context.Context, o Order, tell func(int64)) error {
	res, err := c.begin(ctx, o)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNoContent { // a whole answer of RFC 4918: done
		return nil
	}
	if err := Follow(res.Body, tell); err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, res.Body, 1<<10) // the end of the body, so that the connection can be used again
	return nil
}

// unknown is the message with which XRootD's redirectors refuse to have a file pulled that is not
// in their cache yet (400, since version 6 with 403): by then they have queried their data servers,
// so that the next try succeeds.
const unknown = "Failed to open local resource"

// NotFoundYet reports whether the refusal of a COPY means that the same request succeeds once the
// redirector has found the file, within about half a second. text is the body of the response.
func NotFoundYet(status int, text string) bool {
	return strings.Contains(text, unknown) && (status == http.StatusBadRequest || status == http.StatusForbidden)
}

// begin sends the COPY. It returns an answer of 2xx, whose body the caller closes.
func (c *Client) begin(ctx context.Context, o Order) (*http.Response, error) {
	for try := 1; ; try++ {
		res, err := c.Do(ctx, Request{Method: "COPY", Target: o.Active, Header: o.headers()})
		if err != nil {
			return nil, err
		}
		if res.StatusCode >= 200 && res.StatusCode <= 299 {
			return res, nil
		}
		e, text := answered("COPY", res)
		end(res)
		if NotFoundYet(e.Status, text) {
			if try == 3 || !pause.For(ctx, firstAsk) {
				return nil, e
			}
			continue
		}
		return nil, refusal(e, text, o.Push)
	}
}

// Refused returns the error of a response to COPY with a status other than 2xx. text is the body of
// the response, and push the direction of the copy.
func Refused(status int, text string, push bool) error {
	text = FirstLine(text)
	e := &Error{Kind: kindOfStatus(status), Status: status, Text: fmt.Sprintf("COPY: status %d %s", status, http.StatusText(status))}
	if text != "" {
		e.Text += ": " + text
	}
	return refusal(e, text, push)
}

// refusal adjusts the error of a refused COPY to the meaning that the servers give to the status.
func refusal(e *Error, text string, push bool) error {
	done, verdict := judge(text)
	switch {
	case done && verdict != nil: // XRootD from 5.8 on, before anything was begun
		if reported, ok := errors.AsType[*Error](verdict); ok {
			reported.Status, reported.Begun = e.Status, false
			if reported.Kind == Failed {
				reported.Kind = e.Kind
			}
		}
		return verdict
	case strings.Contains(text, "Remote side failed"): // XRootD before 5.8, of several streams
		reported := failure(text)
		reported.Status, reported.Begun = e.Status, false
		return reported
	case e.Status == http.StatusBadRequest && push && strings.Contains(text, "no such file"): // XRootD before 5.8
		e.Kind = Missing
	case e.Status == http.StatusNotFound && !push, e.Status == http.StatusBadGateway && push:
		e.Kind = Unsupported // RFC 4918 of a server that does not support Source (Apache), or does not copy to others
	case e.Status == http.StatusBadRequest:
		e.Kind = Unsupported // the response of XRootD without its plugin, which is the same for every attempt
	}
	return e
}

// headers returns the headers of a COPY. They keep their spelling: XRootD before 5.7 accepts no
// other.
func (o Order) headers() http.Header {
	h := http.Header{"Credential": {"none"}, "Overwrite": {"F"}}
	if o.Overwrite {
		h["Overwrite"] = []string{"T"}
	}
	if o.Push {
		h["Destination"] = []string{o.Passive.URL}
	} else {
		h["Source"] = []string{o.Passive.URL}
	}
	if o.Passive.Token != "" {
		h["TransferHeaderAuthorization"] = []string{"Bearer " + o.Passive.Token}
	}
	for name, values := range o.Passive.Header {
		h["TransferHeader"+name] = values
	}
	if o.Passive.Pin != "" {
		h[PinHeader] = []string{o.Passive.Pin}
	}
	if o.Verify {
		h["RequireChecksumVerification"] = []string{"true"}
	}
	if o.Streams > 0 {
		h["X-Number-Of-Streams"] = []string{strconv.Itoa(o.Streams)}
	}
	return h
}
