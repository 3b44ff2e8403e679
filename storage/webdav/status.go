package webdav

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"

	"weir/storage"
)

// maxReason is how many bytes of an error's body are read for its first line.
const maxReason = 4 << 10

// A statusError is an answer that is not what was asked for. It keeps the
// status line and the first line of the body.
type statusError struct {
	status int
	reason string
	line   string
	cause  error // what it means, if anybody agrees
}

func (e *statusError) Error() string {
	s := "HTTP status " + strconv.Itoa(e.status)
	if e.reason != "" {
		s += " " + e.reason
	}
	if e.line != "" {
		s += ": " + e.line
	}
	return s
}

func (e *statusError) Unwrap() error { return e.cause }

// meaning maps a status to the errors that all drivers share.
func meaning(status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return fs.ErrPermission
	case http.StatusNotFound, http.StatusGone:
		return fs.ErrNotExist
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return os.ErrDeadlineExceeded
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return storage.ErrBusy
	case http.StatusInsufficientStorage:
		return syscall.ENOSPC
	case http.StatusRequestedRangeNotSatisfiable:
		return storage.ErrShort
	}
	return nil
}

// refuse makes an error of the answer and puts the connection into order.
func (x *call) refuse(l *link) error { return x.refuseAs(l, meaning(x.head.status)) }

// refuseAs is refuse where a status has a meaning of its own.
func (x *call) refuseAs(l *link, cause error) error {
	e := &statusError{status: x.head.status, reason: printable(x.head.reason, 80), cause: cause}
	x.line = x.line[:0]
	if !isMarkup(x.head.ctype) {
		// Whatever goes wrong here, the status is what counts.
		_ = x.collect(l, &x.line, maxReason)
		e.line = firstLine(x.line)
	}
	x.skip(l)
	return e
}

func isMarkup(ctype []byte) bool { return bytes.Contains(ctype, []byte("html")) }

// firstLine returns the first line of b that is not empty.
func firstLine(b []byte) string {
	for len(b) > 0 {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte{'\n'})
		if s := printable(line, 200); s != "" {
			return s
		}
	}
	return ""
}

// printable makes hostile text harmless.
func printable(b []byte, limit int) string {
	s := strings.ToValidUTF8(string(clip(b, limit)), "?")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}
