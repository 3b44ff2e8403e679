package webdav

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weir/internal/pause"
	"weir/internal/tpc"
	"weir/storage"
)

// Requests of COPY to a redirector that does not know the file yet.
const (
	copyTries = 3
	copyAgain = 500 * time.Millisecond
)

// A passiveEnd is the other end of the third-party copies that a service makes: the server of the
// service contacts it.
type passiveEnd struct {
	shown     string // URL of its folder, escaped, without a slash at its end
	query     string
	push      bool   // the service sends its files to the passive end; otherwise it fetches files from there
	extra     string // header lines that are the same for all copies
	secret    *storage.Renewable[string]
	line      func(secret string) string
	macaroons *macaroons // nil: no client certificate has to be replaced
}

// withCopies makes s a service of third-party copies, if t has an origin. The server of a copy is
// that of s; if the origin pushes, it is that of another service, whose clients make the copies of
// the clients of s.
func (s *service) withCopies(t storage.Target) error {
	if t.Origin == nil {
		return nil
	}
	origin := storage.Target{URL: t.Origin.URL, Cred: t.Origin.Cred, Reach: t.Reach, Resume: t.Resume}
	if origin.URL == nil {
		return errors.New("the origin of copies has no URL")
	}
	active, other := s, origin
	if t.Origin.Push {
		pusher, err := newService(origin)
		if err != nil {
			return fmt.Errorf("origin of copies: %w", err)
		}
		s.pusher, active, other = pusher, pusher, t
	}
	end, err := passive(active, other, t.Origin)
	active.passive = end
	return err
}

// passive returns the passive end of the copies that active makes.
func passive(active *service, t storage.Target, o *storage.Origin) (*passiveEnd, error) {
	at, err := originOf(t.URL)
	if err != nil {
		return nil, fmt.Errorf("the other end of copies: %w", err)
	}
	shown := at.scheme() + "://" + at.authority + strings.TrimRight(t.URL.EscapedPath(), "/")
	e := &passiveEnd{shown: shown, query: queryOf(t.URL), push: o.Push}
	via := storage.Target{URL: active.url, Cred: t.Cred} // the secrets of the passive end are sent to the active end
	switch t.Cred.Method {
	case storage.S3Auth, storage.KerberosAuth, storage.UnixAuth:
		err = fmt.Errorf("credentials of method %s cannot be given to another server for a copy: use token, basic, x509 or none: %w",
			t.Cred.Method, errors.ErrUnsupported)
	case storage.X509Auth:
		activities := tpc.MayRead
		if o.Push {
			activities = tpc.MayWrite
		}
		e.macaroons = newMacaroons(e.shown+"/", t.Cred, activities)
	default:
		if e.secret, e.line, err = authorization(&t); err == nil {
			err = via.InClear()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.shown, err)
	}
	e.extra = "Credential: none\r\nOverwrite: F\r\n"
	if o.Streams > 0 {
		e.extra += "X-Number-Of-Streams: " + strconv.Itoa(o.Streams) + "\r\n"
	}
	if tag := strconv.Itoa(o.SciTag); o.SciTag > 0 {
		e.extra += tpc.SciTag + ": " + tag + "\r\nTransferHeader" + tpc.SciTag + ": " + tag + "\r\n"
	}
	return e, nil
}

// url returns the URL of a file at the passive end.
func (e *passiveEnd) url(path string) string { return e.shown + "/" + string(appendPath(nil, path)) }

// headers returns the header lines of a COPY with the file at the passive end, and whether they
// contain credentials.
func (e *passiveEnd) headers(ctx context.Context, path string) (lines string, secret bool, err error) {
	name := "Source: "
	if e.push {
		name = "Destination: "
	}
	lines = e.extra + name + e.url(path) + e.query + "\r\n"
	switch {
	case e.macaroons != nil:
		var text string
		if text, err = e.macaroons.current(ctx); err == nil {
			lines += "TransferHeaderAuthorization: Bearer " + text + "\r\n"
		}
		return lines, true, err
	case e.secret != nil:
		return lines + "TransferHeader" + e.line(e.secret.Current()), true, nil
	}
	return lines, false, nil
}

