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
	"os"
	"strings"
	"syscall"
	"time"

	"weir/transfer"
)

// ErrCancelled is the cause to end an attempt's context with (context.
// WithCancelCause) when its request was cancelled: the part is removed then.
// With any other cause what has arrived is kept for the next attempt.
var ErrCancelled = errors.New("the request was cancelled")

// errSuperseded is the cause that ends an attempt when one with a later epoch
// begins here.
var errSuperseded = errors.New("a later attempt at the same file has begun")

// A trouble is why an attempt ended without success.
type trouble struct {
	fault  transfer.Fault
	reason string // a sentence without a secret
	after  time.Duration
	err    error // may be nil
}

// Error implements error.
func (t *trouble) Error() string { return t.reason }

// Unwrap returns what the trouble comes from.
func (t *trouble) Unwrap() error { return t.err }

func failf(fault transfer.Fault, format string, args ...any) *trouble {
	err := fmt.Errorf(format, args...)
	return &trouble{fault: fault, reason: err.Error(), err: errors.Unwrap(err)}
}

// troubleOf says what err, with what was done when it came, means.
func troubleOf(ctx context.Context, err error) *trouble {
	if ctx.Err() != nil {
		return ended(context.Cause(ctx))
	}
	var t *trouble
	if errors.As(err, &t) {
		return t
	}
	return &trouble{fault: kindOf(err), reason: err.Error(), err: err}
}

// ended says what the end of an attempt's context means.
func ended(cause error) *trouble {
	switch {
	case errors.Is(cause, ErrCancelled):
		return &trouble{fault: transfer.Stopped, reason: ErrCancelled.Error()}
	case errors.Is(cause, errSuperseded):
		return &trouble{fault: transfer.LeaseLost, reason: errSuperseded.Error()}
	}
	return &trouble{fault: transfer.Transient, reason: "the agent was told to end", err: cause}
}

// worthKeeping tells whether another attempt can go on with what one has left.
func worthKeeping(f transfer.Fault) bool {
	switch f {
	case transfer.Checksum, transfer.Occupied, transfer.Permanent, transfer.Unverified, transfer.Stopped,
		transfer.DestFull: // parts of several files would keep the disk full, and each other from ending
		return false
	}
	return true
}

// local says what an error of this machine's files means. doing is a sentence's
// beginning, such as "write store/run1/f1".
func local(doing string, err error) error {
	if err == nil {
		return nil
	}
	var known *trouble
	if errors.As(err, &known) {
		return known
	}
	var perr *fs.PathError
	if errors.As(err, &perr) { // its path is that of this machine, or a temporary name
		err = perr.Err
	}
	var lerr *os.LinkError
	if errors.As(err, &lerr) {
		err = lerr.Err
	}
	return &trouble{fault: kindOf(err), reason: doing + ": " + err.Error(), err: err}
}

// kindOf sorts errors of the operating system. What is not known is tried again.
func kindOf(err error) transfer.Fault {
	var cert *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return transfer.Away
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return transfer.DestFull
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, errPin),
		errors.As(err, &cert), errors.As(err, &authority), errors.As(err, &name):
		return transfer.Denied
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EINVAL), outside(err):
		return transfer.Permanent
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return transfer.Occupied
	}
	return transfer.Transient
}

// outside tells whether an os.Root has refused a path that leads out of it; it
// has no sentinel for that.
func outside(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), "path escapes from parent")
}

// broken tells whether err is one of a connection, after which another
// connection may do better.
func broken(err error) bool {
	var t *trouble
	if errors.As(err, &t) || errors.Is(err, os.ErrDeadlineExceeded) {
		return false // somebody has said what it is; waiting once more would only keep the lease
	}
	var ne net.Error
	return errors.As(err, &ne) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
