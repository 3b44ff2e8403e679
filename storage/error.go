package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// Sentinels that the standard library does not have.
var (
	ErrBusy     = errors.New("service is busy")            // 429, 503, kXR_wait beyond its limit
	ErrServer   = errors.New("server error")               // the service failed: 5xx without a meaning of its own
	ErrChecksum = errors.New("checksum differs")           // payload differs from the expected payload
	ErrShort    = errors.New("fewer bytes than announced") // cut off, or shorter than requested
	// the service's size of a file is not that of the list or the listing
	ErrSize       = errors.New("file size differs")
	ErrScratch    = errors.New("disk of this machine failed")                // full, or broken: the service is not to blame
	ErrCrashed    = errors.New("the client's program crashed")               // ended by a signal that a fault of its own caused
	ErrNoListing  = errors.New("the service gives no listing of the folder") // neither by PROPFIND nor for browsers
	ErrLogin      = errors.New("the server refused the login")               // so that no operation was sent
	ErrRedirected = errors.New("the target redirects to another server")
	ErrNeedsTLS   = errors.New("the server needs TLS")                // and the target's scheme has no TLS
	ErrNoTLS      = errors.New("the server has no TLS")               // and the target's scheme needs it
	ErrProtocol   = errors.New("answer does not follow the protocol") // malformed, oversized or unexpected responses
)

// An OpError records an error with the operation and the place that caused it, like fs.PathError.
type OpError struct {
	Kind   Kind
	URL    string // without credentials
	Server string // host:port of the data server that failed, as Progress.ServedBy has it; "" is the target itself, or unknown
	Err    error
}

// Error returns "kind url: reason".
func (e *OpError) Error() string {
	s := e.Kind.String() + " " + e.URL
	if e.Server != "" {
		s += " at " + e.Server
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *OpError) Unwrap() error { return e.Err }

// RetryAfter returns the pause that the service requests before the next operation (HTTP
// Retry-After), 0 if err requests no pause.
func RetryAfter(err error) time.Duration {
	var e interface{ RetryAfter() time.Duration }
	if errors.As(err, &e) {
		return e.RetryAfter()
	}
	return 0
}

// A Class is a group of failures that are counted together.
type Class uint8

// The classes of failures, and no failure.
const (
	None         Class = iota
	Refused            // nothing listens at the address, or there is no route to it
	Timeout            // nothing happened in time
	Reset              // the connection broke
	Denied             // credentials missing, wrong or not enough
	NotFound           // no such file
	Busy               // the service reports that it is overloaded
	ServerFailed       // the service reports its own failure: an internal error, a full or broken disk
	Checksummed        // payload differs from the expected payload
	Short              // fewer bytes than announced
	Sized              // the service's size of the file differs from the expected size
	Scratch            // the disk of this machine that was to take the payload is full or broken
	Other              // everything else; the first few are kept whole
	Canceled           // the run ended first; not a failure of the service
	Classes            // number of classes
)

func classNames() [Classes]string {
	return [Classes]string{"none", "refused", "timeout", "reset", "denied", "not found", "busy", "server error", "checksum", "short",
		"size", "scratch", "other", "canceled"}
}

// Failure reports whether an operation of the class failed. An operation that the end of the run
// has canceled did not fail.
func (c Class) Failure() bool { return c != None && c != Canceled }

// String returns the text of the class in results.
func (c Class) String() string {
	names := classNames()
	return nameOf(c, names[:], "class")
}

// MarshalText implements encoding.TextMarshaler.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Class) UnmarshalText(text []byte) error {
	names := classNames()
	return parseName(c, text, names[:], "error class")
}

// Classify returns the class of a client's error; nil has no failure.
func Classify(err error) Class {
	if err == nil {
		return None // the hot path, which allocates nothing
	}
	return classify(err)
}

func classify(err error) Class {
	var netErr net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, ErrScratch):
		return Scratch
	case errors.Is(err, ErrChecksum):
		return Checksummed
	case errors.Is(err, ErrSize):
		return Sized
	case errors.Is(err, fs.ErrNotExist):
		return NotFound
	case errors.Is(err, fs.ErrPermission):
		return Denied
	case errors.Is(err, ErrBusy):
		return Busy
	case errors.Is(err, ErrServer), errors.Is(err, syscall.EIO), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return ServerFailed
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return Timeout
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Refused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return Reset
	case errors.Is(err, ErrShort), errors.Is(err, io.ErrUnexpectedEOF):
		return Short
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return Reset
	case errors.As(err, &netErr) && netErr.Timeout():
		return Timeout
	}
	return Other
}