// copyFile has the server of the client fetch the file from the passive end, or send it there.
func (x *call) copyFile() error {
	e := x.s.passive
	if e == nil {
		return fmt.Errorf("copy without an origin: %w", errors.ErrUnsupported)
	}
	if err := storage.CheckPath(x.Op.Source); err != nil {
		return err
	}
	own, other := x.Op.Path, x.Op.Source
	if e.push {
		own, other = other, own
	}
	for try := 1; ; try++ {
		lines, secret, err := e.headers(x.Ctx, other)
		if err != nil {
			return asStorageError(err)
		}
		l, err := x.wire.do(&request{method: "COPY", path: own, extra: lines, lends: secret})
		if err != nil {
			return err
		}
		if e.push && x.wire.head.status == http.StatusNoContent {
			x.wire.finish(l)
			return asStorageError(notPushed())
		}
		if x.wire.head.status < 300 {
			return x.followCopy(l)
		}
		err = x.refuse(l)
		if try < copyTries && tpc.NotFoundYet(x.wire.head.status, string(x.line)) && pause.For(x.Ctx, copyAgain) {
			continue
		}
		return e.refused(err, x.wire.head.status, string(x.line))
	}
}

// followCopy reads the progress of an accepted copy until its result.
func (x *call) followCopy(l *link) error {
	x.Reach(storage.Opened)
	counted := int64(0)
	count := func(moved int64) {
		if x.Op.Size >= 0 {
			moved = min(moved, x.Op.Size)
		}
		if moved <= counted {
			return
		}
		x.Reach(storage.FirstByte)
		x.Moved(int(moved - counted))
		counted = moved
	}
	if x.wire.head.status != http.StatusNoContent { // a complete response of RFC 4918: the copy is done
		err := tpc.Follow(bodyReader{&x.wire.answer, l}, count)
		if err != nil {
			x.wire.drop(l)
			x.s.passive.failed(err)
			return asStorageError(err)
		}
		_ = x.wire.collect(l, nil, maxReason) // the end of the body; finish detects a body that was cut short
	}
	x.wire.finish(l)
	count(x.Op.Size)
	return nil
}

// notPushed returns the error of a push that was answered with status 204. Servers of RFC 4918 without
// third-party copies, such as nginx, ignore the host of the destination and copy within their folder.
func notPushed() error {
	return &tpc.Error{Kind: tpc.Unsupported, Status: http.StatusNoContent,
		Text: "COPY: status 204 without a report: the server has probably copied the file within itself; use mode pull"}
}

// refused returns the error of a response to COPY without success. err is the error of the status.
func (e *passiveEnd) refused(err error, status int, text string) error {
	verdict, ok := errors.AsType[*tpc.Error](tpc.Refused(status, text, e.push))
	if !ok || verdict.Remote == 0 && (verdict.Kind == tpc.Denied || verdict.Kind == tpc.Busy) {
		return err // it has the methods of authentication, or the pause, that the server names
	}
	e.failed(verdict)
	return asStorageError(verdict)
}

// failed drops a macaroon that the passive end has refused.
func (e *passiveEnd) failed(err error) {
	reported, ok := errors.AsType[*tpc.Error](err)
	if ok && e.macaroons != nil && reported.Kind == tpc.Denied && reported.Remote != 0 {
		e.macaroons.drop()
	}
}

// A copyError is an error of package tpc with the error of package storage that has the same
// meaning.
type copyError struct {
	reported *tpc.Error
	class    error
}

// Error returns the report of the endpoint.
func (e *copyError) Error() string { return e.reported.Error() }

// Unwrap returns both errors.
func (e *copyError) Unwrap() []error { return []error{e.reported, e.class} }

// asStorageError gives an error of a copy the error of package storage with the same meaning.
func asStorageError(err error) error {
	e, ok := errors.AsType[*tpc.Error](err)
	if !ok {
		return err
	}
	if e.Kind == tpc.Broken && e.Err != nil {
		return fmt.Errorf("before the result of the copy was reported: %w", e.Err)
	}
	return &copyError{e, classOf(e)}
}

func classOf(e *tpc.Error) error {
	switch e.Kind {
	case tpc.Unreachable:
		return syscall.EHOSTUNREACH
	case tpc.Denied:
		return fs.ErrPermission
	case tpc.Missing:
		return fs.ErrNotExist
	case tpc.Exists:
		return fs.ErrExist
	case tpc.Full:
		return syscall.ENOSPC
	case tpc.Busy:
		return storage.ErrBusy
	case tpc.Unsupported:
		return errors.ErrUnsupported
	case tpc.Mismatch:
		return storage.ErrChecksum
	case tpc.Stalled:
		return syscall.ETIMEDOUT
	case tpc.Broken:
		return storage.ErrShort
	}
	return storage.ErrServer
}
