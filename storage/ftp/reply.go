package ftp

import (
	"bytes"

	"weir/storage/wireclient"
)

const (
	maxReply = 64 << 10 // bytes of one reply
	keptText = 6 << 10  // bytes of a reply's text that are kept
)

// A reply is what the server says to one command, or before a transfer ends
// (RFC 959, 4.2): one line "226 done", or several, the first "211-", the last
// "211 " and anything between them.
type reply struct {
	code int
	text []byte // lines without codes, each ended by a line feed; cut after keptText
	size int    // bytes so far
	open bool   // lines are to come
}

// reset makes r ready for the next reply.
func (r *reply) reset() { *r = reply{text: r.text[:0]} }

// add takes the next line, without its end, and tells whether it was the last.
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
	if room := keptText - len(r.text) - 1; room > 0 {
		r.text = append(append(r.text, text[:min(len(text), room)]...), '\n')
	}
}

// splitCode takes "226 done", "226-done" or "226" apart.
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

// clip shortens what comes from outside.
func clip(text []byte, most int) string {
	if len(text) > most {
		return string(text[:most]) + "..."
	}
	return string(text)
}
