package ftp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"weir/storage"
	"weir/storage/wireclient"
)

const (
	maxReply = 64 << 10 // bytes of one reply
	keptText = 6 << 10  // bytes of a reply's text that are stored
)

// A reply is the server's response to one command, or an interim reply before a transfer ends (RFC
// 959, 4.2): one line "226 done", or several, the first "211-", the last "211 " and anything
// between them.
type reply struct {
	code  int
	text  []byte // lines without codes, each ended by a line feed; cut after keptText
	size  int    // bytes so far
	open  bool   // lines are to come
	limit int    // bytes of text that are stored; 0 means keptText
}

// reset makes r ready for the next reply.
func (r *reply) reset() { *r = reply{text: r.text[:0], limit: r.limit} }

// add processes the next line, without its end, and reports whether it was the last.
func (r *reply) add(line []byte) (bool, error) {
	if r.size += len(line) + 2; r.size > maxReply {
		return false, wireclient.ProtocolError("a reply of more than %d bytes", maxReply)
	}
	code, rest, ok := splitCode(line)
	if !r.open {
		if !ok {
			return false, wireclient.ProtocolError("reply %q", clip(line, 60))
		}
		r.code, r.open = code, true
		r.keep(rest)
		if more := len(line) > 3 && line[3] == '-'; more {
			return false, nil
		}
		r.open = false
		return true, nil
	}
	if ok && code == r.code {
		if r.keep(rest); len(line) == 3 || line[3] == ' ' {
			r.open = false
			return true, nil
		}
		return false, nil
	}
	r.keep(line)
	return false, nil
}

func (r *reply) keep(text []byte) {
	if room := cmp.Or(r.limit, keptText) - len(r.text) - 1; room > 0 {
		r.text = append(append(r.text, text[:min(len(text), room)]...), '\n')
	}
}

// splitCode splits "226 done", "226-done" or "226".
func splitCode(line []byte) (code int, rest []byte, ok bool) {
	if len(line) < 3 || len(line) > 3 && line[3] != ' ' && line[3] != '-' {
		return 0, nil, false
	}
	for _, c := range line[:3] {
		if c < '0' || c > '9' {
			return 0, nil, false
		}
		code = code*10 + int(c-'0')
	}
	if code < 100 || code > 659 { // 6yz: RFC 2228
		return 0, nil, false
	}
	return code, line[min(4, len(line)):], true
}

// line returns the nth line of the text, counted from zero.
func (r *reply) line(n int) []byte {
	rest := r.text
	for ; n > 0; n-- {
		_, rest, _ = bytes.Cut(rest, []byte{'\n'})
	}
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	return line
}

// clip shortens text of a server.
func clip(text []byte, most int) string {
	if len(text) > most {
		return string(text[:most]) + "..."
	}
	return string(text)
}

// A replyError is a reply that refuses a command.
type replyError struct {
	code int
	text string
	is   error // the shared error that it represents, or nil
}

func (e *replyError) Error() string { return strconv.Itoa(e.code) + " " + e.text }
func (e *replyError) Unwrap() error { return e.is }

// done returns err, the result of a command, or the error of the last reply if that is a refusal.
func (x *control) done(err error) error {
	if err == nil && x.reply.code >= 300 {
		return x.refusal()
	}
	return err
}

// refusal returns the last reply as an error.
func (x *control) refusal() error {
	r := &x.reply
	if r.code < 400 {
		return wireclient.ProtocolError("unexpected reply %d %q", r.code, clip(r.line(0), 60))
	}
	text := summary(string(r.text))
	if r.code == 421 {
		x.drop() // the server closes the connection after it
	}
	return &replyError{r.code, text, meaning(r.code, string(r.text))}
}

// summary returns a reply's text in one line. GridFTP servers report the error of the system on a
// line of its own.
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
	if quoted == `"`+all+`"` { // it has no bytes that could control a terminal
		return all
	}
	return quoted
}

// meaning returns the shared error for a refusal. Codes are not specific (550 stands for all errors
// of a file), so the texts of known servers come first.
func meaning(code int, text string) error {
	text = strings.ToLower(text)
	for _, m := range []struct {
		is    error
		words []string
	}{
		{storage.ErrNeedsTLS, []string{"tls required", "ssl required", "tls connection required", "requires tls", "requires ssl",
			"use auth first", "must use encryption", "cleartext sessions", "not allow plain ftp"}},
		{errors.ErrUnsupported, []string{"unable to handle command", "not understood"}},
		{fs.ErrNotExist, []string{"no such file", "not found", "not exist", "doesn't exist", "path_not_found", "cannot find"}},
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
	return meaningOf(code, text)
}

func meaningOf(code int, text string) error {
	switch code {
	case 421, 450:
		return storage.ErrBusy
	case 426:
		return syscall.ECONNRESET
	case 331, 332, 430, 530, 532, 533, 534, 535, 536, 537, 553:
		return fs.ErrPermission
	case 451:
		return storage.ErrServer
	case 452, 552:
		return syscall.ENOSPC
	case 500, 501, 502, 503, 504:
		if !strings.Contains(text, "failed") { // GridFTP servers send this for commands that they support
			return errors.ErrUnsupported
		}
	}
	return nil // 550 without a reason: any error of a file
}

// unknown reports whether the server does not support the command that it refused.
func unknown(err error) bool {
	var r *replyError
	return errors.As(err, &r) && r.code >= 500 && errors.Is(r.is, errors.ErrUnsupported)
}

// missing reports whether the server has no file of the requested name.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// while adds the action of the client to an error.
func while(what string, err error) error { return fmt.Errorf("%s: %w", what, err) }
