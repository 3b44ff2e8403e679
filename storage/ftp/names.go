package ftp

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"weir/internal/content"
	"weir/internal/digest"
	"weir/storage"
	"weir/storage/wireclient"
)

// login opens a session. If the client has a session, it sends NOOP to check it.
func (x *call) login() error {
	kept, err := x.control.join()
	if err != nil || !kept {
		return err
	}
	if err := x.control.first(false, "NOOP", path{}); err != nil {
		return err
	}
	if code := x.control.reply.code; code >= 300 && code != 500 && code != 502 { // a server that does not support NOOP responds as well
		return x.control.refusal()
	}
	return nil
}

func (x *call) stat() error {
	e, err := x.look(x.path())
	if vague(err) {
		e, err = x.evidence(x.path(), err)
	}
	if err == nil {
		x.Reach(storage.Opened)
		x.Result.Size, x.Result.Folder = e.Size, e.Dir
	}
	return err
}

// look returns the entry of a name. If the server refuses without a reason, the error is vague.
func (x *call) look(p path) (storage.Entry, error) {
	s := x.s
	if !s.noFacts.Load() {
		if err := x.control.first(false, "MLST ", p); err != nil {
			return storage.Entry{}, err
		}
		if x.control.reply.code == 250 {
			e, _, err := parseMachineLine(factLine(&x.control.reply))
			if err != nil {
				return e, wireclient.ProtocolError("MLST: %q", clip(x.control.reply.line(1), 100))
			}
			return e, nil
		}
		err := x.control.refusal()
		switch {
		case unknown(err):
			s.noFacts.Store(true)
		case !vague(err):
			return storage.Entry{}, err
		}
	}
	if err := x.control.first(false, "SIZE ", p); err != nil {
		return storage.Entry{}, err
	}
	if x.control.reply.code == 213 {
		n, ok := wireclient.Decimal(strings.TrimSpace(string(x.control.reply.line(0))))
		if !ok {
			return storage.Entry{}, wireclient.ProtocolError("SIZE: %q", clip(x.control.reply.line(0), 60))
		}
		return storage.Entry{Size: n}, nil
	}
	return noSize(x.control.refusal())
}

// noSize distinguishes a folder from a missing file by the refusal of SIZE.
func noSize(err error) (storage.Entry, error) {
	r, refused := errors.AsType[*replyError](err)
	text := ""
	if refused {
		text = strings.ToLower(r.text)
	}
	switch {
	case errors.Is(err, syscall.EISDIR), strings.Contains(text, "not a plain file"), strings.Contains(text, "not a regular file"):
		return storage.Entry{Size: -1, Dir: true}, nil
	}
	return storage.Entry{}, err
}

// evidence returns the entry of a name after the server refused a command about it without a
// reason: such a refusal does not prove that the name does not exist. CWD finds a folder, and the
// listing of the parent folder any other entry. The error is fs.ErrNotExist if that listing lacks
// the name, and refused if there is no listing.
func (x *call) evidence(p path, refused error) (storage.Entry, error) {
	name := strings.Trim(p.name, "/")
	if name == "" || x.control.c.conn == nil {
		return storage.Entry{}, refused
	}
	if err := x.control.first(false, "CWD ", p); err != nil {
		return storage.Entry{}, err
	}
	if x.control.reply.code < 300 {
		return storage.Entry{Size: -1, Dir: true}, nil
	}
	above, last := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		above, last = name[:i], name[i+1:]
	}
	err := x.listFolder(path{p.of, above})
	entries := x.Result.Entries
	x.SetListing(wireclient.Listing{})
	switch {
	case vague(err):
		if _, err = x.evidence(path{p.of, above}, err); !missing(err) {
			return storage.Entry{}, refused
		}
		return storage.Entry{}, fmt.Errorf("%w: %w", refused, fs.ErrNotExist)
	case err != nil:
		return storage.Entry{}, err
	}
	for _, e := range entries {
		if e.Name == last {
			return e, nil
		}
	}
	return storage.Entry{}, fmt.Errorf("%w: %w", refused, fs.ErrNotExist)
}

