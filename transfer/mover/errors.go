package mover

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"weir/internal/pause"
	"weir/internal/trust"
	"weir/transfer"
)

// ErrCancelled is the cause to end an attempt's context with (context.WithCancelCause) when its
// request was cancelled: the part is removed then. With any other cause the received data are kept
// for the next attempt.
var ErrCancelled = errors.New("the request was cancelled")

// errSuperseded is the cause that ends an attempt when an attempt with a later epoch begins here.
var errSuperseded = errors.New("a later attempt at the same file has begun")

// A trouble is the reason for which an attempt ended without success.
type trouble struct {
	fault  transfer.ErrorClass
	reason string // a sentence without a secret
	after  time.Duration
	status int   // of the other end's response; 0 if there was no response
	here   bool  // it concerns the files of this machine
	err    error // may be nil
}

// Error implements error.
func (t *trouble) Error() string { return t.reason }

// Unwrap returns the underlying error.
func (t *trouble) Unwrap() error { return t.err }

func failf(fault transfer.ErrorClass, format string, args ...any) *trouble {
	err := fmt.Errorf(format, args...)
	return &trouble{fault: fault, reason: err.Error(), err: errors.Unwrap(err)}
}

// troubleOf classifies err, or the cause with which ctx was ended.
func troubleOf(ctx context.Context, err error) *trouble {
	if ctx.Err() != nil {
		return ended(context.Cause(ctx))
	}
	if t, ok := errors.AsType[*trouble](err); ok {
		return t
	}
	return &trouble{fault: kindOf(err), reason: err.Error(), err: err}
}

// ended classifies the cause that ended an attempt's context.
func ended(cause error) *trouble {
	switch {
	case errors.Is(cause, ErrCancelled):
		return &trouble{fault: transfer.RequestCancelled, reason: ErrCancelled.Error()}
	case errors.Is(cause, errSuperseded):
		return &trouble{fault: transfer.LeaseLost, reason: errSuperseded.Error()}
	}
	return &trouble{fault: transfer.Transient, reason: "the agent was told to end", err: cause}
}

// worthKeeping reports whether another attempt can resume from the data left by this one's failure.
func worthKeeping(f transfer.ErrorClass) bool {
	switch f {
	case transfer.Checksum, transfer.Occupied, transfer.Permanent, transfer.Unverified, transfer.RequestCancelled,
		transfer.DestFull: // parts of several files would keep the disk full, and each other from ending
		return false
	}
	return true
}

// local classifies an error of this machine's files. doing is the beginning of a sentence, such as
// "write store/run1/f1".
func local(doing string, err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*trouble](err); ok {
		return known
	}
	var perr *fs.PathError
	if errors.As(err, &perr) { // its path is a path of this machine, or a temporary name
		err = perr.Err
	}
	if lerr, ok := errors.AsType[*os.LinkError](err); ok {
		err = lerr.Err
	}
	return &trouble{fault: kindOf(err), reason: doing + ": " + err.Error(), here: true, err: err}
}

// about returns the site of a lease that a trouble is about, "" if it is about no site.
func (t *trouble) about(l *transfer.Lease) string {
	own, other := l.Dest.Site, l.Source.Site
	if l.Mode == transfer.Push {
		own, other = other, own
	}
	switch t.fault {
	case transfer.Denied, transfer.Unreachable, transfer.Transient:
		if t.here {
			return own
		}
		return other
	}
	return ""
}

// kindOf classifies errors of the operating system. Unknown errors are transient.
func kindOf(err error) transfer.ErrorClass {
	var cert *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return transfer.Unreachable
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return transfer.DestFull
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, trust.ErrPin),
		errors.As(err, &cert), errors.As(err, &authority), errors.As(err, &name):
		return transfer.Denied
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EINVAL), outside(err):
		return transfer.Permanent
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return transfer.Occupied
	}
	return transfer.Transient
}

// outside reports whether an os.Root has refused a path that leads out of it; there is no sentinel
// error for that.
func outside(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), "path escapes from parent")
}

// broken reports whether err is an error of a connection, after which another connection may
// succeed.
func broken(err error) bool {
	var t *trouble
	if errors.As(err, &t) || errors.Is(err, os.ErrDeadlineExceeded) {
		return false // it is classified already, or a timeout: waiting once more would only keep the lease
	}
	var ne net.Error
	return errors.As(err, &ne) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// maxAfter bounds the Retry-After of a server.
const maxAfter = time.Hour

// refused classifies a response whose status is not a success. missing is the class of 404 and 410:
// at a source, the file is lost.
func (a *answer) refused(doing string, missing transfer.ErrorClass) *trouble {
	text := a.text()
	if text == http.StatusText(a.StatusCode) { // the message contains it already
		text = ""
	}
	if text != "" {
		text = ": " + text
	}
	t := failf(faultOf(a.StatusCode, missing), "%s: %s answers %d %s%s", doing, a.from.Host, a.StatusCode, http.StatusText(a.StatusCode), text)
	t.status = a.StatusCode
	if t.fault == transfer.Throttled {
		t.after = pause.After(a.Header.Get("Retry-After"), time.Now(), maxAfter)
		if t.after == 0 && a.StatusCode == http.StatusServiceUnavailable {
			t.fault = transfer.Transient
		}
	}
	return t
}

func faultOf(status int, missing transfer.ErrorClass) transfer.ErrorClass {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return transfer.Denied
	case http.StatusNotFound, http.StatusGone:
		return missing
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return transfer.Throttled
	case http.StatusInsufficientStorage:
		return transfer.DestFull
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusLocked, http.StatusConflict:
		return transfer.Transient
	}
	if status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented {
		return transfer.ModeUnsupported
	}
	if status >= 500 {
		return transfer.Transient
	}
	return transfer.Permanent
}
