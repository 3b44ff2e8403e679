package wire

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/internal/preauth"
	"weir/internal/token"
)

// Limits for connections that have not presented a token.
const (
	maxUnauthenticated = 512              // connections at a time
	maxWaiting         = 4096             // connections that wait
	patience           = preauth.Patience // until a token must have been presented
)

// Limits for clients with the token.
const (
	bodyTime = time.Minute     // to send the body of a request
	idleTime = 2 * time.Minute // between two requests on a connection
	slowest  = 5 * time.Minute // from a request to the end of its response
)

// A Server serves HTTPS requests. It is safe for concurrent use.
type Server struct {
	listener net.Listener
	mux      *http.ServeMux  // for requests that passed the check
	public   *http.ServeMux  // for all requests
	trees    map[string]tree // of MountTree
	http     http.Server
	begun    sync.Once
	begin    func()
	ended    chan struct{}
	silent   sync.Map // connections that have not sent a request yet
	check    func(*http.Request) (context.Context, error)
	refused  func(from string)
	bodies   bodies
	user     func(context.Context) string
}

// A Config configures how a server authenticates itself and its clients.
type Config struct {
	TLS *tls.Config // nil: plain HTTP, for addresses of this machine only
	// Check authenticates a request. It returns the context of the request, or an *Error (for any
	// other error the status is 401).
	Check   func(*http.Request) (context.Context, error)
	Refused func(from string) // called for each request with response 401; may be nil

	Bodies Bodies                       // limits of bodies in progress
	User   func(context.Context) string // whose request it is, of the context that Check returned; nil: all are of one user
}

// Listen returns a server at address (HOST:PORT; port 0 is any free one) that requires the token of
// id. Connections wait until Begin, so that no client receives "not found" before its handler is
// registered. refused, if it is not nil, is called with the client's address for each request with
// a wrong token.
func Listen(ctx context.Context, address string, id *Identity, refused func(from string)) (*Server, error) {
	want := sha256.Sum256([]byte(id.Token))
	check := func(r *http.Request) (context.Context, error) {
		raw, _ := token.FromHeader(r)
		if sum := sha256.Sum256([]byte(raw)); subtle.ConstantTimeCompare(sum[:], want[:]) != 1 {
			return nil, Refuse(http.StatusUnauthorized, "the token is wrong")
		}
		return r.Context(), nil
	}
	secure := &tls.Config{Certificates: []tls.Certificate{id.Cert}, MinVersion: tls.VersionTLS13}
	return Serve(ctx, address, Config{TLS: secure, Check: check, Refused: refused})
}

// Serve works like Listen, with another way of authentication.
func Serve(ctx context.Context, address string, c Config) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{
		listener: preauth.Limit(l, maxUnauthenticated, maxWaiting), mux: http.NewServeMux(), public: http.NewServeMux(), trees: map[string]tree{},
		ended: make(chan struct{}), check: c.Check, refused: c.Refused,
		bodies: bodies{Bodies: c.Bodies}, user: c.User,
	}
	s.http = http.Server{
		Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: patience, IdleTimeout: idleTime,
		MaxHeaderBytes: 64 << 10,                   // a thousand ids of jobs
		ErrorLog:       log.New(io.Discard, "", 0), // failed handshakes of foreign clients do not matter
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, connOf(c))
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateNew {
				s.silent.Store(c, nil)
			} else {
				s.silent.Delete(c)
			}
		},
		Protocols: new(http.Protocols),
	}
	s.http.Protocols.SetHTTP1(true) // a long poll must not delay the next request
	served := s.listener
	if c.TLS != nil {
		secure := c.TLS.Clone()
		secure.NextProtos = []string{"http/1.1"}
		served = tls.NewListener(s.listener, secure)
	}
	s.begin = func() {
		go func() {
			_ = s.http.Serve(served) // ends when it is closed
			close(s.ended)
		}()
	}
	return s, nil
}

// Ends returns the addresses of both ends of the connection on which a request of a Server came: this machine's and the
// client's. ctx is that of the request; the addresses are not valid for any other.
func Ends(ctx context.Context) (local, remote netip.Addr) {
	c, ok := ctx.Value(connKey{}).(*preauth.Conn)
	if !ok {
		return local, remote
	}
	address := func(a net.Addr) netip.Addr {
		if t, ok := a.(*net.TCPAddr); ok {
			return t.AddrPort().Addr().Unmap()
		}
		return netip.Addr{}
	}
	return address(c.LocalAddr()), address(c.RemoteAddr())
}

type connKey struct{}

// connOf returns the limited connection below TLS.
func connOf(c net.Conn) *preauth.Conn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	v, _ := c.(*preauth.Conn)
	return v
}

// Begin starts to answer requests. It is called after all handlers have been added.
func (s *Server) Begin() { s.begun.Do(s.begin) }

// Addr returns the address at which the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close ends the server. Requests in progress have five seconds.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s.begun.Do(func() {
		_ = s.listener.Close() // it never served
		close(s.ended)
	})
	s.silent.Range(func(c, _ any) bool { // Shutdown would wait for a request on them
		_ = c.(net.Conn).Close()
		return true
	})
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-s.ended
	return err
}

