package direct

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"weir/internal/token"
	"weir/internal/tpc"
	"weir/loadtest/challenge"
	"weir/storage"
	"weir/storage/gridcert"
)

// ends returns the site that moves the bytes, and the other one.
func (l *link) ends() (active, passive *site) {
	if l.Mode == challenge.Push && l.Protocol != challenge.XRootD {
		return l.from, l.to
	}
	return l.to, l.from
}

// blame returns the name of the site to which a failure belongs, or "" if the error does not tell.
// opened reports whether the copy had begun.
func (l *link) blame(err error, opened bool) string {
	active, passive := l.ends()
	if _, unreachable := between(err); unreachable {
		return passive.name
	}
	reported, hasReport := errors.AsType[*tpc.Error](err)
	var op *storage.OpError
	switch {
	case hasReport && reported.Remote != 0: // the active site passes on the status of the passive site
		return passive.name
	case hasReport && (reported.Kind == tpc.Full || reported.Kind == tpc.Exists):
		return l.to.name
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return l.to.name
	case hasReport && reported.Status != 0, statusOf(err) != 0: // it has refused the request
		return active.name
	case readFailed(err):
		return l.from.name
	case !opened && errors.As(err, &op): // the request itself failed
		return active.name
	case opened && storage.Classify(err) == storage.Reset: // the connection to it
		return active.name
	}
	return ""
}

// exists reports whether a copy failed because there is a file at its destination.
func exists(err error) bool {
	reported, ok := errors.AsType[*tpc.Error](err)
	return ok && reported.Kind == tpc.Exists || errors.Is(err, fs.ErrExist)
}

// between returns the class of a failure of the connection between the two sites, of which the active
// site reports only a text: that of libcurl (XRootD) or of weir serve. unreachable means that the
// passive site accepts no connections. It returns None for other failures.
func between(err error) (class storage.Class, unreachable bool) {
	e, ok := errors.AsType[*tpc.Error](err)
	if !ok || e.Kind != tpc.Failed || e.Remote != 0 || e.Status != 0 {
		return storage.None, false
	}
	text := strings.ToLower(e.Text)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case has("connection refused", "couldn't connect", "could not connect", "failed to connect", "no route to host"):
		return storage.Refused, true
	case has("partial file", "the other server broke", "connection reset", "recv failure", "send failure"):
		return storage.Reset, false
	case has("timed out", "timeout", "no byte moved", "stalled"):
		return storage.Timeout, false
	}
	return storage.None, false
}

// classify returns the class of a failure.
func classify(err error) storage.Class {
	if class, _ := between(err); class != storage.None {
		return class
	}
	return storage.Classify(err)
}

// readFailed reports whether an operation at the source of a copy by root failed.
func readFailed(err error) bool {
	for err != nil {
		op, ok := errors.AsType[*storage.OpError](err)
		if !ok {
			return false
		}
		if op.Kind == storage.Read {
			return true
		}
		err = op.Err
	}
	return false
}

// statusOf returns the HTTP status with which the active site refused a request; 0: there is none.
func statusOf(err error) int {
	var e interface{ Status() int }
	if errors.As(err, &e) {
		return e.Status()
	}
	return 0
}

// reason returns the reason of a failure that belongs to the site blamed.
func (l *link) reason(err error, blamed string) string {
	if errors.Is(err, errors.ErrUnsupported) {
		active, _ := l.ends()
		advice := "enable HTTP-TPC there, or have the other site move the bytes (mode)"
		if l.Protocol == challenge.XRootD {
			advice = "enable third-party copies there (ofs.tpc)"
		}
		err = fmt.Errorf("%s makes no such third-party copies: %s: %w", cmp.Or(blamed, active.name), advice, err)
	}
	return err.Error()
}

// A credential is the credential of a site that a copy used.
type credential struct {
	token string
	until time.Time // end of the token; zero: unknown
}

// credential returns the credential that a copy uses now.
func (s *site) credential() credential {
	if s.cred.Token == "" {
		return credential{}
	}
	raw := s.cred.Bearer().Current()
	return credential{raw, token.ExpiryOf(raw)}
}

// without returns text without the tokens of a copy, which a site may repeat in its messages.
func without(text string, used [2]credential) string {
	for _, c := range used {
		if c.token != "" {
			text = strings.ReplaceAll(text, c.token, "(token)")
		}
	}
	return text
}

// An acceptance has the last token of a site that was accepted.
type acceptance struct {
	mu    sync.Mutex
	token string
}

func (a *acceptance) note(c credential) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token = c.token
}

func (a *acceptance) has(c credential) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return c.token != "" && a.token == c.token
}

// expired reports whether a copy failed because credentials had ended: a token or a certificate
// whose time is over, or a token without a known end that was accepted before and is refused with
// 401 now. blamed is the site to which the failure belongs; "": both sites are examined.
func (l *link) expired(err error, blamed string, used [2]credential) bool {
	denied := errors.Is(err, fs.ErrPermission) || errors.Is(err, storage.ErrLogin)
	if !denied && storage.Classify(err) != storage.Other {
		return false
	}
	for i, s := range []*site{l.from, l.to} {
		c := used[i]
		switch {
		case blamed != "" && blamed != s.name:
		case !c.until.IsZero() && !time.Now().Before(c.until) && denied:
			return true
		case c.until.IsZero() && unauthorized(err) && s.accepted.has(c):
			return true
		case s.certificateEnded():
			return true
		}
	}
	return false
}

// unauthorized reports whether a site has answered with status 401.
func unauthorized(err error) bool {
	if e, ok := errors.AsType[*tpc.Error](err); ok {
		return e.Remote == http.StatusUnauthorized || e.Remote == 0 && e.Status == http.StatusUnauthorized
	}
	return statusOf(err) == http.StatusUnauthorized
}

// certificateEnded reports whether the client certificate or the proxy of a site has ended.
func (s *site) certificateEnded() bool {
	a := s.cred.From
	if a.CertFile == "" && a.ProxyFile == "" {
		return false
	}
	_, at, err := gridcert.NewSource(a).Ends()
	return err == nil && !at.IsZero() && !time.Now().Before(at)
}