// explained returns the result of a command about a file: a refusal without a reason is
// fs.ErrNotExist, or syscall.EISDIR for a read, if there is evidence for it.
func (x *call) explained(p path, err error) error {
	if !vague(err) {
		return err
	}
	x.transfer.close() // of a transfer that was refused
	e, why := x.evidence(p, err)
	switch {
	case missing(why):
		return why
	case why == nil && e.Dir && x.Op.Kind == storage.Read:
		return fmt.Errorf("%w: %w", err, syscall.EISDIR)
	}
	return err
}

// vague reports whether err is a refusal without a reason.
func vague(err error) bool {
	r, ok := errors.AsType[*replyError](err)
	return ok && r.code == 550 && r.is == nil
}

// change sends a command that creates, removes or renames a file.
func (x *call) change(verb string, p path) error {
	err := x.control.done(x.control.first(true, verb, p))
	if err == nil {
		x.Reach(storage.Opened)
	}
	return err
}

// mkdir sends MKD. If the server refuses it without a reason, CWD checks whether the folder exists.
func (x *call) mkdir() error {
	err := x.change("MKD ", x.path())
	if vague(err) && x.control.c.conn != nil && x.control.done(x.control.first(false, "CWD ", x.path())) == nil {
		return fmt.Errorf("%w: %w", err, fs.ErrExist)
	}
	return err
}

// remove sends DELE, or RMD for folders, which only removes empty folders.
func (x *call) remove() error {
	name := strings.Trim(x.Op.Path, "/")
	if name == "" {
		return fmt.Errorf("the target itself cannot be removed: %w", fs.ErrInvalid)
	}
	if x.Op.Folder || strings.HasSuffix(x.Op.Path, "/") {
		return x.explained(x.path(), x.change("RMD ", x.path()))
	}
	err := x.change("DELE ", x.path())
	var r *replyError
	if err == nil || missing(err) && !errors.Is(err, syscall.EISDIR) || !errors.As(err, &r) || r.code < 500 {
		return err
	}
	again := x.change("RMD ", x.path())
	if again == nil || errors.Is(again, syscall.ENOTEMPTY) || errors.Is(err, syscall.EISDIR) {
		return again
	}
	return x.explained(x.path(), err)
}

// move sends RNFR and RNTO. On most servers they replace an existing file, so the new name is
// checked first.
func (x *call) move() error {
	from, to := path{x.s, x.Op.Source}, x.path()
	if err := errors.Join(storage.CheckPath(from.name), sendable(from.name)); err != nil {
		return err
	}
	if strings.Trim(from.name, "/") == "" || strings.Trim(to.name, "/") == "" {
		return fmt.Errorf("the target itself cannot be moved: %w", fs.ErrInvalid)
	}
	if err := x.absent(to); err != nil {
		return err
	}
	if err := x.control.first(false, "RNFR ", from); err != nil {
		return err
	}
	if x.control.reply.code != 350 {
		return x.explained(from, x.control.refusal())
	}
	if err := x.control.done(x.control.command("RNTO ", to)); err != nil {
		return err
	}
	x.Reach(storage.Opened)
	return nil
}

// checksum sends CKSM (GFD.47, 2.4).
func (x *call) checksum() error {
	alg, ok := digest.Lookup(x.Op.Sum)
	if !ok || alg.Name != x.Op.Sum {
		return fmt.Errorf("checksum %q: use one of %s: %w", x.Op.Sum, strings.Join(content.Algorithms(), ", "), errors.ErrUnsupported)
	}
	if err := x.control.first(false, "CKSM "+strings.ToUpper(x.Op.Sum)+" 0 -1 ", x.path()); err != nil {
		return err
	}
	if x.control.reply.code != 213 {
		return x.explained(x.path(), x.control.refusal())
	}
	x.Reach(storage.Opened)
	sum, ok := alg.Hex(string(x.control.reply.line(0)))
	if !ok {
		return wireclient.ProtocolError("CKSM: %q", clip(x.control.reply.line(0), 80))
	}
	x.Result.Sum = x.Op.Sum + ":" + sum
	return nil
}
