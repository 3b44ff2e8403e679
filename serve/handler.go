package serve

import (
	"errors"
	"io"
	"net/http"
	"time"

	"weir/internal/token"
)

// A request is one request on its way through a handler.
type request struct {
	*http.Request
	w      *answer
	rights Rights
	name   string
	folder bool // the path ended with a slash
	chunks bool // it asks for checksums of name's chunks
}

// An answer counts what a handler writes. Its ReadFrom keeps open the way on
// which net/http lets the kernel send files.
type answer struct {
	http.ResponseWriter
	s    *Server
	c    *conn // nil if the connection is not one of ours
	tls  bool
	code int
}

// Unwrap is for http.ResponseController.
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
	if a.code == 0 {
		a.code = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(p)
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

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	s.flying.Add(1)
	s.metrics.flying.Add(1)
	a := &answer{ResponseWriter: w, s: s, tls: r.TLS != nil}
	defer func() {
		if a.code == 0 {
			a.code = http.StatusOK
		}
		s.metrics.count(r.Method, a.code, time.Since(start))
		s.metrics.flying.Add(-1)
		s.flying.Done()
	}()
	a.c, _ = r.Context().Value(connKey{}).(*conn)
	s.route(&request{Request: r, w: a})
}

func (s *Server) route(r *request) {
	pause(s.conf.Delay, s.stop)
	var err error
	if r.rights, err = s.admit(r.Request); err != nil {
		s.stranger(r, err)
		return
	}
	if r.Method == http.MethodOptions {
		s.options(r)
		return
	}
	if r.URL.Path == "/metrics" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		if r.must(token.Read, "metrics") {
			s.serveMetrics(r)
		}
		return
	}
	if r.name, r.folder, err = cleanName(r.URL.Path); err != nil {
		r.failed(err)
		return
	}
	r.asksChunks()
	s.method(r)
}

func (s *Server) method(r *request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		s.get(r)
	case "PROPFIND":
		s.propfind(r)
	case http.MethodPut, http.MethodDelete, "MKCOL", "MOVE":
		if s.keeps(r.name) {
			s.changePart(r)
			return
		}
		s.change(r)
	case "COPY":
		if s.elsewhere(r) {
			s.thirdParty(r)
			return
		}
		s.change(r)
	default:
		if r.Method == http.MethodPost && s.keeps(r.name) {
			s.changePart(r)
			return
		}
		r.w.Header().Set("Allow", s.allow())
		r.fail(http.StatusMethodNotAllowed, "method "+r.Method+" is not known here")
	}
}

// change answers what changes files.
func (s *Server) change(r *request) {
	if s.conf.ReadOnly {
		r.w.Header().Set("Allow", s.allow())
		r.fail(http.StatusMethodNotAllowed, "this server does not let files be changed")
		return
	}
	if err := s.precondition(r); err != nil {
		r.failed(err)
		return
	}
	switch r.Method {
	case http.MethodPut:
		if r.must(token.Create, r.name) {
			s.put(r)
		}
	case http.MethodDelete:
		if r.must(token.Modify, r.name) {
			s.remove(r)
		}
	case "MKCOL":
		if r.must(token.Folder, r.name) {
			s.mkcol(r)
		}
	default:
		s.moveOrCopy(r)
	}
}

func (s *Server) allow() string {
	if s.conf.ReadOnly {
		if s.copier != nil {
			return "OPTIONS, GET, HEAD, PROPFIND, COPY"
		}
		return "OPTIONS, GET, HEAD, PROPFIND"
	}
	return "OPTIONS, GET, HEAD, PROPFIND, PUT, DELETE, MKCOL, MOVE, COPY"
}

func (s *Server) options(r *request) {
	h := r.w.Header()
	h.Set("Allow", s.allow())
	h.Set("DAV", "1")
	if s.conf.Parts != nil {
		h.Set("DAV", "1, "+partsClass)
	}
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Length", "0")
	r.w.WriteHeader(http.StatusOK)
}

// fail answers with a code and a sentence.
func (r *request) fail(code int, message string) {
	h := r.w.Header()
	for _, of := range []string{"Etag", "Digest", "Repr-Digest", "Content-Length"} {
		h.Del(of)
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	r.w.WriteHeader(code)
	_, _ = io.WriteString(r.w.ResponseWriter, message+"\n") // no payload; nobody to tell if it fails
}

// An uncounted writer writes what is no payload: listings.
type uncounted struct{ a *answer }

// Write implements io.Writer.
func (w uncounted) Write(p []byte) (int, error) {
	if w.a.code == 0 {
		w.a.code = http.StatusOK
	}
	return w.a.ResponseWriter.Write(p)
}

// failed answers with what err means.
func (r *request) failed(err error) {
	code := status(err)
	message := http.StatusText(code)
	if code == http.StatusInternalServerError {
		r.w.s.conf.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	} else if reason := sentinel(err); reason != nil {
		message = reason.Error()
	}
	r.fail(code, message)
}

// sentinel returns the error of this package in err: its text tells nothing
// about the machine.
func sentinel(err error) error {
	for _, e := range []error{errName, errIsDir, errParent, errFull, errExists, errCondition, errRights, errEnded, errHole} {
		if errors.Is(err, e) {
			return e
		}
	}
	var large *tooLarge
	if errors.As(err, &large) {
		return large
	}
	return nil
}
