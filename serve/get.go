package serve

import (
	"bufio"
	"io/fs"
	"net/http"

	"weir/internal/token"
)

// get handles GET and HEAD of a file, a folder, or the checksums of a file's chunks. Ranges and
// preconditions are net/http's.
func (s *Server) get(r *Request, chunks bool) {
	need := token.Stat
	if r.Method == http.MethodGet && !chunks { // checksums are only for clients that may read the file
		need = token.Read
	}
	if !r.May(need, r.Name) && !r.Must(token.List, r.Name) { // before it gets the answer
		return
	}
	f, err := s.tree.open(r.Name)
	if err != nil {
		r.FailWith(err)
		return
	}
	defer f.Close()
	if f.dir && !chunks && r.Method == http.MethodGet {
		need = token.List
	}
	if !r.Must(need, r.Name) {
		return
	}
	if f.dir && !chunks {
		s.getFolder(r)
		return
	}
	if r.Folder || f.dir {
		r.FailWith(fs.ErrNotExist)
		return
	}
	if chunks {
		s.getChunks(r, f)
		return
	}
	h := r.w.Header()
	h["Content-Type"] = []string{"application/octet-stream"} // browsers must not guess it from the content
	h["Etag"] = []string{f.etag()}
	if err := s.addDigests(r, f); err != nil {
		r.FailWith(err)
		return
	}
	http.ServeContent(r.w, plainRange(r.Request), "", f.modified, s.pages.reader(r.Context(), f.content))
}

// getFolder lists a folder, one name a line, folders with a slash.
func (s *Server) getFolder(r *Request) {
	h := r.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		r.w.WriteHeader(http.StatusOK)
		return
	}
	out := bufio.NewWriterSize(r.Text(), 32<<10)
	err := s.tree.list(r.Name, func(e entry) error {
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
