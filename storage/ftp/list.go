package ftp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"weir/storage"
	"weir/storage/wireclient"
)

// list uses MLSD, or CWD and LIST: with a path as argument, LIST would take some names for options
// or patterns, and many servers do not report that a folder is missing.
func (x *call) list() error {
	p := x.path()
	if err := x.listFolder(p); err != nil {
		return x.explained(p, err)
	}
	all := x.Result.Entries
	if len(all) != 1 || all[0].Dir || all[0].Name != string(p.last()) {
		return nil
	}
	if e, err := x.look(p); err == nil && !e.Dir { // GridFTP servers list a file as a folder with this file in it
		x.SetListing(wireclient.Listing{})
		return syscall.ENOTDIR
	}
	return nil
}

func (x *call) listFolder(p path) error {
	s := x.s
	if !s.noMachineList.Load() {
		if err := x.transfer.passive(); err != nil {
			return err
		}
		if err := x.control.command("MLSD ", p); err != nil {
			return err
		}
		if x.control.reply.code < 300 {
			return x.entries(parseMachineLine)
		}
		err := x.control.refusal()
		x.transfer.close()
		if !unknown(err) {
			return x.whyNoList(p, err)
		}
		s.noMachineList.Store(true)
	}
	if err := x.control.done(x.control.first(false, "CWD ", p)); err != nil {
		return err
	}
	if err := x.transfer.passive(); err != nil {
		return err
	}
	if err := x.control.done(x.control.say("LIST", "")); err != nil {
		return err
	}
	return x.entries(parseLine)
}

// whyNoList sends another request if a server only reported that the listing failed.
func (x *call) whyNoList(p path, err error) error {
	var r *replyError
	if !errors.As(err, &r) || r.is != nil || x.control.c.conn == nil || x.s.noFacts.Load() {
		return err
	}
	switch e, why := x.look(p); {
	case errors.As(why, &r):
		return why
	case why == nil && !e.Dir:
		return syscall.ENOTDIR
	}
	return err
}

// entries reads a listing.
func (x *call) entries(parse func(line []byte) (e storage.Entry, skip bool, err error)) error {
	if err := x.transfer.secure(); err != nil {
		return err
	}
	x.Reach(storage.Opened)
	var found wireclient.Listing
	err := x.transfer.lines(func(line []byte) error {
		e, skip, err := parse(line)
		if err != nil || skip {
			return err
		}
		if err := cmp.Or(sendable(e.Name), (path{x.s, e.Name}).check()); err != nil {
			found.Omit(err)
			return nil
		}
		return found.Add(e)
	})
	switch {
	case errors.Is(err, storage.ErrProtocol):
		x.transfer.close()
		x.control.drop()
	case err != nil:
		err = x.transfer.whyBroken(err)
	default:
		err = x.transfer.ended()
	}
	if text := x.control.reply.text; err == nil && bytes.Contains(bytes.ToLower(text), []byte("truncated")) { // as pure-ftpd does
		err = fmt.Errorf("%w: the server cut the listing off: %s", storage.ErrShort, summary(string(text)))
	}
	if err == nil {
		x.SetListing(found)
	}
	return err
}

// factLine returns the line of an MLST reply that has the facts.
func factLine(r *reply) []byte {
	for line := range bytes.Lines(r.text) {
		line = bytes.TrimRight(line, "\n")
		if len(line) > 1 && line[0] == ' ' { // RFC 3659, 7.2
			return line[1:]
		}
	}
	return r.line(1)
}

// parseMachineLine reads a line of MLSD or MLST, "Type=file;Size=11; name" (RFC 3659, 7.2). skip is
// true for the folder itself and its parent.
func parseMachineLine(line []byte) (storage.Entry, bool, error) {
	facts, name, ok := strings.Cut(string(line), " ")
	if !ok || facts != "" && !strings.Contains(facts, "=") {
		return storage.Entry{}, len(line) == 0, listingError(line)
	}
	e := storage.Entry{Name: name, Size: -1}
	skip := name == "." || name == ".."
	for fact := range strings.SplitSeq(facts, ";") {
		key, value, _ := strings.Cut(fact, "=")
		switch strings.ToLower(key) {
		case "size":
			if n, ok := wireclient.Decimal(value); ok {
				e.Size = n
			}
		case "type":
			kind := strings.ToLower(value)
			e.Dir = kind == "dir" || kind == "cdir" || kind == "pdir"
			skip = skip || kind == "cdir" || kind == "pdir"
		}
	}
	if e.Dir {
		e.Size = -1 // servers report an unrelated size for a folder
	}
	return e, skip, nil
}

func listingError(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	return wireclient.ProtocolError("line of a listing: %q", clip(line, 100))
}

// parseLine reads a line of LIST in the format of Unix's ls,
//
//	-rw-r--r--   1 ada      users       1234 Nov 22 12:31 name with spaces
//
// or of Windows: "11-22-26  12:31PM  <DIR>  name".
func parseLine(line []byte) (storage.Entry, bool, error) {
	text := string(line)
	if text == "" || strings.HasPrefix(text, "total ") {
		return storage.Entry{}, true, nil
	}
	if digit(text[0]) {
		return parseWindowsLine(text)
	}
	e := storage.Entry{Size: -1, Dir: text[0] == 'd'}
	var last string
	rest := text
	for range 9 {
		var word string
		word, rest = nextWord(rest)
		if isMonth(word) && last != "" {
			n, ok := wireclient.Decimal(last)
			day, more := nextWord(rest)
			when, more := nextWord(more)
			if _, dayOK := wireclient.Decimal(day); !ok || !dayOK || when == "" || len(more) < 2 {
				break
			}
			if e.Name = more[1:]; text[0] == 'l' {
				e.Name, _, _ = strings.Cut(e.Name, " -> ")
			}
			if !e.Dir && text[0] != 'l' { // a link's size is its own
				e.Size = n
			}
			if e.Name == "" {
				break
			}
			return e, e.Name == "." || e.Name == "..", nil
		}
		last = word
	}
	return e, false, listingError(line)
}

func parseWindowsLine(text string) (storage.Entry, bool, error) {
	_, rest := nextWord(text)
	_, rest = nextWord(rest)
	size, name := nextWord(rest)
	name = strings.TrimLeft(name, " ")
	n, ok := wireclient.Decimal(size)
	if size == "<DIR>" {
		n, ok = -1, true
	}
	if !ok || name == "" {
		return storage.Entry{}, false, listingError([]byte(text))
	}
	return storage.Entry{Name: name, Size: n, Dir: size == "<DIR>"}, name == "." || name == "..", nil
}

func nextWord(text string) (word, rest string) {
	text = strings.TrimLeft(text, " ")
	if i := strings.IndexByte(text, ' '); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

func isMonth(word string) bool {
	return slices.Contains([]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}, word)
}
