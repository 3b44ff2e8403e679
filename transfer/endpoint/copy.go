package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"weir/internal/adler"
	"weir/internal/content"
	"weir/internal/token"
	"weir/internal/tpc"
	"weir/internal/trust"
	"weir/serve"
)

// CopyOptions configure NewCopier.
type CopyOptions struct {
	Guard tpc.Guard         // allowed servers; without any host, no server is allowed
	TLS   *tls.Config       // authorities of those servers; nil selects the system's
	Pins  map[string]string // certificates of those servers, see tpc.Options
	Most  int               // copies at once; further requests are refused with a retry time; 0 is 100
}

// A Copier is an Extension that makes third-party copies: a client sends COPY, and the server
// downloads a file from another server (pull), or uploads a file to it (push).
type Copier struct {
	client *tpc.Client
	guard  tpc.Guard
	slots  chan struct{}
	every  time.Duration // between two markers
	server *serve.Server
	stall  time.Duration // for which no byte may move
}

// NewCopier returns a Copier for one serve.Config.
func NewCopier(o CopyOptions) *Copier {
	if o.Most <= 0 {
		o.Most = 100
	}
	c := &Copier{guard: o.Guard, slots: make(chan struct{}, o.Most), every: tpc.MarkerEvery}
	c.client = tpc.New(tpc.Options{TLS: o.TLS, Pins: o.Pins, Guard: &c.guard, Name: "weir serve"})
	return c
}

// Attach implements serve.Extension.
func (c *Copier) Attach(s *serve.Server) error {
	c.server, c.stall = s, s.Config().StallTimeout
	s.EndCopies(tpc.Success) // clients of third-party copies fail without a verdict
	return nil
}

// Close implements serve.Extension.
func (c *Copier) Close() error {
	c.client.Close()
	return nil
}

// A job is one third-party copy.
type job struct {
	*Copier
	name    string // of the file here
	push    bool
	other   tpc.Target
	replace bool
	verify  string            // RequireChecksumVerification: true, false or ""
	stated  map[string]string // checksums of the file that the client has stated
	moved   atomic.Int64
	quota   *serve.Quota
	asked   int                 // connections that the client requests (X-Number-Of-Streams)
	allow   func(time.Duration) // extends the time in which no byte may move
	peer    peer
}

// Answer implements serve.Extension: it executes a COPY from or to another server. An invalid
// request is refused with a status; errors that occur later are in the last line of the response.
func (c *Copier) Answer(r *serve.Request) bool {
	u, err := url.Parse(r.Header.Get("Destination"))
	elsewhere := r.Header.Get("Source") != "" || err == nil && u.Host != "" && !strings.EqualFold(u.Host, r.Host)
	if r.Method != "COPY" || !elsewhere {
		return false
	}
	j, err := c.job(r)
	if err != nil {
		r.FailWith(err)
		return true
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	default:
		r.Response().Header().Set("Retry-After", "5")
		r.Fail(http.StatusServiceUnavailable, fmt.Sprintf("%d copies are under way: come again", cap(c.slots)))
		return true
	}
	j.quota = r.Quota()
	defer j.quota.Release()
	if err := j.ready(r); err != nil {
		r.FailWith(err)
		return true
	}
	log := c.server.Config().Log.With("push", j.push, "name", j.name, "with", j.peer.host)
	log.Info("third-party copy")
	err = j.report(r)
	log.Info("third-party copy ended", "bytes", j.moved.Load(), "error", err)
	return true
}

// job parses a COPY. Its error is a *serve.Refusal.
func (c *Copier) job(r *serve.Request) (*job, error) {
	h := r.Header
	source, destination := h.Get("Source"), h.Get("Destination")
	j := &job{Copier: c, name: r.Name, push: destination != "", verify: h.Get("RequireChecksumVerification"),
		other:   tpc.Target{URL: source + destination, Pin: h.Get(tpc.PinHeader), Header: http.Header{}},
		replace: h.Get("Overwrite") != "F", stated: serve.Stated(h)}
	if n, err := strconv.Atoi(h.Get("X-Number-Of-Streams")); err == nil { // else this server chooses
		j.asked = max(n, 1)
	}
	u, err := url.Parse(j.other.URL)
	refuse := func(code int, reason string) (*job, error) { return nil, &serve.Refusal{Code: code, Reason: reason} }
	switch {
	case source != "" && destination != "":
		return refuse(http.StatusBadRequest, "Source and Destination: name one of them")
	case !j.push && c.server.Config().ReadOnly:
		return refuse(http.StatusMethodNotAllowed, "this server does not let files be changed")
	case err != nil:
		return refuse(http.StatusBadRequest, "the other server's URL cannot be read")
	case r.ContentLength != 0:
		return refuse(http.StatusUnsupportedMediaType, "COPY has no body")
	case !slices.Contains([]string{"", "true", "false"}, j.verify):
		return refuse(http.StatusBadRequest, "RequireChecksumVerification is true or false")
	case !slices.Contains([]string{"", "T", "F"}, h.Get("Overwrite")):
		return refuse(http.StatusBadRequest, "Overwrite is T or F")
	case j.other.Pin != "" && !trust.IsPin(j.other.Pin):
		return refuse(http.StatusBadRequest, tpc.PinHeader+" is the SHA-256 of a certificate, in 64 hexadecimal digits")
	case !slices.Contains([]string{"", "none"}, h.Get("Credential")):
		return refuse(http.StatusBadRequest,
			"no credential is delegated here: send Credential: none, and what the other server needs as TransferHeaderAuthorization")
	}
	if err := c.guard.Check(u); err != nil {
		return refuse(http.StatusForbidden, err.Error())
	}
	j.peer.host = u.Host
	for name, values := range h {
		if to, ok := tpc.Forwarded(name); ok {
			j.other.Header[to] = values
		}
	}
	return j, nil
}

