package serve

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"weir/internal/token"
	"weir/internal/tpc"
)

// parentless makes a missing folder above what is made a conflict, as
// WebDAV has it.
func parentless(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return errParent
	}
	return err
}

// precondition checks the If-... headers of a request that changes a file.
// Those of GET and HEAD are net/http's.
func (s *Server) precondition(r *request) error {
	match, none, since := r.Header.Get("If-Match"), r.Header.Get("If-None-Match"), r.Header.Get("If-Unmodified-Since")
	if match == "" && none == "" && since == "" {
		return nil
	}
	e, err := s.tree.stat(r.name)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if match != "" && (!there || !tagged(match, e.etag())) {
		return errCondition
	}
	if none != "" && there && tagged(none, e.etag()) {
		return errCondition
	}
	if t, err := http.ParseTime(since); err == nil && match == "" && there && e.modified.Unix() > t.Unix() {
		return errCondition
	}
	return nil
}

// tagged says whether list, of a header, is "*" or has tag.
func tagged(list, tag string) bool {
	if strings.TrimSpace(list) == "*" {
		return true
	}
	for t := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(t) == tag {
			return true
		}
	}
	return false
}

// remove answers DELETE, of a file or an empty folder.
func (s *Server) remove(r *request) {
	if r.name == "." {
		r.fail(http.StatusForbidden, "the top folder stays")
		return
	}
	e, err := s.tree.stat(r.name)
	if err == nil && r.folder && !e.dir {
		err = fs.ErrNotExist
	}
	if err == nil || !errors.Is(err, fs.ErrNotExist) { // also a link that leads nowhere good
		err = s.tree.remove(r.name)
	}
	if err != nil {
		r.failed(err)
		return
	}
	s.sums.forget(r.name, e.dir)
	r.w.WriteHeader(http.StatusNoContent)
}

// mkcol answers MKCOL.
func (s *Server) mkcol(r *request) {
	if n, _ := io.ReadFull(r.Body, make([]byte, 1)); n > 0 {
		r.fail(http.StatusUnsupportedMediaType, "MKCOL has no body")
		return
	}
	err := s.tree.mkdir(r.name)
	if errors.Is(err, fs.ErrExist) {
		r.fail(http.StatusMethodNotAllowed, "exists already")
		return
	}
	if err != nil {
		r.failed(parentless(err))
		return
	}
	r.done(true)
}

// A destinationError is a Destination header that cannot be used.
type destinationError struct {
	code   int
	reason string
}

func (e *destinationError) Error() string { return e.reason }

// destination returns the name that a Destination header means. host is what
// the client calls this server.
func destination(header, host string) (string, error) {
	if header == "" {
		return "", &destinationError{http.StatusBadRequest, "a Destination is needed"}
	}
	u, err := url.Parse(header)
	if err != nil || u.Opaque != "" || u.RawQuery != "" {
		return "", &destinationError{http.StatusBadRequest, "Destination is no URL"}
	}
	if u.Host != "" && !strings.EqualFold(u.Host, host) {
		return "", &destinationError{http.StatusBadGateway, "Destination is on another server"}
	}
	name, _, err := cleanName(u.Path)
	if err != nil {
		return "", &destinationError{http.StatusForbidden, "Destination cannot be served"}
	}
	return name, nil
}

// moveOrCopy answers MOVE and COPY.
func (s *Server) moveOrCopy(r *request) {
	to, err := destination(r.Header.Get("Destination"), r.Host)
	var bad *destinationError
	if errors.As(err, &bad) {
		r.fail(bad.code, bad.reason)
		return
	}
	overwrite := r.Header.Get("Overwrite")
	if overwrite != "" && overwrite != "T" && overwrite != "F" {
		r.fail(http.StatusBadRequest, "Overwrite is T or F")
		return
	}
	if to == r.name || to == "." || r.name == "." {
		r.fail(http.StatusForbidden, "source and destination are the same, or the top folder")
		return
	}
	need := token.Read
	if r.Method == "MOVE" {
		need = token.Create // who may create both names may also change the one into the other
	}
	if !r.must(need, r.name) || !r.must(token.Create, to) {
		return
	}
	source, err := s.tree.stat(r.name)
	if err == nil && r.folder && !source.dir {
		err = fs.ErrNotExist
	}
	if err != nil {
		r.failed(err)
		return
	}
	if source.dir && !r.must(token.Modify, r.name) {
		return
	}
	if err := s.replaceable(r, to); err != nil {
		r.failed(err)
		return
	}
	s.moveTo(r, source, to, overwrite != "F" && r.may(token.Modify, to))
}

func (s *Server) moveTo(r *request, source entry, to string, replace bool) {
	var created bool
	var err error
	switch {
	case r.Method == "MOVE":
		created, err = s.tree.rename(r.name, to, replace)
		s.sums.forget(r.name, source.dir)
	case source.dir:
		r.fail(http.StatusForbidden, "folders are not copied")
		return
	default:
		created, err = s.copy(r, to, replace)
	}
	if err != nil {
		r.failed(parentless(err))
		return
	}
	s.sums.forget(to, source.dir)
	if r.Method == "COPY" && s.copier != nil {
		r.copied(created)
		return
	}
	r.done(created)
}

// copied answers a COPY within this server, where clients of third-party copies may
// have asked: they fail without a verdict.
func (r *request) copied(created bool) {
	r.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	r.w.WriteHeader(code)
	_ = tpc.Success(uncounted{r.w}) // nobody to tell if it fails
}

// copy makes the file to from the one that r names.
func (s *Server) copy(r *request, to string, replace bool) (created bool, err error) {
	from, err := s.tree.open(r.name)
	if err != nil {
		return false, err
	}
	defer from.close()
	if from.dir {
		return false, errIsDir
	}
	room := s.room(r)
	defer room.give()
	if err := room.take(from.size); err != nil {
		return false, err
	}
	up, err := s.tree.create(to)
	if err != nil {
		return false, err
	}
	pooled := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(pooled)
	src := struct{ io.Reader }{from.content}
	if _, err := io.CopyBuffer(whileWanted{up, r}, src, *pooled); err != nil {
		up.abort()
		return false, err
	}
	_, created, err = up.commit(replace)
	return created, err
}

// whileWanted stops a copy when nobody waits for it any longer.
type whileWanted struct {
	up upload
	r  *request
}

// Write implements io.Writer.
func (w whileWanted) Write(p []byte) (int, error) {
	if err := w.r.Context().Err(); err != nil {
		return 0, err
	}
	return w.up.Write(p)
}
