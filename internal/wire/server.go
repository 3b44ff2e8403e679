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
	"strings"
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
	id       *Identity
	token    [sha256.Size]byte
	listener net.Listener
	mux      *http.ServeMux
	http     http.Server
	ended    chan struct{}
	refused  func(from string)
}

// Listen starts a server at address (HOST:PORT; port 0 is any free one), which
// answers no question until Handle names some. refused, if it is not nil, is told
// of each question whose token was wrong, with the address of who asked.
func Listen(ctx context.Context, address string, id *Identity, refused func(from string)) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	s := &Server{id: id, token: sha256.Sum256([]byte(id.Token)), mux: http.NewServeMux(), ended: make(chan struct{}), refused: refused}
	s.listener = &turnstile{Listener: l, room: make(chan struct{}, strangers), closed: make(chan struct{})}
	s.http = http.Server{
		Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: patience, IdleTimeout: idleTime, MaxHeaderBytes: 8 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // whatever knocks at an open port is no affair of the run
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, visitorKey{}, visitorOf(c))
		},
		Protocols: new(http.Protocols),
	}
	s.http.Protocols.SetHTTP1(true) // a question that waits must not hold up the next one
	secure := tls.NewListener(s.listener, &tls.Config{
		Certificates: []tls.Certificate{id.Cert}, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
	})
	go func() {
		_ = s.http.Serve(secure) // ends when it is closed
		close(s.ended)
	}()
	return s, nil
}

// Addr returns where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close ends the server: questions that are being answered have five seconds.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-s.ended
	return err
}

// serve lets in who has the token. Of others not even the question is read.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if sum := sha256.Sum256([]byte(token)); subtle.ConstantTimeCompare(sum[:], s.token[:]) != 1 {
		if s.refused != nil {
			s.refused(r.RemoteAddr)
		}
		w.Header().Set("Connection", "close")
		answer(w, http.StatusUnauthorized, fault{"the token is wrong"})
		return
	}
	if v, ok := r.Context().Value(visitorKey{}).(*visitor); ok {
		v.known()
	}
	s.mux.ServeHTTP(w, r)
}

// Handle has f answer the questions at path, whose JSON is at most so many bytes
// long. f may be called many times at once; ctx ends when who asked is gone. An
// error that is no *Error is told as one of status 500.
func Handle[In, Out any](s *Server, path string, most int64, f func(ctx context.Context, in *In) (*Out, error)) {
	s.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_ = c.SetReadDeadline(time.Now().Add(bodyTime)) // connections of this server can
		_ = c.SetWriteDeadline(time.Now().Add(slowest))
		in := new(In)
		body := http.MaxBytesReader(w, r.Body, most)
		if err := json.NewDecoder(body).Decode(in); err != nil {
			answer(w, badQuestion(err), fault{"the question cannot be read: " + err.Error()})
			return
		}
		_, _ = io.Copy(io.Discard, body)   // a line's end
		_ = c.SetReadDeadline(time.Time{}) // the answer may take its time
		out, err := f(r.Context(), in)
		switch status := Status(err); {
		case err == nil:
			answer(w, http.StatusOK, out)
		case status != 0:
			answer(w, status, fault{err.Error()})
		default:
			answer(w, http.StatusInternalServerError, fault{err.Error()})
		}
	})
}

// HandleBytes has f answer the questions at path with JSON that is packed by
// gzip already, since many ask for the same.
func HandleBytes(s *Server, path string, f func() ([]byte, error)) {
	s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		b, err := f()
		if err != nil {
			answer(w, max(Status(err), http.StatusBadRequest), fault{err.Error()})
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(slowest))
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

func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // who is gone asks again
}
