package webdav

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/html"

	"weir/internal/pause"
	"weir/storage"
)

// maxReason is the number of bytes of an error's body that are read for its first line.
const maxReason = 4 << 10

// maxRetryAfter is the longest wait that a server may request.
const maxRetryAfter = 366 * 24 * time.Hour

// A statusError is a response that does not have the requested result. It holds the status line and
// the first line of the body.
type statusError struct {
	status int
	reason string
	line   string
	note   string
	cause  error // the error that all drivers share, or nil
	after  time.Duration
	offers []string // of 401, not nil, and of S3's 403: authentication methods that the server names
}

// Offers returns the authentication methods that the server names: "S3" for a 403 of S3, nil for
// responses other than that and 401.
func (e *statusError) Offers() []string { return e.offers }

// RetryAfter returns the wait that the server requests, with 429 and 503; 0 if it requests no wait.
func (e *statusError) RetryAfter() time.Duration { return e.after }

// Status returns the response's status.
func (e *statusError) Status() int { return e.status }

func (e *statusError) Error() string {
	s := "HTTP status " + strconv.Itoa(e.status)
	if e.reason != "" {
		s += " " + e.reason
	}
	if e.line != "" {
		s += ": " + e.line
	}
	if e.note != "" {
		s += ": " + e.note
	}
	return s
}

func (e *statusError) Unwrap() error { return e.cause }

// The texts of XRootD, with status 404 or 501 and 500, for a request that it did not process:
// XrdXrootdTransit::Run refuses a request that the HTTP part passes on while the previous request
// on that connection is not finished. Up to 5.9.0 (xrootd pull request 2613) a client that
// continues immediately occasionally gets this after a response that came from another thread, as
// with a file's first checksum.
const (
	notRun    = "Could not run request."
	notSummed = "Failed to create initial checksum request."
)

// isNotRun reports whether line, the first of a response's body, has such a text. It may be about a
// read or a close as well, and "Error stating" is the response to a GET.
func isNotRun(line string) bool {
	return strings.HasPrefix(line, "Could not run ") || line == notSummed || strings.HasPrefix(line, "Error stating/")
}

// isBareNotRun recognizes it in a response to HEAD: the body is missing, but its length is known.
// For a missing file the length is zero.
func (a *answer) isBareNotRun() bool {
	h := &a.head
	return a.body.ended && !h.keep && (h.status == http.StatusNotFound && h.length == int64(len(notRun)) ||
		h.status == http.StatusInternalServerError && h.length == int64(len(notSummed)))
}

// refuse returns the error of the response and leaves the connection ready for the next request, or
// closed.
func (x *call) refuse(l *link) error { return x.refuseAs(l, storage.HTTPError(x.wire.head.status)) }

// refuseAs is refuse with a cause of its own for the status.
func (x *call) refuseAs(l *link, cause error) error {
	e := &statusError{status: x.wire.head.status, reason: printable(x.wire.head.reason, 80), cause: cause}
	if e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable {
		e.after = pause.After(string(x.wire.head.retry), time.Now(), maxRetryAfter)
	}
	if e.status == http.StatusUnauthorized {
		e.offers = x.wire.head.offers()
	}
	if errors.Is(cause, fs.ErrPermission) && !l.origin.trusted && x.s.proves() {
		e.note = "credentials for the target are not sent to another server"
	}
	x.line = x.line[:0]
	if isMarkup(x.wire.head.ctype) {
		_ = x.wire.collect(l, &x.line, maxReason) // the body is optional
		e.line = titleOf(x.line, e.status, e.reason)
	} else {
		bare, inXML := x.wire.isBareNotRun(), bytes.Contains(x.wire.head.ctype, []byte("xml"))
		// A failure here is ignored: the body is optional.
		_ = x.wire.collect(l, &x.line, maxReason)
		if inXML {
			e.line = codeOf(x.line)
		}
		if strings.HasPrefix(e.line, "XAdminUserNotFound:") { // of versitygw, with 404: the access key is unknown
			e.cause = fs.ErrPermission
		}
		if e.line != "" && errors.Is(e.cause, fs.ErrPermission) && e.offers == nil { // S3 has no 401
			e.offers = []string{"S3"}
		}
		e.line = cmp.Or(e.line, firstLine(x.line))
		switch {
		case bare || isNotRun(e.line):
			e.cause = storage.ErrBusy
		case e.status == http.StatusInternalServerError && strings.Contains(strings.ToLower(e.line), "not a directory"): // XRootD
			e.cause = syscall.ENOTDIR
		}
	}
	x.wire.skip(l)
	return e
}

func isMarkup(ctype []byte) bool { return bytes.Contains(ctype, []byte("html")) }

// titleOf returns the title of a page, or its heading, unless it only repeats status and reason: "400 No required SSL certificate sent".
func titleOf(page []byte, status int, reason string) string {
	wanted := false
	for z := html.NewTokenizer(bytes.NewReader(page)); z.Next() != html.ErrorToken; {
		t := z.Token()
		if t.Type == html.TextToken && wanted {
			text := strings.TrimSpace(strings.TrimPrefix(printable([]byte(t.Data), 200), strconv.Itoa(status)))
			general := []string{"", "error", "error response", strings.ToLower(reason), strings.ToLower(http.StatusText(status))}
			if !slices.Contains(general, strings.ToLower(text)) {
				return text
			}
		}
		wanted = t.Type == html.StartTagToken && (t.Data == "title" || t.Data == "h1")
	}
	return ""
}

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

// printable removes control characters from text of a server and shortens it.
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
