package serve

import (
	"bufio"
	"io/fs"
	"net/http"

	"weir/internal/token"
)

// get answers GET and HEAD. Ranges and preconditions are net/http's.
func (s *Server) get(r *request) {
	need := token.Stat
	if r.Method == http.MethodGet && !r.chunks { // checksums are known to who may ask for one
		need = token.Read
	}
	if !r.may(need, r.name) && !r.must(token.List, r.name) { // before it is told what is there
		return
	}
	f, err := s.tree.open(r.name)
	if err != nil {
		r.failed(err)
		return
	}
	defer f.close()
	if f.dir && !r.chunks && r.Method == http.MethodGet {
		need = token.List
	}
	if !r.must(need, r.name) {
		return
	}
	if f.dir && !r.chunks {
		s.getFolder(r)
		return
	}
	if r.folder || f.dir {
		r.failed(fs.ErrNotExist)
		return
	}
	if r.chunks {
		s.getChunks(r, f)
		return
	}
	h := r.w.Header()
	h["Content-Type"] = []string{"application/octet-stream"} // nothing is to be guessed from content
	h["Etag"] = []string{f.etag()}
	if err := s.addDigests(r, f); err != nil {
		r.failed(err)
		return
	}
	http.ServeContent(r.w, r.Request, "", f.modified, f.content)
}

// getFolder lists a folder, one name a line, folders with a slash.
func (s *Server) getFolder(r *request) {
	h := r.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		r.w.WriteHeader(http.StatusOK)
		return
	}
	out := bufio.NewWriterSize(uncounted{r.w}, 32<<10)
	err := s.tree.list(r.name, func(e entry) error {
		if e.dir {
			e.name += "/"
		}
		_, err := out.WriteString(e.name + "\n")
		return err
	})
	if err == nil {
		err = out.Flush()
	}
	r.broken(err)
}

// broken ends an answer whose head may have left already: if err is not nil
// the client must not take what it got for the whole.
func (r *request) broken(err error) {
	switch {
	case err == nil:
	case r.w.code == 0:
		r.failed(err)
	default:
		panic(http.ErrAbortHandler) // net/http's way to break off: no trace is printed
	}
}
