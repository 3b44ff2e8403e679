package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"weir/internal/token"
	"weir/internal/tpc"
	"weir/internal/trust"
)

// Copying allows third-party copies: a client sends COPY, and this server gets a
// file from another one (pull), or puts one there (push).
type Copying struct {
	Guard tpc.Guard         // which servers; without any host, none
	TLS   *tls.Config       // authorities of those servers; nil is the system's
	Pins  map[string]string // certificates of those servers, see tpc.Options
	Most  int               // copies at once; more are told to come again; 0 is 100
}

// A copier makes third-party copies.
type copier struct {
	*tpc.Client
	guard tpc.Guard
	room  chan struct{}
	every time.Duration // between two markers
}

func newCopier(c *Copying) *copier {
	if c == nil {
		return nil
	}
	most := c.Most
	if most <= 0 {
		most = 100
	}
	k := &copier{guard: c.Guard, room: make(chan struct{}, most), every: tpc.MarkerEvery}
	k.Client = tpc.New(tpc.Options{TLS: c.TLS, Pins: c.Pins, Guard: &k.guard, Name: "weir serve"})
	return k
}

func (k *copier) close() {
	if k != nil {
		k.Close()
	}
}

// elsewhere says whether a COPY names a file of another server.
func (s *Server) elsewhere(r *request) bool {
	if r.Header.Get("Source") != "" {
		return true
	}
	u, err := url.Parse(r.Header.Get("Destination"))
	return s.copier != nil && err == nil && u.Host != "" && !strings.EqualFold(u.Host, r.Host)
}

// A job is one third-party copy.
type job struct {
	name    string // of the file here
	push    bool
	other   tpc.Target
	replace bool
	verify  string            // RequireChecksumVerification: true, false or ""
	stated  map[string]string // checksums that the client says the file has
	moved   atomic.Int64
	room    *room
	asked   int                 // connections that the client wants (X-Number-Of-Streams)
	allow   func(time.Duration) // for so long nothing may happen from now on
	peer    peer
}

// thirdParty answers a COPY from or to another server. What is wrong with the
// request is told by the status; what goes wrong later, by the last line.
func (s *Server) thirdParty(r *request) {
	j, code, err := s.job(r)
	if err != nil {
		r.fail(code, err.Error())
		return
	}
	select {
	case s.copier.room <- struct{}{}:
		defer func() { <-s.copier.room }()
	default:
		r.w.Header().Set("Retry-After", "5")
		r.fail(http.StatusServiceUnavailable, fmt.Sprintf("%d copies are under way: come again", cap(s.copier.room)))
		return
	}
	j.room = s.room(r)
	defer j.room.give()
	if err := s.ready(r, j); err != nil {
		r.failed(err)
		return
	}
	s.conf.Log.Info("third-party copy", "push", j.push, "name", j.name, "with", j.peer.host)
	err = s.report(r, j)
	s.conf.Log.Info("third-party copy ended", "push", j.push, "name", j.name, "with", j.peer.host, "bytes", j.moved.Load(), "error", err)
}

// job reads a COPY. An error has a status.
func (s *Server) job(r *request) (*job, int, error) {
	if s.copier == nil {
		return nil, http.StatusNotImplemented, errors.New("this server makes no third-party copies (weir serve --third-party)")
	}
	source, destination := r.Header.Get("Source"), r.Header.Get("Destination")
	if source != "" && destination != "" {
		return nil, http.StatusBadRequest, errors.New("Source and Destination: name one of them") //nolint:staticcheck // names of headers
	}
	j := &job{name: r.name, push: destination != "", other: tpc.Target{URL: source + destination, Pin: r.Header.Get(tpc.PinHeader), Header: http.Header{}},
		verify: r.Header.Get("RequireChecksumVerification"), replace: r.Header.Get("Overwrite") != "F", stated: stated(r.Header)}
	if n, err := strconv.Atoi(r.Header.Get("X-Number-Of-Streams")); err == nil { // else it is left to us
		j.asked = max(n, 1)
	}
	if !j.push && s.conf.ReadOnly {
		return nil, http.StatusMethodNotAllowed, errors.New("this server does not let files be changed")
	}
	u, err := url.Parse(j.other.URL)
	switch {
	case err != nil:
		return nil, http.StatusBadRequest, errors.New("the other server's URL cannot be read")
	case r.ContentLength != 0:
		return nil, http.StatusUnsupportedMediaType, errors.New("COPY has no body")
	case j.verify != "" && j.verify != "true" && j.verify != "false":
		return nil, http.StatusBadRequest, errors.New("RequireChecksumVerification is true or false")
	case !oneOf(r.Header.Get("Overwrite"), "", "T", "F"):
		return nil, http.StatusBadRequest, errors.New("Overwrite is T or F") //nolint:staticcheck // the name of a header
	case j.other.Pin != "" && !trust.IsPin(j.other.Pin):
		return nil, http.StatusBadRequest, errors.New(tpc.PinHeader + " is the SHA-256 of a certificate, in 64 hexadecimal digits")
	case !oneOf(r.Header.Get("Credential"), "", "none"):
		return nil, http.StatusBadRequest, errors.New("no credential is delegated here: send Credential: none, and what the other server needs as TransferHeaderAuthorization")
	}
	if err := s.copier.guard.Check(u); err != nil {
		return nil, http.StatusForbidden, err
	}
	j.peer.host = u.Host
	for name, values := range r.Header {
		if to, ok := tpc.Forwarded(name); ok {
			j.other.Header[to] = values
		}
	}
	return j, 0, nil
}

