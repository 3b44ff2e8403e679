package serve

import (
	"errors"
	"hash"
	"io"
	"net/http"
	"os"
	"time"

	"weir/internal/content"
	"weir/internal/token"
)

// put answers PUT: the file appears when it is whole, and not at all
// otherwise.
func (s *Server) put(r *request) {
	switch {
	case r.folder:
		r.fail(http.StatusMethodNotAllowed, "a folder is made with MKCOL")
		return
	case r.Header.Get("Content-Range") != "":
		r.fail(http.StatusBadRequest, "a part of a file cannot be put: leave out Content-Range")
		return
	}
	if err := s.replaceable(r, r.name); err != nil {
		r.failed(err)
		return
	}
	room := s.room(r)
	defer room.give()
	if r.ContentLength < 0 {
		r.Body = &measured{r.Body, room}
	} else if err := room.take(r.ContentLength); err != nil {
		r.notReceived(err)
		return
	}
	up, err := s.tree.create(r.name)
	if err != nil {
		r.failed(parentless(err))
		return
	}
	hashes := hashesFor(r.Header)
	if err := s.receive(r, up, hashes); err != nil {
		up.abort()
		r.notReceived(err)
		return
	}
	for alg, want := range stated(r.Header) {
		if got := content.Text(alg, hashes[alg]); got != want {
			up.abort()
			r.fail(http.StatusBadRequest, "checksum differs: "+got+" arrived, "+want+" was stated")
			return
		}
	}
	e, created, err := up.commit(r.Header.Get("If-None-Match") != "*" && r.may(token.Modify, r.name))
	if err != nil {
		r.failed(parentless(err))
		return
	}
	s.finishPut(r, e, created, hashes)
}

func (s *Server) finishPut(r *request, e entry, created bool, hashes map[string]hash.Hash) {
	s.sums.forget(r.name, false)
	for alg, h := range hashes {
		s.sums.remember(r.name, alg, content.Text(alg, h), e)
	}
	h := r.w.Header()
	h.Set("Etag", e.etag())
	instance, repr := wants(r.Header)
	// cannot fail: the sums are there
	_ = setDigests(h, instance, repr, func(alg string) (string, error) { return content.Text(alg, hashes[alg]), nil })
	r.done(created)
}

// replaceable is an error if there is a file called name that the sender of r may
// not replace.
func (s *Server) replaceable(r *request, name string) error {
	if r.may(token.Modify, name) {
		return nil
	}
	if _, err := s.tree.stat(name); err == nil {
		return errRights
	}
	return nil
}

// hashesFor returns hashes for the checksums that a PUT states or asks for.
func hashesFor(h http.Header) map[string]hash.Hash {
	instance, repr := wants(h)
	algs := []string{instance.Name, repr.Name}
	for alg := range stated(h) {
		algs = append(algs, alg)
	}
	hashes := map[string]hash.Hash{}
	for _, alg := range algs {
		if sum, err := content.NewHash(alg); err == nil { // "" is none
			hashes[alg] = sum
		}
	}
	return hashes
}

// receive moves the body into up. It breaks off when nothing arrives for the
// Config's StallTimeout.
func (s *Server) receive(r *request, up upload, hashes map[string]hash.Hash) error {
	pooled := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(pooled)
	deadline := http.NewResponseController(r.w)
	var touched time.Time
	for {
		if now := time.Now(); now.Sub(touched) > s.conf.StallTimeout/8 {
			_ = deadline.SetReadDeadline(now.Add(s.conf.StallTimeout)) // without it, no limit
			touched = now
		}
		n, err := r.Body.Read(*pooled)
		if n > 0 {
			part := (*pooled)[:n]
			s.metrics.payloadIn.Add(int64(n))
			if _, err := up.Write(part); err != nil {
				return &storeError{err}
			}
			for _, h := range hashes {
				_, _ = h.Write(part) // never fails
			}
		}
		if errors.Is(err, io.EOF) {
			return deadline.SetReadDeadline(time.Time{})
		}
		if err != nil {
			return err
		}
	}
}

// A storeError says that a body could not be stored, not that it could not
// be received.
type storeError struct{ err error }

func (e *storeError) Error() string { return "store: " + e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// notReceived answers for a body that did not arrive whole, if anyone is
// still there to hear it.
func (r *request) notReceived(err error) {
	var store *storeError
	var large *tooLarge
	r.w.Header().Set("Connection", "close") // the rest of the body is not wanted
	switch {
	case errors.As(err, &store), errors.As(err, &large):
		r.failed(err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.fail(http.StatusRequestTimeout, "nothing arrived for too long")
	default:
		r.fail(http.StatusBadRequest, "the body ended early")
	}
}

// done answers that a file or folder is there now.
func (r *request) done(created bool) {
	if created {
		r.w.Header().Set("Content-Length", "0")
		r.w.WriteHeader(http.StatusCreated)
		return
	}
	r.w.WriteHeader(http.StatusNoContent)
}
