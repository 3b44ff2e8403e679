package serve

import (
	"io"
	"time"
)

// An Extension handles requests that a Server does not support by itself. Its methods are called by
// many goroutines.
type Extension interface {
	// Attach is called once, before the Server serves.
	Attach(s *Server) error
	// Answer handles r if it is a request of the extension, and reports whether it is.
	Answer(r *Request) bool
	// Close is called when the Server is closed.
	Close() error
}

// Config returns the configuration of the Server, with its defaults filled in.
func (s *Server) Config() Config { return s.conf }

// Announce adds a compliance class (RFC 4918, section 10.1) to the answer to OPTIONS.
// Extensions call it in Attach.
func (s *Server) Announce(class string) { s.classes = append(s.classes, class) }

// EndCopies sets verdict as the writer of the body of the response to a COPY within the Server, and
// allows COPY on read-only servers. Extensions call it in Attach.
func (s *Server) EndCopies(verdict func(io.Writer) error) { s.copied = verdict }

// IsFolder reports whether a name is that of a folder. Its error wraps fs.ErrNotExist if
// there is nothing of this name.
func (s *Server) IsFolder(name string) (bool, error) {
	e, err := s.tree.stat(name)
	return e.dir, err
}

// Open opens a file, which the caller closes.
func (s *Server) Open(name string) (*io.SectionReader, io.Closer, error) {
	f, err := s.tree.open(name)
	if err != nil {
		return nil, nil, err
	}
	if f.dir {
		_ = f.Close() // only opened
		return nil, nil, ErrIsFolder
	}
	return io.NewSectionReader(f.content, 0, f.size), f, nil
}

// An Upload is a file that is being stored. Its Writer is an io.WriterAt where bytes may
// come in any order.
type Upload struct {
	io.Writer
	s    *Server
	name string
	up   upload
}

// Create begins a file, which appears under its name when it is committed. The caller
// commits or aborts it.
func (s *Server) Create(name string) (*Upload, error) {
	up, err := s.tree.create(name)
	if err != nil {
		return nil, parentless(err)
	}
	return &Upload{up, s, name, up}, nil
}

// Commit gives the file its name, and remembers its checksums, as package content writes
// them, by algorithm. replace allows that another file has the name.
func (u *Upload) Commit(replace bool, sums map[string]string) error {
	e, _, err := u.up.commit(replace)
	if err != nil {
		return parentless(err)
	}
	u.s.sums.forget(u.name, false)
	for alg, text := range sums {
		u.s.sums.remember(u.name, alg, text, e)
	}
	return nil
}

// Abort removes the stored part.
func (u *Upload) Abort() { u.up.abort() }

// Forget drops the checksums of a file that an Extension has changed.
func (s *Server) Forget(name string) { s.sums.forget(name, false) }

// Buffer returns a buffer, and a function that returns it to the pool.
func (s *Server) Buffer() (buf []byte, put func()) {
	pooled := s.buffers.Get().(*[]byte)
	return *pooled, func() { s.buffers.Put(pooled) }
}

// Received counts bytes of files that came over another connection than a client's, and
// keeps the pace of all connections together.
func (s *Server) Received(n int) {
	s.metrics.payloadIn.Add(int64(n))
	s.keepPace(s.total.up, n)
}

// Sent counts bytes that were sent, as Received does for received bytes.
func (s *Server) Sent(n int) {
	s.metrics.payloadOut.Add(int64(n))
	s.keepPace(s.total.down, n)
}

func (s *Server) keepPace(p *pacer, n int) {
	if p != nil {
		pause(p.take(time.Now(), n), s.stop)
	}
}
