package command

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"weir/storage"
)

// byWords finds the sentinel of a failure in the words of any program: those
// of the C library, of HTTP, FTP, XRootD and Globus. nil is unknown.
func byWords(text string) error {
	text = strings.ToLower(text)
	for _, w := range []struct {
		sentinel error
		words    []string
	}{
		{storage.ErrChecksum, []string{"checksum mismatch", "checksum does not match", "checksums do not match"}},
		{fs.ErrNotExist, []string{"no such file", "file not found", "path_not_found", "does not exist on the server"}},
		{fs.ErrExist, []string{"file exists", "path_exists", "already exists"}},
		{syscall.ECONNREFUSED, []string{"connection refused", "failed to connect", "couldn't connect", "could not connect", "[fatal] connection error", "no route to host", "network is unreachable", "could not resolve", "name or service not known", "name resolution", "invalid address"}},
		{fs.ErrPermission, []string{"permission denied", "operation not permitted", "not authorized", "unauthorized", "authentication failed", "auth failed", "no protocols left to try", "530 login incorrect", "access denied", "forbidden", "the proxy credential"}},
		{storage.ErrBusy, []string{"too many connections", "421 service busy", "server is busy", "overloaded", "too many requests", "service unavailable"}},
		{context.DeadlineExceeded, []string{"timed out", "timeout", "operation expired"}},
		{syscall.ECONNRESET, []string{"connection reset", "broken pipe", "end-of-file was reached", "end of file occurred", "empty reply", "closed by server", "socket disconnected", "socket error", "stream disconnect", "socket operation on non-socket", "connection closed"}},
	} {
		for _, word := range w.words {
			if strings.Contains(text, word) {
				return w.sentinel
			}
		}
	}
	return nil
}

// byHTTP is the sentinel of an HTTP status, nil if it has none.
func byHTTP(status int) error {
	switch status {
	case 401, 403, 407:
		return fs.ErrPermission
	case 404, 410:
		return fs.ErrNotExist
	case 408, 504:
		return context.DeadlineExceeded
	case 416:
		return storage.ErrShort
	case 429, 503:
		return storage.ErrBusy
	}
	return nil
}

// number finds the number that expr captures, -1 if there is none.
func number(expr, text string) int {
	found := regexp.MustCompile(expr).FindStringSubmatch(text)
	if found == nil {
		return -1
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		return -1
	}
	return n
}

// curlFailure knows the exit statuses of curl.
func curlFailure(status int, text string) error {
	switch status {
	case 5, 6, 7:
		return syscall.ECONNREFUSED
	case 9, 67:
		return fs.ErrPermission
	case 18:
		return storage.ErrShort
	case 28:
		return context.DeadlineExceeded
	case 22:
		return byHTTP(number(`returned error: (\d+)`, text))
	case 33:
		return storage.ErrShort // the range is not in the file
	case 1, 4:
		return errors.ErrUnsupported
	case 8:
		return storage.ErrProtocol
	case 16, 52, 55, 56, 92:
		return syscall.ECONNRESET
	case 78:
		return fs.ErrNotExist
	}
	return nil
}

// gfalFailure knows that gfal2 ends with an errno, less than its message says
// where there is an HTTP status or a socket's fate behind it.
func gfalFailure(status int, text string) error {
	if err := byHTTP(number(`HTTP (\d{3})`, text)); err != nil {
		return err
	}
	if status == 2 && strings.Contains(text, "\tMISSING") {
		return fs.ErrNotExist
	}
	switch err := syscall.Errno(number(`error: (\d+) \(`, text)); err {
	case syscall.ENOENT, syscall.EPERM, syscall.EACCES, syscall.EEXIST, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ETIMEDOUT, syscall.EISDIR, syscall.ENOTEMPTY, syscall.EHOSTUNREACH:
		return err
	case syscall.ENOSYS, syscall.EPROTONOSUPPORT, syscall.EOPNOTSUPP:
		return errors.ErrUnsupported
	}
	return nil
}

// xrdFailure knows the error numbers of the XRootD protocol, which the
// clients show in brackets.
func xrdFailure(_ int, text string) error {
	switch number(`\[(3\d{3})\]`, text) {
	case 3010, 3030: // not authorized, authentication failed
		return fs.ErrPermission
	case 3011:
		return fs.ErrNotExist
	case 3018:
		return fs.ErrExist
	case 3019:
		return storage.ErrChecksum
	case 3024: // overloaded
		return storage.ErrBusy
	case 3034, 3035: // request timed out, timer expired
		return context.DeadlineExceeded
	}
	return nil
}
