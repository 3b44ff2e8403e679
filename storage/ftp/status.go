package ftp

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"weir/storage"
	"weir/storage/wireclient"
)

// A replyError is a reply that refuses.
type replyError struct {
	code int
	text string
	is   error // what it means; nil: nothing that has a name
}

func (e *replyError) Error() string { return strconv.Itoa(e.code) + " " + e.text }
func (e *replyError) Unwrap() error { return e.is }

// refusal makes an error of the last reply.
func (x *call) refusal() error {
	r := &x.reply
	if r.code < 400 {
		return wireclient.ProtocolError("unexpected reply %d %q", r.code, clip(r.line(0), 60))
	}
	text := summary(string(r.text))
	if r.code == 421 {
		x.drop() // the server closes after it
	}
	return &replyError{r.code, text, meaning(r.code, string(r.text), x.Op.Kind)}
}

// summary is a reply's text in one line. GridFTP servers say what the system said
// on a line of its own.
func summary(text string) string {
	var words []string
	reason, system := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "GridFTP-Reason: "); ok {
			reason = rest
		}
		if rest, ok := strings.CutPrefix(line, "GridFTP-Error-String: "); ok {
			system = rest
		}
		if line != "" && line != "End." && line != "End" {
			words = append(words, line)
		}
	}
	all := strings.Join(words, "; ")
	if system != "" {
		all = strings.TrimPrefix(reason+": "+system, ": ")
	}
	quoted := strconv.Quote(clip([]byte(all), 300))
	if quoted == `"`+all+`"` { // nothing in it that could harm a terminal
		return all
	}
	return quoted
}

// meaning is what a refusal means. Codes say little (550 is all that can be wrong
// with a file), so the words that servers use come first.
func meaning(code int, text string, kind storage.Kind) error {
	text = strings.ToLower(text)
	for _, m := range []struct {
		is    error
		words []string
	}{
		{errors.ErrUnsupported, []string{"unable to handle command", "not understood"}},
		{fs.ErrNotExist, []string{"no such file", "not found", "not exist", "path_not_found", "cannot find"}},
		{syscall.ENOTEMPTY, []string{"not empty"}},
		{syscall.ENOTDIR, []string{"not a directory"}},
		{syscall.EISDIR, []string{"is a directory", "is_a_directory"}},
		{fs.ErrExist, []string{"file exists", "already exists", "path_exists"}},
		{fs.ErrPermission, []string{"permission denied", "access denied", "not permitted", "not allowed", "read-only"}},
		{storage.ErrBusy, []string{"too many", "maximum number", "maximum login", "server busy", "resource busy", "no more connections"}},
		{syscall.ENOSPC, []string{"no space", "disk full", "quota"}},
	} {
		for _, w := range m.words {
			if strings.Contains(text, w) {
				return m.is
			}
		}
	}
	return meaningOf(code, text, kind)
}

func meaningOf(code int, text string, kind storage.Kind) error {
	switch code {
	case 421, 450:
		return storage.ErrBusy
	case 426:
		return syscall.ECONNRESET
	case 331, 332, 430, 530, 532, 534, 553:
		return fs.ErrPermission
	case 452, 552:
		return syscall.ENOSPC
	case 500, 501, 502, 503, 504:
		if !strings.Contains(text, "failed") { // what GridFTP servers say of commands that they know
			return errors.ErrUnsupported
		}
	case 550:
		switch kind {
		case storage.Mkdir, storage.Write: // many reasons
		default:
			return fs.ErrNotExist
		}
	}
	return nil
}

// unknown tells whether the server does not know the command that it refused.
func unknown(err error) bool {
	var r *replyError
	return errors.As(err, &r) && r.code >= 500 && errors.Is(r.is, errors.ErrUnsupported)
}

// missing tells whether the server has no file of the name that it was asked for.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// while says what a client was doing.
func while(what string, err error) error { return fmt.Errorf("%s: %w", what, err) }
