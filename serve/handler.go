package serve

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"weir/internal/preauth"
	"weir/internal/token"
)

// A Request is a request to a Server. Its methods answer it.
type Request struct {
	*http.Request
	Name   string // of the file or folder below the top folder, which is "."
	Folder bool   // the path ends with a slash

	s      *Server
	w      *answer
	rights Rights
}

// An answer counts the bytes that a handler writes. Its ReadFrom preserves the path on which
// net/http makes the kernel send files.
type answer struct {
	http.ResponseWriter
	s    *Server
	c    *conn // nil if the connection was not accepted by a listener
	tls  bool
	code int
}

// Unwrap implements the interface that http.ResponseController requires.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	if a.code == 0 && code >= 200 {
		a.code = code
	}
	a.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	n, err := uncounted{a}.Write(p)
	a.s.metrics.payloadOut.Add(int64(n))
	return n, err
}

// ReadFrom implements io.ReaderFrom. The head waits in the connection until
// the body follows; without the flush net/http would copy the first bytes.
func (a *answer) ReadFrom(src io.Reader) (int64, error) {
	to, ok := a.ResponseWriter.(io.ReaderFrom)
	flusher, ok2 := a.ResponseWriter.(http.Flusher)
	if !ok || !ok2 || a.c == nil || a.tls {
		pooled := a.s.buffers.Get().(*[]byte)
		defer a.s.buffers.Put(pooled)
		return io.CopyBuffer(struct{ io.Writer }{a}, src, *pooled)
	}
	a.c.hold()
	flusher.Flush()
	n, err := to.ReadFrom(src)
	return n, errors.Join(err, a.c.release())
}

// An uncounted writer writes data other than payload, such as listings.
type uncounted struct{ a *answer }

// Write implements io.Writer.
func (w uncounted) Write(p []byte) (int, error) {
	w.a.code = cmp.Or(w.a.code, http.StatusOK)
	return w.a.ResponseWriter.Write(p)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	s.inFlight.Add(1)
	s.metrics.inFlight.Add(1)
	a := &answer{ResponseWriter: w, s: s, tls: r.TLS != nil}
	defer func() {
		a.code = cmp.Or(a.code, http.StatusOK)
		s.metrics.count(r.Method, a.code, time.Since(start))
		s.metrics.inFlight.Add(-1)
		s.inFlight.Done()
	}()
	a.c, _ = r.Context().Value(connKey{}).(*conn)
	if r.ContentLength != 0 {
		var rest func()
		r, rest = boundBody(a, r, s.conf.StallTimeout)
		defer rest()
	}
	s.route(&Request{Request: r, s: s, w: a})
}

// A body ends the deadline of its connection at its end: the answer may take its time.
type body struct {
	io.ReadCloser
	deadline *http.ResponseController
	ended    bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && !b.ended {
		b.ended = true
		_ = b.deadline.SetReadDeadline(time.Time{})
	}
	return n, err
}

// boundBody returns r with a limit of the time in which a handler reads its body; Receive moves the deadline ahead while bytes arrive.
// rest, called after the handler, limits the rest, which net/http reads if the handler has not.
func boundBody(a *answer, r *http.Request, stall time.Duration) (_ *http.Request, rest func()) {
	b := &body{ReadCloser: r.Body, deadline: http.NewResponseController(a)}
	own := *r // net/http examines the type of the body in its own
	own.Body = b
	_ = b.deadline.SetReadDeadline(time.Now().Add(stall)) // without connections, as in tests, there is no deadline
	return &own, func() {
		switch {
		case b.ended:
		case a.code == http.StatusUnauthorized:
			_ = b.deadline.SetReadDeadline(time.Now())
		default:
			_ = b.deadline.SetReadDeadline(time.Now().Add(min(stall, preauth.Patience)))
		}
	}
}

