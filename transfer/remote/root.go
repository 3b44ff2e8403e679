package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"weir/internal/digest"
	"weir/internal/tpc"
	"weir/internal/trust"
	"weir/storage"
	"weir/storage/xrootd"
)

const (
	shortAnswer = 2 * time.Minute
	longAnswer  = time.Hour        // for a checksum
	idleTime    = 30 * time.Second // of a session
	maxIdle     = 256

	progressEvery = 2 * time.Second // of a third-party copy

	chunk = 1 << 20 // bytes per request of a stream
	ahead = 4       // requests in flight: a stream holds 4 MiB at most
)

// root sends requests to the endpoints of root URLs.
type root struct {
	tls  *tls.Config
	sums tpc.Sums

	mu     sync.Mutex
	idle   []*session // the most recently used session is last
	closed bool
}

// A key has all properties in which sessions differ.
type key struct {
	server, token, pin, servers string
	sciTag                      string
	proxy                       *tls.Certificate
	delegates                   bool
	guard                       *tpc.Guard
}

// A session is a login at a server.
type session struct {
	key     key
	service storage.Service
	storage.Client
	used time.Time
}

func (s *session) end() {
	_ = s.Close() // nothing is under way
	_ = s.service.Close()
}

// session returns a session for a file, and the file's path. With delegates, its servers receive a
// proxy of the target's.
func (r *root) session(ctx context.Context, t tpc.Target, delegates bool) (*session, string, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, "", &tpc.Error{Kind: tpc.Unsupported, Text: "the URL cannot be read"}
	}
	delegates = delegates && t.Cert != nil
	sciTag := strings.Join(t.Header[tpc.SciTag], "") //nolint:staticcheck // names of a Target are in their own case
	k := key{u.Scheme + "://" + u.Host, t.Token, t.Pin, strings.Join(t.Servers, " "), sciTag, t.Cert, delegates, t.Guard}
	path := strings.TrimLeft(u.Path, "/")
	r.mu.Lock()
	for i, s := range slices.Backward(r.idle) {
		if s.key == k {
			r.idle = slices.Delete(r.idle, i, i+1)
			r.mu.Unlock()
			return s, path, nil
		}
	}
	r.mu.Unlock()
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}
	cred := storage.Credentials{Method: storage.NoAuth, TLS: r.tls.Clone()}
	if t.Cert != nil {
		cred.Method, cred.TLS.Certificates, cred.From.Delegate = storage.X509Auth, []tls.Certificate{*t.Cert}, delegates
	}
	if t.Token != "" {
		cred.Method, cred.Token = storage.TokenAuth, t.Token
		if u.Scheme == "roots" {
			at.RawQuery = "authz=Bearer%20" + url.QueryEscape(t.Token)
		}
	}
	if sciTag != "" {
		at.RawQuery = strings.TrimLeft(at.RawQuery+"&scitag.flow="+sciTag, "&")
	}
	if t.Pin != "" {
		trust.Pin(cred.TLS, t.Pin)
	}
	service, err := xrootd.Driver().Open(ctx, storage.Target{URL: at, Cred: cred, Reach: reach(t, Web(u), delegates)})
	if err != nil {
		return nil, "", &tpc.Error{Kind: tpc.Unsupported, Text: err.Error(), Err: err}
	}
	return &session{key: k, service: service, Client: service.Client()}, path, nil
}

// release keeps a session for later use, unless an error occurred in it.
func (r *root) release(s *session, err error) {
	now := time.Now()
	s.used = now
	var ended []*session
	r.mu.Lock()
	for len(r.idle) > 0 && (now.Sub(r.idle[0].used) > idleTime || len(r.idle) >= maxIdle) {
		ended, r.idle = append(ended, r.idle[0]), r.idle[1:]
	}
	if broken := err != nil && tpc.KindOf(convert(err)) != tpc.Missing; broken || r.closed {
		ended = append(ended, s)
	} else {
		r.idle = append(r.idle, s)
	}
	r.mu.Unlock()
	for _, s := range ended {
		s.end()
	}
}

func (r *root) close() {
	r.mu.Lock()
	ended := r.idle
	r.idle, r.closed = nil, true
	r.mu.Unlock()
	for _, s := range ended {
		s.end()
	}
}

