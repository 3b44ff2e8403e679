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
)

// parentless converts the error of a missing parent folder into a conflict, as WebDAV requires.
func parentless(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return ErrNoParent
	}
	return err
}

// remove handles DELETE, of a file or an empty folder.
func (s *Server) remove(r *Request) {
	if r.Name == "." {
		r.Fail(http.StatusForbidden, "the top folder stays")
		return
	}
	e, err := s.tree.stat(r.Name)
	if err == nil && r.Folder && !e.dir {
		err = fs.ErrNotExist
	}
	if err == nil || !errors.Is(err, fs.ErrNotExist) { // also a link that leads nowhere good
		err = s.tree.remove(r.Name)
	}
	if err != nil {
		r.FailWith(err)
		return
	}
	s.sums.forget(r.Name, e.dir)
	r.w.WriteHeader(http.StatusNoContent)
}

// mkcol handles MKCOL.
func (s *Server) mkcol(r *Request) {
	if n, _ := io.ReadFull(r.Body, make([]byte, 1)); n > 0 {
		r.Fail(http.StatusUnsupportedMediaType, "MKCOL has no body")
		return
	}
	err := s.tree.mkdir(r.Name)
	if errors.Is(err, fs.ErrExist) {
		r.Fail(http.StatusMethodNotAllowed, "exists already")
		return
	}
	if err != nil {
		r.FailWith(parentless(err))
		return
	}
	r.Done(true)
}

// destination returns the name in a Destination header. host is the client's name for this server.
func destination(header, host string) (string, error) {
	if header == "" {
		return "", &Refusal{http.StatusBadRequest, "a Destination is needed"}
	}
	u, err := url.Parse(header)
	if err != nil || u.Opaque != "" || u.RawQuery != "" {
		return "", &Refusal{http.StatusBadRequest, "Destination is no URL"}
	}
	if u.Host != "" && !strings.EqualFold(u.Host, host) {
		return "", &Refusal{http.StatusBadGateway, "Destination is on another server"}
	}
	name, _, err := cleanName(u.Path)
	if err != nil {
		return "", &Refusal{http.StatusForbidden, "Destination cannot be served"}
	}
	return name, nil
}

// moveOrCopy handles MOVE and COPY.
func (s *Server) moveOrCopy(r *Request) {
	to, err := destination(r.Header.Get("Destination"), r.Host)
	if err != nil {
		r.FailWith(err)
		return
	}
	overwrite := r.Header.Get("Overwrite")
	if overwrite != "" && overwrite != "T" && overwrite != "F" {
		r.Fail(http.StatusBadRequest, "Overwrite is T or F")
		return
	}
	if to == r.Name || to == "." || r.Name == "." {
		r.Fail(http.StatusForbidden, "source and destination are the same, or the top folder")
		return
	}
	need := token.Read
	if r.Method == "MOVE" {
		need = token.Create // who may create both names may also change the one into the other
	}
	if !r.Must(need, r.Name) || !r.Must(token.Create, to) {
		return
	}
	source, err := s.tree.stat(r.Name)
	if err == nil && r.Folder && !source.dir {
		err = fs.ErrNotExist
	}
	if err != nil {
		r.FailWith(err)
		return
	}
	if source.dir && !r.Must(token.Modify, r.Name) {
		return
	}
	if err := r.Replaceable(to); err != nil {
		r.FailWith(err)
		return
	}
	s.moveTo(r, source, to, overwrite != "F" && r.May(token.Modify, to))
}

func (s *Server) moveTo(r *Request, source entry, to string, replace bool) {
	var created bool
	var err error
	switch {
	case r.Method == "MOVE":
		created, err = s.tree.rename(r.Name, to, replace)
		s.sums.forget(r.Name, source.dir)
	case source.dir:
		r.Fail(http.StatusForbidden, "folders are not copied")
		return
	default:
		created, err = s.copy(r, to, replace)
	}
	if err != nil {
		r.FailWith(parentless(err))
		return
	}
	s.sums.forget(to, source.dir)
	if r.Method == "MOVE" || s.copied == nil {
		r.Done(created)
		return
	}
	r.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	r.w.WriteHeader(code)
	_ = s.copied(r.Text()) // the client may have disconnected
}

// copy copies the file of r to the file to.
func (s *Server) copy(r *Request, to string, replace bool) (created bool, err error) {
	from, err := s.tree.open(r.Name)
	if err != nil {
		return false, err
	}
	defer from.Close()
	if from.dir {
		return false, ErrIsFolder
	}
	quota := r.Quota()
	defer quota.Release()
	if err := quota.Take(from.size); err != nil {
		return false, err
	}
	up, err := s.tree.create(to)
	if err != nil {
		return false, err
	}
	pooled := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(pooled)
	src := struct{ io.Reader }{from.content}
	if _, err := io.CopyBuffer(untilDone{r.Context(), up}, src, *pooled); err != nil {
		up.abort()
		return false, err
	}
	_, created, err = up.commit(replace)
	return created, err
}
