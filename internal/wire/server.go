package wire

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What somebody without the token may have of the server.
const (
	strangers = 512              // connections at a time that have not proven anything yet
	patience  = 10 * time.Second // for which one of them may take to do so
)

// What who has the token may have.
const (
	bodyTime = time.Minute     // to send a question
	idleTime = 2 * time.Minute // between two questions on a connection
	slowest  = 5 * time.Minute // to take an answer, from the question on
)

// A Server answers questions. Its methods may be called by several goroutines.
type Server struct {
	listener net.Listener
	mux      *http.ServeMux // for who has passed the check
	public   *http.ServeMux // for everybody
	http     http.Server
	begun    sync.Once
	begin    func()
	ended    chan struct{}
	silent   sync.Map // connections on which nothing was asked yet
	check    func(*http.Request) (context.Context, error)
	refused  func(from string)
}

// A Config is how a server proves itself and whom it answers.
type Config struct {
	TLS *tls.Config // nil: without TLS, which only addresses of this machine are fit for
	// Check lets in who asks, or says why not: an *Error, else 401. The context is
	// that of the request, with what is worth knowing of who asks.
	Check   func(*http.Request) (context.Context, error)
	Refused func(from string) // told of each question that Check refused with 401; may be nil
}

// Listen has a server listen at address (HOST:PORT; port 0 is any free one). Questions
// wait until Begin: who has found the server must not hear that it does not know them. refused, if it is not nil, is told
// of each question whose token was wrong, with the address of who asked.
func Listen(ctx context.Context, address string, id *Identity, refused func(from string)) (*Server, error) {
	want := sha256.Sum256([]byte(id.Token))
	check := func(r *http.Request) (context.Context, error) {
		if sum := sha256.Sum256([]byte(Bearer(r))); subtle.ConstantTimeCompare(sum[:], want[:]) != 1 {
			return nil, Refuse(http.StatusUnauthorized, "the token is wrong")
		}
		return r.Context(), nil
	}
	return Serve(ctx, address, Config{
		TLS:   &tls.Config{Certificates: []tls.Certificate{id.Cert}, MinVersion: tls.VersionTLS13},
		Check: check, Refused: refused,
	})
}

// Serve is Listen with another way to prove itself, or to know who asks.
func Serve(ctx context.Context, address string, c Config) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	s := &Server{mux: http.NewServeMux(), public: http.NewServeMux(), ended: make(chan struct{}), check: c.Check, refused: c.Refused}
	s.listener = newPreAuthLimiter(l, strangers)
	s.http = http.Server{
		Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: patience, IdleTimeout: idleTime, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // whatever knocks at an open port is no affair of the run
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, visitorKey{}, visitorOf(c))
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
	s.http.Protocols.SetHTTP1(true) // a question that waits must not hold up the next one
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

// Begin has the server answer. It is called when all that it is to answer was named.
func (s *Server) Begin() { s.begun.Do(s.begin) }

// Bearer returns the token that a question shows, "" if none.
func Bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// Addr returns where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close ends the server: questions that are being answered have five seconds.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s.begun.Do(func() {
		_ = s.listener.Close() // nobody was answered
		close(s.ended)
	})
	s.silent.Range(func(c, _ any) bool { // Shutdown would wait for a question on them
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

// serve lets in who passes the check. Of others not even the question is read,
// unless it is one that everybody may ask.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(slowest)) // connections of this server can; streams move it
	w.Header().Set("X-Content-Type-Options", "nosniff")                         // should it be a browser
	w.Header().Set("Cache-Control", "no-store")
	if _, pattern := s.public.Handler(r); pattern != "" {
		s.public.ServeHTTP(w, r)
		return
	}
	ctx, err := s.check(r)
	if err != nil {
		status := Status(err)
		if status == 0 {
			status = http.StatusUnauthorized
		}
		if status == http.StatusUnauthorized && s.refused != nil {
			s.refused(r.RemoteAddr)
		}
		w.Header().Set("Connection", "close")
		fail(w, status, err)
		return
	}
	if v, ok := r.Context().Value(visitorKey{}).(*visitor); ok {
		v.known()
	}
	s.mux.ServeHTTP(w, r.WithContext(ctx))
}

// Mount has h answer the questions of a pattern of http.ServeMux, asked by whom
// the check lets in.
func (s *Server) Mount(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// Public has h answer the questions of a pattern to everybody. Their connections
// are closed after ten seconds.
func (s *Server) Public(pattern string, h http.Handler) { s.public.Handle(pattern, h) }

// Handle has f answer the questions at path, whose JSON is at most so many bytes
// long. f may be called many times at once; ctx ends when who asked is gone. An
// error that is no *Error is told as one of status 500.
func Handle[In, Out any](s *Server, path string, most int64, f func(ctx context.Context, in *In) (*Out, error)) {
	s.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		in := new(In)
		if err := read(w, r, most, in, false); err != nil {
			fail(w, Status(err), err)
			return
		}
		out, err := f(r.Context(), in)
		if err != nil {
			fail(w, Status(err), err)
			return
		}
		answer(w, http.StatusOK, out)
	})
}

// Answer has f answer the questions of a pattern of http.ServeMux, such as
// "POST /things/{name}", in JSON. What a question says besides the fields of In is
// refused; with GET in is empty. Otherwise it is as Handle.
func Answer[In, Out any](s *Server, pattern string, most int64, f func(r *http.Request, in *In) (Out, error)) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		in := new(In)
		if r.Method == http.MethodPost {
			if err := read(w, r, most, in, true); err != nil {
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

// read takes a question. A strict one has no fields that in does not have, and
// nothing behind it.
func read(w http.ResponseWriter, r *http.Request, most int64, in any, strict bool) error {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(bodyTime)) // connections of this server can
	body := http.MaxBytesReader(w, r.Body, most)
	d := json.NewDecoder(body)
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(in); err != nil {
		if badQuestion(err) == http.StatusRequestEntityTooLarge {
			return Refuse(badQuestion(err), "the question has more than %d bytes, which is the most that is read", most)
		}
		return Refuse(badQuestion(err), "the question cannot be read: %s", err.Error())
	}
	if strict {
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return Refuse(http.StatusBadRequest, "the question cannot be read: there is something behind it")
		}
	}
	_, _ = io.Copy(io.Discard, body)   // a line's end
	_ = c.SetReadDeadline(time.Time{}) // the answer may take its time
	return nil
}

// HandleBytes has f answer the questions at path with JSON that is packed by
// gzip already, since many ask for the same.
func HandleBytes(s *Server, path string, f func() ([]byte, error)) {
	s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		b, err := f()
		if err != nil {
			fail(w, max(Status(err), http.StatusBadRequest), err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(b) // who is gone asks again
	})
}

// fault is what answers that are none hold.
type fault struct {
	Error string `json:"error"`
}

func badQuestion(err error) int {
	if errors.As(err, new(*http.MaxBytesError)) {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// fail answers that there is no answer; status 0 is 500.
func fail(w http.ResponseWriter, status int, err error) {
	if status == 0 {
		status = http.StatusInternalServerError
	}
	var e *Error
	if errors.As(err, &e) && e.After > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((e.After+time.Second-1)/time.Second)))
	}
	answer(w, status, fault{err.Error()})
}

func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // who is gone asks again
}