func oneOf(text string, all ...string) bool {
	for _, a := range all {
		if text == a {
			return true
		}
	}
	return false
}

// ready is an error if a copy cannot be made as far as this server goes.
func (s *Server) ready(r *request, j *job) error {
	if err := s.precondition(r); err != nil {
		return err
	}
	if j.push {
		if !r.may(token.Read, r.name) {
			return errRights
		}
		e, err := s.tree.stat(r.name)
		if err == nil && (e.dir || r.folder) {
			err = errIsDir
		}
		return err
	}
	if !r.may(token.Create, r.name) {
		return errRights
	}
	e, err := s.tree.stat(r.name)
	switch {
	case err == nil && e.dir || r.folder:
		return errIsDir
	case err == nil && !j.replace:
		return errExists
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return parentless(err)
	}
	j.replace = j.replace && r.may(token.Modify, r.name)
	return s.replaceable(r, r.name)
}

// report makes a copy and tells how far it is until it ended, in the way that
// package tpc reads. It returns what it told last.
func (s *Server) report(r *request, j *job) error {
	ctx, give := context.WithCancelCause(r.Context()) // ends when the client is gone
	defer give(nil)
	watch := time.AfterFunc(s.conf.StallTimeout, func() { give(errIdle) })
	defer watch.Stop()
	j.allow = func(d time.Duration) { watch.Reset(d) }
	h := r.w.Header()
	h.Set("Content-Type", "text/perf-marker-stream")
	h.Set("Cache-Control", "no-store")
	r.w.WriteHeader(http.StatusAccepted)
	out, flush := uncounted{r.w}, http.NewResponseController(r.w)
	mark := func() error {
		return errors.Join(tpc.Marker{At: time.Now(), Moved: j.moved.Load(), Remote: j.peer.address()}.Write(out), flush.Flush())
	}
	err := mark()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.transfer(httptrace.WithClientTrace(ctx, j.peer.trace()), j) }()
	tick := time.NewTicker(s.copier.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := mark(); err != nil {
				give(err) // nobody is there to hear
			}
			continue
		case err = <-ended:
		}
		break
	}
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errIdle) {
			err = cause
		}
		return errors.Join(err, tpc.Failure(out, err.Error()))
	}
	return errors.Join(mark(), tpc.Success(out))
}

var errIdle = errors.New("no byte moved for too long")

func (s *Server) transfer(ctx context.Context, j *job) error {
	if j.push {
		return s.push(ctx, j)
	}
	return s.pull(ctx, j)
}

// compare is an error unless a file has the checksum that the other server, and the
// client, say. told "" is none.
func (j *job) compare(own map[string]string, told string) error {
	for alg, want := range j.stated {
		if got, ok := own[alg]; ok && got != want {
			return fmt.Errorf("checksum differs: %s arrived, %s was stated", got, want)
		}
	}
	got := strings.TrimPrefix(own[adlerName], adlerName+":")
	switch {
	case told == "" && j.verify == "true":
		return errors.New("the other server tells no adler32 checksum, and verification is required")
	case told != "" && told != got:
		return fmt.Errorf("checksum differs: adler32 %s here, %s there", got, told)
	}
	return nil
}

const adlerName = "adler32"

// A peer is the other server of a copy.
type peer struct {
	host string
	addr atomic.Pointer[net.Addr]
}

func (p *peer) address() net.Addr {
	if a := p.addr.Load(); a != nil {
		return *a
	}
	return nil
}

// trace notes which address is connected.
func (p *peer) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		a := i.Conn.RemoteAddr()
		p.addr.Store(&a)
	}}
}
