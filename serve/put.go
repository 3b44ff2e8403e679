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

// put handles PUT: the file appears when it is whole, and not at all otherwise.
func (s *Server) put(r *Request) {
	switch {
	case r.Folder:
		r.Fail(http.StatusMethodNotAllowed, "a folder is made with MKCOL")
		return
	case r.Header.Get("Content-Range") != "":
		r.Fail(http.StatusBadRequest, "a part of a file cannot be put: leave out Content-Range")
		return
	}
	if err := r.Replaceable(r.Name); err != nil {
		r.FailWith(err)
		return
	}
	quota := r.Quota()
	defer quota.Release()
	if r.ContentLength < 0 {
		r.Body = quota.Limit(r.Body)
	} else if err := quota.Take(r.ContentLength); err != nil {
		r.NotReceived(err)
		return
	}
	up, err := s.tree.create(r.Name)
	if err != nil {
		r.FailWith(parentless(err))
		return
	}
	hashes := hashesFor(r.Header)
	if err := r.Receive(up, hashes); err != nil {
		up.abort()
		r.NotReceived(err)
		return
	}
	for alg, want := range Stated(r.Header) {
		if got := content.Text(alg, hashes[alg]); got != want {
			up.abort()
			r.Fail(http.StatusBadRequest, "checksum differs: "+got+" arrived, "+want+" was stated")
			return
		}
	}
	e, created, err := up.commit(r.Header.Get("If-None-Match") != "*" && r.May(token.Modify, r.Name))
	if err != nil {
		r.FailWith(parentless(err))
		return
	}
	s.sums.forget(r.Name, false)
	for alg, h := range hashes {
		s.sums.remember(r.Name, alg, content.Text(alg, h), e)
	}
	h := r.w.Header()
	h.Set("Etag", e.etag())
	instance, repr := requestedSums(r.Header)
	// cannot fail: the sums are there
	_ = setDigests(h, instance, repr, func(alg string) (string, error) { return content.Text(alg, hashes[alg]), nil })
	r.Done(created)
}

// hashesFor returns hashes for the checksums that a PUT contains or requests.
func hashesFor(h http.Header) map[string]hash.Hash {
	instance, repr := requestedSums(h)
	algs := []string{instance.Name, repr.Name}
	for alg := range Stated(h) {
		algs = append(algs, alg)
	}
	hashes := map[string]hash.Hash{}
	for _, alg := range algs {
		if sum, err := content.NewHash(alg); err == nil { // fails for ""
			hashes[alg] = sum
		}
	}
	return hashes
}

// Receive writes the body to a file and to hashes. It breaks off when nothing arrives
// for the Config's StallTimeout.
func (r *Request) Receive(to io.Writer, hashes map[string]hash.Hash) error {
	pooled := r.s.buffers.Get().(*[]byte)
	defer r.s.buffers.Put(pooled)
	deadline, stall := http.NewResponseController(r.w), r.s.conf.StallTimeout
	var touched time.Time
	for {
		if now := time.Now(); now.Sub(touched) > stall/8 {
			_ = deadline.SetReadDeadline(now.Add(stall)) // without it, no limit
			touched = now
		}
		n, err := r.Body.Read(*pooled)
		if n > 0 {
			part := (*pooled)[:n]
			r.s.metrics.payloadIn.Add(int64(n))
			if _, err := to.Write(part); err != nil {
				return &StoreError{err}
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

// A StoreError means that bytes could not be stored, not that they could not be received.
type StoreError struct{ Err error }

// Error implements error.
func (e *StoreError) Error() string { return "store: " + e.Err.Error() }

// Unwrap returns the error of the file.
func (e *StoreError) Unwrap() error { return e.Err }

// NotReceived responds to a request whose body was not stored completely.
func (r *Request) NotReceived(err error) {
	var store *StoreError
	var refusal *Refusal
	r.w.Header().Set("Connection", "close") // the rest of the body is not read
	switch {
	case errors.As(err, &store), errors.As(err, &refusal):
		r.FailWith(err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.Fail(http.StatusRequestTimeout, "nothing arrived for too long")
	default:
		r.Fail(http.StatusBadRequest, "the body ended early")
	}
}