// HTTPError returns the error with the meaning of an HTTP status, ErrServer for a status of the
// server's failure (5xx) without a meaning of its own, and nil for any other status.
func HTTPError(status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return fs.ErrPermission
	case http.StatusNotFound, http.StatusGone:
		return fs.ErrNotExist
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return os.ErrDeadlineExceeded
	case http.StatusBadGateway: // the connection between the gateway and its server broke
		return syscall.ECONNRESET
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return ErrBusy
	case http.StatusInsufficientStorage:
		return syscall.ENOSPC
	case http.StatusRequestedRangeNotSatisfiable:
		return ErrShort
	case http.StatusNotImplemented:
		return errors.ErrUnsupported
	}
	if status >= http.StatusInternalServerError {
		return ErrServer
	}
	return nil
}

// CheckSize returns an error that wraps ErrSize if the size of a file differs from the expected
// size (Op.Size), and also ErrShort if it is smaller. The sizes are in bytes; a negative size is
// unknown and matches any size.
func CheckSize(expected, size int64) error {
	switch {
	case expected < 0 || size < 0 || size == expected:
		return nil
	case size < expected:
		return fmt.Errorf("%w: the file has %d bytes, not the %d expected (%w)", ErrSize, size, expected, ErrShort)
	}
	return fmt.Errorf("%w: the file has %d bytes, not the %d expected", ErrSize, size, expected)
}

// A RedirectError is returned if the target itself redirects to another server, which should be the target instead.
// It wraps ErrRedirected.
type RedirectError struct{ To string } // URL without query

// Error returns the message with the URL that the target redirects to.
func (e *RedirectError) Error() string { return ErrRedirected.Error() + ": " + e.To }

// Unwrap returns ErrRedirected.
func (*RedirectError) Unwrap() error { return ErrRedirected }

// XRootDError returns the name of an error code of the XRootD protocol and the error of the same
// meaning; "" and nil for an unknown number. Source: enum XErrorCode of XProtocol.hh.
func XRootDError(code int) (name string, is error) {
	table := [...]struct {
		name string
		is   error
	}{
		{"kXR_ArgInvalid", fs.ErrInvalid}, {"kXR_ArgMissing", fs.ErrInvalid}, {"kXR_ArgTooLong", syscall.ENAMETOOLONG},
		{"kXR_FileLocked", ErrBusy}, {"kXR_FileNotOpen", fs.ErrClosed}, {"kXR_FSError", syscall.EIO},
		{"kXR_InvalidRequest", errors.ErrUnsupported}, {"kXR_IOError", syscall.EIO}, {"kXR_NoMemory", ErrBusy},
		{"kXR_NoSpace", syscall.ENOSPC}, {"kXR_NotAuthorized", fs.ErrPermission}, {"kXR_NotFound", fs.ErrNotExist},
		{"kXR_ServerError", syscall.EIO}, {"kXR_Unsupported", errors.ErrUnsupported}, {"kXR_noserver", syscall.EHOSTUNREACH},
		{"kXR_NotFile", fs.ErrInvalid}, {"kXR_isDirectory", fs.ErrInvalid}, {"kXR_Cancelled", syscall.ECONNABORTED},
		{"kXR_ItExists", fs.ErrExist}, {"kXR_ChkSumErr", ErrChecksum}, {"kXR_inProgress", ErrBusy},
		{"kXR_overQuota", syscall.EDQUOT}, {"kXR_SigVerErr", fs.ErrPermission}, {"kXR_DecryptErr", fs.ErrPermission},
		{"kXR_Overloaded", ErrBusy}, {"kXR_fsReadOnly", fs.ErrPermission}, {"kXR_BadPayload", fs.ErrInvalid},
		{"kXR_AttrNotFound", fs.ErrNotExist}, {"kXR_TLSRequired", fs.ErrPermission}, {"kXR_noReplicas", syscall.EHOSTUNREACH},
		{"kXR_AuthFailed", fs.ErrPermission}, {"kXR_Impossible", errors.ErrUnsupported}, {"kXR_Conflict", fs.ErrInvalid},
		{"kXR_TooManyErrs", ErrChecksum}, {"kXR_ReqTimedOut", os.ErrDeadlineExceeded}, {"kXR_TimerExpired", os.ErrDeadlineExceeded},
	}
	if i := code - 3000; i >= 0 && i < len(table) {
		return table[i].name, table[i].is
	}
	return "", nil
}