// serve handles requests that are public or pass the check. The body of any other request is not
// read.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(slowest)) // always supported here; streams move it
	w.Header().Set("X-Content-Type-Options", "nosniff")                         // for browsers
	w.Header().Set("Cache-Control", "no-store")
	below, isTree := s.tree(r)
	if _, pattern := s.public.Handler(r); pattern != "" && !isTree {
		s.public.ServeHTTP(w, r)
		return
	}
	ctx, err := s.check(r)
	if err != nil {
		status := cmp.Or(Status(err), http.StatusUnauthorized)
		if status == http.StatusUnauthorized && s.refused != nil {
			s.refused(r.RemoteAddr)
		}
		w.Header().Set("Connection", "close")
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="weir"`)
		}
		below.refuse(w, status, err)
		return
	}
	if v, ok := r.Context().Value(connKey{}).(*preauth.Conn); ok {
		v.Authenticated()
	}
	user := ""
	if s.user != nil {
		user = s.user(ctx)
	}
	r = r.WithContext(ctx)
	counted := s.bodies.begin(user, r.Body)
	defer counted.end()
	r.Body = counted
	below.handler.ServeHTTP(w, r)
}

// A tree handles the requests that pass the check, and refuses the others.
type tree struct {
	handler http.Handler
	refuse  func(w http.ResponseWriter, status int, err error)
}

// tree returns that of MountTree for a request; ok is false if it is that of all other requests.
func (s *Server) tree(r *http.Request) (_ tree, ok bool) {
	for path, t := range s.trees {
		if rest, ok := strings.CutPrefix(r.URL.Path, path); ok && (rest == "" || rest[0] == '/') {
			return t, true
		}
	}
	return tree{s.mux, fail}, false
}

// Mount adds a handler for authenticated requests. pattern is that of http.ServeMux.
func (s *Server) Mount(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// MountTree adds a handler for all authenticated requests at and below a path. Unlike that of Mount
// it gets paths as they were sent: a client that writes // is not redirected. refuse responds to
// the requests that do not pass the check.
func (s *Server) MountTree(path string, h http.Handler, refuse func(w http.ResponseWriter, status int, err error)) {
	s.trees[path] = tree{h, refuse}
}

// Public adds a handler for all requests. Connections without a token are closed after ten seconds.
func (s *Server) Public(pattern string, h http.Handler) { s.public.Handle(pattern, h) }

// Handle adds f as the handler of POST requests at path, with JSON bodies of at most most bytes. f
// may run many times at once; ctx ends when the client disconnects. The response to an error that
// is not an *Error has status 500.
func Handle[In, Out any](s *Server, path string, most int64, f func(ctx context.Context, in *In) (*Out, error)) {
	handle(s, "POST "+path, most, false, func(r *http.Request, in *In) (*Out, error) { return f(r.Context(), in) })
}

// Answer registers f as Handle does, for a pattern of http.ServeMux, such as "POST /things/{name}". Unknown
// fields and trailing data are refused; in is empty for GET requests.
func Answer[In, Out any](s *Server, pattern string, most int64, f func(r *http.Request, in *In) (Out, error)) {
	handle(s, pattern, most, true, f)
}

func handle[In, Out any](s *Server, pattern string, most int64, strict bool, f func(r *http.Request, in *In) (Out, error)) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		in := new(In)
		if r.Method == http.MethodPost {
			if err := read(w, r, most, in, strict); err != nil {
				fail(w, Status(err), err)
				return
			}
		}
		out, err := f(r, in)
		if err != nil {
			fail(w, Status(err), err)
			return
		}
		answer(w, http.StatusOK, out)
	})
}

// read decodes the body of a request. If strict is true, it refuses unknown fields and trailing data.
func read(w http.ResponseWriter, r *http.Request, most int64, in any, strict bool) error {
	if r.ContentLength > most { // a body that is too long is not read
		w.Header().Set("Connection", "close")
		return tooLarge(most)
	}
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(bodyTime)) // always supported here
	body := http.MaxBytesReader(w, r.Body, most)
	d := json.NewDecoder(body)
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(&in) // null makes it nil
	if err == nil && in == nil {
		err = errors.New("expected an object, not null")
	}
	if err != nil {
		if refused := BodyRefused(r.Body); refused != nil {
			w.Header().Set("Connection", "close") // the rest is not read
			return refused
		}
		if errors.As(err, new(*http.MaxBytesError)) {
			return tooLarge(most)
		}
		return RefuseCode(http.StatusBadRequest, CodeMalformed, "malformed JSON body: %s", err.Error())
	}
	if strict {
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return RefuseCode(http.StatusBadRequest, CodeMalformed, "trailing data after the JSON body")
		}
	}
	_, _ = io.Copy(io.Discard, body)   // a final line feed
	_ = c.SetReadDeadline(time.Time{}) // the response may take its time
	return nil
}

func tooLarge(most int64) error {
	return Refuse(http.StatusRequestEntityTooLarge, "the JSON body is larger than %d bytes", most)
}

// HandleBytes adds f as the handler of GET requests at path. f returns JSON compressed with gzip.
func HandleBytes(s *Server, path string, f func() ([]byte, error)) {
	s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		b, err := f()
		if err != nil {
			fail(w, max(Status(err), http.StatusBadRequest), err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(b) // a client that has disconnected repeats the request
	})
}

// SetRetryAfter sets the header Retry-After to the After of an *Error, if it has one.
func SetRetryAfter(w http.ResponseWriter, err error) {
	if e, ok := errors.AsType[*Error](err); ok && e.After > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((e.After+time.Second-1)/time.Second)))
	}
}

// fail sends an error as the response; status 0 is 500.
func fail(w http.ResponseWriter, status int, err error) {
	SetRetryAfter(w, err)
	status = cmp.Or(status, http.StatusInternalServerError)
	answer(w, status, ErrorBody{err.Error(), code(status, err)})
}

func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"the response cannot be encoded","code":"internal_error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that has disconnected repeats the request
}

// Fail sends an error as the response; an error that is not an *Error has status 500.
func Fail(w http.ResponseWriter, err error) { fail(w, Status(err), err) }