// ready returns an error if this server cannot make a copy.
func (j *job) ready(r *serve.Request) error {
	if err := r.Precondition(); err != nil {
		return err
	}
	need := token.Create
	if j.push {
		need = token.Read
	}
	if !r.May(need, r.Name) {
		return serve.ErrRights
	}
	folder, err := j.server.IsFolder(r.Name)
	switch {
	case j.push && err != nil:
		return err
	case r.Folder || err == nil && folder:
		return serve.ErrIsFolder
	case j.push:
		return nil
	case err == nil && !j.replace:
		return serve.ErrExists
	case errors.Is(err, syscall.ENOTDIR):
		return serve.ErrNoParent
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	j.replace = j.replace && r.May(token.Modify, r.Name)
	return r.Replaceable(r.Name)
}

// Markers of the first seconds come at a shorter interval: a client that controls the rate of copies
// would otherwise see nothing of a short copy before its end.
const (
	earlyEvery = time.Second
	earlyTime  = 2 * tpc.MarkerEvery
)

var errIdle = errors.New("no byte moved for too long")

// report makes a copy and writes performance markers, and the result at the end, in the format that
// package tpc reads. It returns the error of the copy.
func (j *job) report(r *serve.Request) error {
	ctx, cancel := context.WithCancelCause(r.Context()) // ends when the client disconnects
	defer cancel(nil)
	watch := time.AfterFunc(j.stall, func() { cancel(errIdle) })
	defer watch.Stop()
	j.allow = func(d time.Duration) { watch.Reset(d) }
	w, out := r.Response(), r.Text()
	w.Header().Set("Content-Type", "text/perf-marker-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusAccepted)
	mark := func() error {
		m := tpc.Marker{At: time.Now(), Moved: j.moved.Load(), Remote: j.peer.address()}
		return errors.Join(m.Write(out), http.NewResponseController(w).Flush())
	}
	if err := mark(); err != nil {
		return err
	}
	move := j.doPull
	if j.push {
		move = j.doPush
	}
	ended := make(chan error, 1)
	go func() { ended <- move(httptrace.WithClientTrace(ctx, j.peer.trace())) }()
	tick := time.NewTicker(min(j.every, earlyEvery))
	defer tick.Stop()
	late := time.After(earlyTime)
	for {
		select {
		case <-late:
			tick.Reset(j.every)
			continue
		case <-tick.C:
			if err := mark(); err != nil {
				cancel(err) // the client has disconnected
			}
			continue
		case err := <-ended:
			if err == nil {
				return errors.Join(mark(), tpc.Success(out))
			}
			if cause := context.Cause(ctx); errors.Is(cause, errIdle) {
				err = cause
			}
			return errors.Join(err, tpc.Failure(out, err.Error()))
		}
	}
}

const adlerName = "adler32"

// newHashes returns a hash for adler32 and for each stated checksum.
func newHashes(stated map[string]string) map[string]hash.Hash {
	hashes := map[string]hash.Hash{}
	for alg := range stated {
		if h, err := content.NewHash(alg); err == nil {
			hashes[alg] = h
		}
	}
	hashes[adlerName] = adler.New()
	return hashes
}

func textsOf(hashes map[string]hash.Hash) map[string]string {
	texts := map[string]string{}
	for alg, h := range hashes {
		texts[alg] = content.Text(alg, h)
	}
	return texts
}

// compare returns an error unless a file has the checksums that the other server reported and that
// the client stated. An empty reported is no checksum.
func (j *job) compare(own map[string]string, reported string) error {
	for alg, want := range j.stated {
		if got, ok := own[alg]; ok && got != want {
			return fmt.Errorf("checksum differs: %s arrived, %s was stated", got, want)
		}
	}
	got := strings.TrimPrefix(own[adlerName], adlerName+":")
	switch {
	case reported == "" && j.verify == "true":
		return errors.New("the other server tells no adler32 checksum, and verification is required")
	case reported != "" && reported != got:
		return fmt.Errorf("checksum differs: adler32 %s here, %s there", got, reported)
	}
	return nil
}

// count counts bytes that moved; pace counts them at the server and limits its rate.
func (j *job) count(n int, pace func(int)) {
	j.moved.Add(int64(n))
	j.allow(j.stall)
	pace(n)
}

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

// trace records the address of the connection.
func (p *peer) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		a := i.Conn.RemoteAddr()
		p.addr.Store(&a)
	}}
}
