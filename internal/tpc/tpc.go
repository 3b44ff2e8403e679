// Package tpc speaks HTTP third-party copy: a client has one storage endpoint
// copy a file from or to another one, and the bytes never pass the client.
//
// The client sends COPY to the active endpoint: with the header Source that
// endpoint pulls with GET, with Destination it pushes with PUT. It answers at
// once that it has begun, then writes performance markers and, as its last line,
// "success: ..." or "failure: ..."; an answer that ends without such a line has
// failed. Headers of the client that begin with TransferHeader go to the passive
// endpoint. See the WLCG pages HttpTpcTechnical and HttpTpc, and the behavior of
// XRootD (src/XrdHttpTpc), dCache (CopyFilter, RemoteTransferHandler) and StoRM.
//
// Drive is the client; Client has what else one asks of endpoints; Reporter is
// for the server's side, and Guard keeps whoever may say "copy from there" from
// reaching what only this machine can reach.
package tpc

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"weir/internal/pause"
)

// A Kind says what a failure means for who has to go on.
type Kind string

// The kinds of failures.
const (
	Unreachable Kind = "unreachable" // no connection, or TLS does not agree; nothing happened
	Denied      Kind = "denied"      // 401, 403, or an address that the Guard refuses
	Missing     Kind = "missing"     // 404, 410
	Exists      Kind = "exists"      // 412, or 409 where something is in the way
	Full        Kind = "full"        // 507, 413: no space
	Busy        Kind = "busy"        // 429, 503: After says when to come again
	Unsupported Kind = "unsupported" // 405, 501, or an endpoint that cannot copy
	Mismatch    Kind = "checksum"    // the bytes are not what they should be
	Stalled     Kind = "stalled"     // no byte moved for too long
	Broken      Kind = "broken"      // the connection or the answer ended too early, or makes no sense
	Failed      Kind = "failed"      // the endpoint says so, for another reason
)

// An Error is what an endpoint, or the way to it, answers in the place of what was
// asked for.
type Error struct {
	Kind   Kind
	Status int           // of HTTP, 0 if there was none
	Remote int           // status that the active endpoint had from the passive one, if it tells: then Kind is about that one
	Begun  bool          // something may have happened: the destination may have the file, or some of it
	After  time.Duration // Busy: when to retry, 0 if unknown
	Text   string        // for people: one line, no secret of ours
	Err    error         // what is below, may be nil
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Unwrap returns what is below.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns that of the Error in err, "" if there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// UnknownHost reports whether the name of an endpoint does not exist, according to DNS.
func UnknownHost(err error) bool {
	var name *net.DNSError
	return errors.As(err, &name) && name.IsNotFound && !name.IsTemporary
}

func kindOfStatus(code int) Kind {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return Denied
	case http.StatusNotFound, http.StatusGone:
		return Missing
	case http.StatusPreconditionFailed:
		return Exists
	case http.StatusInsufficientStorage, http.StatusRequestEntityTooLarge:
		return Full
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return Busy
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return Unsupported
	}
	return Failed
}

// Answered makes the error of an answer that is none, of which it reads a little. what
// was asked.
func Answered(what string, res *http.Response) *Error {
	e, _ := answered(what, res)
	return e
}

// answered is Answered, and the line that the answer's body begins with.
func answered(what string, res *http.Response) (e *Error, text string) {
	text = FirstLine(readSome(res.Body))
	e = &Error{Kind: kindOfStatus(res.StatusCode), Status: res.StatusCode}
	e.Text = fmt.Sprintf("%s: %s answers %d %s", what, res.Request.URL.Host, res.StatusCode, http.StatusText(res.StatusCode))
	if text != "" && !strings.EqualFold(text, http.StatusText(res.StatusCode)) {
		e.Text += ": " + text
	}
	if e.Kind == Busy {
		e.After = pause.After(res.Header.Get("Retry-After"), time.Now(), 24*time.Hour)
	}
	return e, text
}
