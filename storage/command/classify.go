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

// byWords returns the sentinel error for a program's message in the words of
// the C library, HTTP, FTP, XRootD or Globus, nil if there is none.
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

// byHTTP returns the sentinel error for an HTTP status, nil if there is none.
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

// Numbers in the messages of programs.
var (
	curlStatus = regexp.MustCompile(`returned error: (\d+)`)
	gfalStatus = regexp.MustCompile(`HTTP (\d{3})`)
	gfalErrno  = regexp.MustCompile(`error: (\d+) \(`)
	xrdCode    = regexp.MustCompile(`\[(3\d{3})\]`)
)

// number returns the number that a pattern captures, -1 if there is none.
func number(pattern *regexp.Regexp, text string) int {
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		return -1
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		return -1
	}
	return n
}

// curlFailure returns the sentinel error for an exit status of curl.
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
		return byHTTP(number(curlStatus, text))
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

// gfalFailure returns the sentinel error for a failure of gfal2. Its exit status
// is an errno; the message says more if an HTTP status is behind it.
func gfalFailure(status int, text string) error {
	if err := byHTTP(number(gfalStatus, text)); err != nil {
		return err
	}
	if status == 2 && strings.Contains(text, "\tMISSING") {
		return fs.ErrNotExist
	}
	switch err := syscall.Errno(number(gfalErrno, text)); err {
	case syscall.ENOENT, syscall.EPERM, syscall.EACCES, syscall.EEXIST, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ETIMEDOUT, syscall.EISDIR, syscall.ENOTEMPTY, syscall.EHOSTUNREACH:
		return err
	case syscall.ENOSYS, syscall.EPROTONOSUPPORT, syscall.EOPNOTSUPP:
		return errors.ErrUnsupported
	}
	return nil
}

// xrdFailure returns the sentinel error for an error code of the XRootD
// protocol, which clients print in brackets.
func xrdFailure(_ int, text string) error {
	switch number(xrdCode, text) {
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