// reach resolves the servers of a target. They must be allowed by its guard. If it has a token or
// delegates a proxy, each server receives it, and must be the target's own server or among its
// Servers.
func reach(t tpc.Target, home *url.URL, delegates bool) storage.Reach {
	own := tpc.Target{URL: "https://" + home.Host, Servers: t.Servers}
	return func(ctx context.Context, host string, port uint16) (netip.AddrPort, error) {
		at := net.JoinHostPort(host, strconv.Itoa(int(port)))
		if (t.Token != "" || delegates) && !own.Trusts(&url.URL{Scheme: "https", Host: at}) {
			return netip.AddrPort{}, fmt.Errorf("%w: %s redirects to %s, which may not see the token or get a proxy", tpc.ErrRefused,
				home.Host, at)
		}
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return netip.AddrPort{}, err
		}
		for _, ip := range found {
			to := netip.AddrPortFrom(ip.Unmap(), port)
			if t.Guard != nil {
				if err = t.Guard.Dialing("tcp", to.String(), nil); err != nil {
					continue
				}
			}
			return to, nil
		}
		return netip.AddrPort{}, err
	}
}

// do runs an operation on the file of a target.
func (r *root) do(ctx context.Context, t tpc.Target, op storage.Op) (storage.Result, error) {
	s, path, err := r.session(ctx, t, false)
	if err != nil {
		return storage.Result{}, err
	}
	op.Path = path
	op.Timeout = cmp.Or(op.Timeout, shortAnswer)
	res, err := s.Do(ctx, &op, storage.NoProgress{})
	r.release(s, err)
	return res, convert(err)
}

func (r *root) stat(ctx context.Context, t tpc.Target) (tpc.Info, error) {
	res, err := r.do(ctx, t, storage.Op{Kind: storage.Stat})
	return tpc.Info{Size: res.Size}, err
}

func (r *root) checksum(ctx context.Context, t tpc.Target, w tpc.Wish) (tpc.Info, error) {
	info, err := r.stat(ctx, t)
	if err != nil {
		return info, err
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return info, err
	}
	done, err := r.sums.Turn(ctx, u.Host, w.Size)
	if err != nil {
		return info, err
	}
	defer done()
	kind, _ := digest.Split(w.Want)
	res, err := r.do(ctx, t, storage.Op{Kind: storage.Checksum, Sum: kind.Name, Timeout: longAnswer})
	switch tpc.KindOf(err) {
	case tpc.Unsupported, tpc.Failed: // the server has no checksum
		return info, nil
	}
	info.Adler = digest.Short(res.Sum)
	return info, err
}

func (r *root) open(ctx context.Context, t tpc.Target) (io.ReadCloser, error) {
	s, path, err := r.session(ctx, t, false)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	out, in := io.Pipe()
	read := &reading{PipeReader: out, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(read.done)
		op := storage.Op{Kind: storage.Read, Path: path, Size: -1, Chunk: chunk, Ahead: ahead}
		_, err := xrootd.ReadTo(ctx, s.Client, &op, storage.NoProgress{}, in)
		r.release(s, err)
		in.CloseWithError(convert(err)) // nil is io.EOF
	}()
	return read, nil
}

// A reading provides the bytes of a file.
type reading struct {
	*io.PipeReader
	stop context.CancelFunc
	done chan struct{}
}

// Close ends the reading, and waits for its end.
func (r *reading) Close() error {
	r.stop()
	err := r.PipeReader.Close()
	<-r.done
	return err
}

