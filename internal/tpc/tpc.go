// Package tpc implements HTTP third-party copy: a client has one storage endpoint copy a file from
// or to another one, and the bytes never pass the client.
//
// The client sends COPY to the active endpoint: with the header Source that endpoint pulls with
// GET, with Destination it pushes with PUT. It responds at once that it has begun, then writes
// performance markers and, as its last line, "success: ..." or "failure: ..."; a response that ends
// without such a line is a failure. Headers of the client that begin with TransferHeader go to the
// passive endpoint. See the WLCG pages HttpTpcTechnical and HttpTpc, and the behavior of XRootD
// (src/XrdHttpTpc), dCache (CopyFilter, RemoteTransferHandler) and StoRM.
//
// Drive is the client side; Client has the other requests to endpoints; Reporter is the server
// side, and Guard prevents clients from using a server to reach services that only its machine can
// reach.
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

// A Kind classifies a failure by the reaction that it calls for.
type Kind string

// The kinds of failures.
const (
	Unreachable Kind = "unreachable" // no connection, or TLS does not agree; nothing happened
	Denied      Kind = "denied"      // 401, 403, or an address that the Guard refuses
	Missing     Kind = "missing"     // 404, 410
	Exists      Kind = "exists"      // 412, or 409 where something is in the way
	Full        Kind = "full"        // 507, 413: no space
	Busy        Kind = "busy"        // 429, 503: retry after After
	Unsupported Kind = "unsupported" // 405, 501, or an endpoint that cannot copy
	Mismatch    Kind = "checksum"    // the bytes differ from the expected bytes
	Stalled     Kind = "stalled"     // no byte moved for too long
	Broken      Kind = "broken"      // the connection or the answer ended too early, or makes no sense
	Failed      Kind = "failed"      // the endpoint reports another reason
)

// An Error is a response of an endpoint, or a failure on the way to it, instead of the requested
// result.
type Error struct {
	Kind   Kind
	Status int           // of HTTP, 0 without a response
	Remote int           // status that the passive endpoint returned to the active endpoint, if the latter reports it: then Kind refers to it
	Begun  bool          // status that the passive endpoint returned to the active endpoint, if it reports it: then Kind refers to it
	After  time.Duration // Busy: when to retry, 0 if unknown
	Text   string        // for people: one line without secrets
	Err    error         // cause, may be nil
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the Error in err, "" if err has no Error.
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

// Answered returns the error for an unsuccessful response, of which it reads a little. The error
// names the request.
func Answered(what string, res *http.Response) *Error {
	e, _ := answered(what, res)
	return e
}

// answered works like Answered, and also returns the first line of the response's body.
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