func (s *Server) route(r *Request) {
	pause(s.conf.Delay, s.stop)
	var err error
	if r.rights, err = s.admit(r.Request); err != nil {
		s.unauthorized(r, err)
		return
	}
	r.w.c.authenticated()
	if r.Method == http.MethodOptions {
		s.options(r)
		return
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if r.URL.Path == "/metrics" && reads {
		if r.Must(token.Read, "metrics") {
			s.serveMetrics(r)
		}
		return
	}
	if r.Name, r.Folder, err = cleanName(r.URL.Path); err != nil {
		r.FailWith(err)
		return
	}
	for _, e := range s.conf.Extensions {
		if e.Answer(r) {
			return
		}
	}
	chunked, asksChunks := strings.CutPrefix(r.Name, chunksPath)
	switch {
	case asksChunks && r.Method == http.MethodGet:
		r.Name = chunked // permission for a file's checksum includes the checksums of its chunks
		s.get(r, true)
	case reads:
		s.get(r, false)
	case r.Method == "PROPFIND":
		s.propfind(r)
	case r.Method == "COPY" && r.Header.Get("Source") != "":
		r.Fail(http.StatusNotImplemented, "this server makes no third-party copies (weir serve --third-party)")
	default:
		r.Change()
	}
}

// Change handles a request that changes files, or responds that the method is not supported.
func (r *Request) Change() {
	s := r.s
	refusal := "method " + r.Method + " is not known here"
	switch r.Method {
	case http.MethodPut, http.MethodDelete, "MKCOL", "MOVE", "COPY":
		refusal = ""
		if s.conf.ReadOnly {
			refusal = "this server does not let files be changed"
		}
	}
	if refusal != "" {
		r.w.Header().Set("Allow", s.allow())
		r.Fail(http.StatusMethodNotAllowed, refusal)
		return
	}
	if err := r.Precondition(); err != nil {
		r.FailWith(err)
		return
	}
	switch r.Method {
	case http.MethodPut:
		if r.Must(token.Create, r.Name) {
			s.put(r)
		}
	case http.MethodDelete:
		if r.Must(token.Modify, r.Name) {
			s.remove(r)
		}
	case "MKCOL":
		if r.Must(token.Folder, r.Name) {
			s.mkcol(r)
		}
	default:
		s.moveOrCopy(r)
	}
}

func (s *Server) allow() string {
	switch {
	case !s.conf.ReadOnly:
		return "OPTIONS, GET, HEAD, PROPFIND, PUT, DELETE, MKCOL, MOVE, COPY"
	case s.copied != nil:
		return "OPTIONS, GET, HEAD, PROPFIND, COPY"
	}
	return "OPTIONS, GET, HEAD, PROPFIND"
}

func (s *Server) options(r *Request) {
	h := r.w.Header()
	h.Set("Allow", s.allow())
	h.Set("DAV", strings.Join(append([]string{"1"}, s.classes...), ", "))
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Length", "0")
	r.w.WriteHeader(http.StatusOK)
}

// Response returns the writer of the response. Its bytes are counted as payload.
func (r *Request) Response() http.ResponseWriter { return r.w }

// Text returns a writer for the part of a response that is not payload.
func (r *Request) Text() io.Writer { return uncounted{r.w} }

// Fail responds with a status and a sentence.
func (r *Request) Fail(code int, message string) {
	h := r.w.Header()
	for _, of := range []string{"Etag", "Digest", "Repr-Digest", "Content-Length"} {
		h.Del(of)
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	r.w.WriteHeader(code)
	_, _ = io.WriteString(r.w.ResponseWriter, message+"\n") // the client may have disconnected
}

// FailWith responds with the status of err. The text of an error that is not a Refusal is logged
// and not sent, since it may contain details of the machine.
func (r *Request) FailWith(err error) {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		r.Fail(refusal.Code, refusal.Reason)
		return
	}
	code := status(err)
	if code == http.StatusInternalServerError {
		r.s.conf.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	r.Fail(code, http.StatusText(code))
}

// Done responds that a file or folder exists now.
func (r *Request) Done(created bool) {
	if created {
		r.w.Header().Set("Content-Length", "0")
		r.w.WriteHeader(http.StatusCreated)
		return
	}
	r.w.WriteHeader(http.StatusNoContent)
}

// broken ends a response whose head may have been sent: if err is not nil the client must not take
// the received part for the whole.
func (r *Request) broken(err error) {
	switch {
	case err == nil:
	case r.w.code == 0:
		r.FailWith(err)
	default:
		panic(http.ErrAbortHandler) // net/http's way to break off: no trace is printed
	}
}