func (r *root) store(ctx context.Context, t tpc.Target, size int64, open func() (io.ReadCloser, error)) error {
	s, path, err := r.session(ctx, t, false)
	if err != nil {
		return err
	}
	in, err := open()
	if err != nil {
		r.release(s, nil)
		return err
	}
	op := storage.Op{Kind: storage.Write, Path: path, Size: size, Chunk: chunk, Ahead: ahead}
	_, err = xrootd.WriteFrom(ctx, s.Client, &op, storage.NoProgress{}, in)
	r.release(s, err)
	if err == nil { // the source may have more bytes
		_, err = in.Read(make([]byte, 1))
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	return convert(errors.Join(err, in.Close()))
}

// drive has the active endpoint fetch the file of the passive endpoint. Its progress is the size of the
// file at the active endpoint; xrootd.StallLimit ends a copy without any. A refusal of a server
// before the end counts as not supported: the server may need credentials of its own at the other
// server.
func (r *root) drive(ctx context.Context, o tpc.Order, tell func(moved int64)) error {
	source, from, err := r.session(ctx, o.Passive, false)
	if err != nil {
		return err
	}
	dest, to, err := r.session(ctx, o.Active, true)
	if err != nil {
		r.release(source, nil)
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	copied := make(chan error, 1)
	go func() { copied <- xrootd.Copy(ctx, source.Client, dest.Client, from, to) }()
	var moved int64
	var stalled error
	last := time.Now()
	for ticks := time.NewTicker(progressEvery); ; {
		select {
		case <-ticks.C:
			if info, err := r.stat(ctx, o.Active); err == nil && info.Size > moved {
				moved, last = info.Size, time.Now()
				tell(moved)
			}
			idle := time.Since(last)
			if idle > xrootd.StallLimit(cmp.Or(o.Stall, tpc.StallTime), moved, o.Size) && stalled == nil {
				stalled = tpc.Stall(idle)
				stop(stalled)
			}
			continue
		case err = <-copied:
			ticks.Stop()
		}
		break
	}
	r.release(source, err)
	r.release(dest, err)
	if stalled != nil && err != nil {
		return stalled
	}
	err = convert(err)
	if e, ok := errors.AsType[*tpc.Error](err); ok && ctx.Err() == nil && (e.Kind == tpc.Denied || e.Kind == tpc.Failed) {
		e.Kind = tpc.Unsupported
	}
	return err
}

func (r *root) move(ctx context.Context, t tpc.Target, to string) error {
	taken := t
	taken.URL = to
	switch _, err := r.stat(ctx, taken); {
	case err == nil:
		return &tpc.Error{Kind: tpc.Exists, Text: "kXR_mv: a file of this name is there already"}
	case tpc.KindOf(err) != tpc.Missing && tpc.KindOf(err) != tpc.Denied: // a client that may not read may still move
		return err
	}
	return r.rename(ctx, t, taken)
}

func (r *root) rename(ctx context.Context, t, to tpc.Target) error {
	u, err := url.Parse(t.URL)
	if err != nil {
		return err
	}
	_, err = r.do(ctx, to, storage.Op{Kind: storage.Move, Source: strings.TrimLeft(u.Path, "/")})
	return err
}

func (r *root) replace(ctx context.Context, t tpc.Target, to string) error {
	taken := t
	taken.URL = to
	err := r.rename(ctx, t, taken)
	if tpc.KindOf(err) != tpc.Exists {
		return err
	}
	if err := r.remove(ctx, taken); err != nil {
		return err
	}
	return r.rename(ctx, t, taken)
}

func (r *root) remove(ctx context.Context, t tpc.Target) error {
	_, err := r.do(ctx, t, storage.Op{Kind: storage.Remove})
	if tpc.KindOf(err) == tpc.Missing {
		return nil
	}
	return err
}

func (r *root) ask(ctx context.Context, t tpc.Target) (tpc.Abilities, error) {
	_, err := r.do(ctx, t, storage.Op{Kind: storage.Login})
	return tpc.Abilities{Move: true, Server: "XRootD protocol"}, err
}

// convert returns an error as an error of package tpc.
func convert(err error) error {
	var known *tpc.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := &tpc.Error{Kind: tpc.Failed, Begun: true, Text: err.Error(), Err: err}
	var inner *storage.OpError
	if errors.As(err, &inner) { // without the URL, which is known
		e.Text = fmt.Sprintf("%s: %v", inner.Kind, inner.Err)
	}
	var name *net.DNSError
	var cert *tls.CertificateVerificationError
	switch class := storage.Classify(err); {
	case errors.Is(err, xrootd.ErrNoThirdParty):
		e.Kind, e.Begun = tpc.Unsupported, false
	case errors.Is(err, tpc.ErrRefused), class == storage.Denied:
		e.Kind = tpc.Denied
	case errors.Is(err, fs.ErrExist):
		e.Kind = tpc.Exists
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Kind = tpc.Full
	case class == storage.NotFound:
		e.Kind = tpc.Missing
	case class == storage.Busy:
		e.Kind = tpc.Busy
	case class == storage.Checksummed:
		e.Kind = tpc.Mismatch
	case class == storage.Refused, errors.As(err, &name), errors.As(err, &cert), errors.Is(err, trust.ErrPin),
		errors.Is(err, storage.ErrNoTLS):
		e.Kind, e.Begun = tpc.Unreachable, false
	case errors.Is(err, errors.ErrUnsupported):
		e.Kind = tpc.Unsupported
	case class == storage.Timeout, class == storage.Reset, class == storage.Short, class == storage.Sized, errors.Is(err, storage.ErrProtocol):
		e.Kind = tpc.Broken
	}
	return e
}
