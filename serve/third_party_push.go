package serve

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"

	"weir/internal/tpc"
)

// push puts a file on another server, and asks that one what it has then.
func (s *Server) push(ctx context.Context, j *job) error {
	f, err := s.tree.open(j.name)
	if err != nil {
		return err
	}
	defer f.close()
	if f.dir {
		return errIsDir
	}
	header := http.Header{"Content-Type": {"application/octet-stream"}}
	if f.size > 0 { // XRootD 5.5.3 never answers who announces nothing with it
		header["Expect"] = []string{"100-continue"} // a redirect comes before the bytes
	}
	if !j.replace {
		if err := s.free(ctx, j); err != nil {
			return err
		}
		header["If-None-Match"] = []string{"*"}
	}
	var hashes map[string]hash.Hash
	body := func() (io.ReadCloser, error) {
		hashes = newHashes(j.stated)
		j.moved.Store(0)
		return io.NopCloser(&leaving{s: s, j: j, from: io.NewSectionReader(f.content, 0, f.size), hashes: hashes}), nil
	}
	res, err := s.copier.Do(ctx, tpc.Request{Method: http.MethodPut, Target: j.other, Header: header, Body: body, Length: f.size})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode > 299 {
		return tpc.Answered("PUT", res)
	}
	if got := j.moved.Load(); got != f.size { // and only then are the sums ours to read
		return fmt.Errorf("the other server answers after %d bytes of %d", got, f.size)
	}
	return s.readBack(ctx, j, f.size, textsOf(hashes))
}

// free is an error if there is a file that is not to be replaced.
func (s *Server) free(ctx context.Context, j *job) error {
	_, err := s.copier.Stat(ctx, j.other)
	switch tpc.KindOf(err) {
	case tpc.Missing, tpc.Denied: // XRootD does not tell of files that may be created
		return nil
	case "":
		if err == nil {
			err = errors.New("412: the other server has a file of this name already")
		}
	}
	return err
}

// readBack asks the other server what it has after a push.
func (s *Server) readBack(ctx context.Context, j *job, size int64, own map[string]string) error {
	j.allow(digestTime)
	var info tpc.Info
	var err error
	if j.verify == "false" {
		info, err = s.copier.Stat(ctx, j.other)
	} else {
		info, err = s.copier.Checksum(ctx, j.other, tpc.Wish{Size: size, Want: own["adler32"], Patience: s.conf.notReady()})
	}
	switch kind := tpc.KindOf(err); {
	case j.verify != "true" && (kind == tpc.Denied || kind == tpc.Unsupported):
		return nil // it took the file, and tells nothing of it
	case err != nil:
		return err
	case info.Size >= 0 && info.Size != size:
		return fmt.Errorf("the other server has %d bytes of %d", info.Size, size)
	}
	return j.compare(own, info.Adler)
}

// leaving counts and sums up bytes as they are sent.
type leaving struct {
	s      *Server
	j      *job
	from   io.Reader
	hashes map[string]hash.Hash
}

// Read implements io.Reader.
func (l *leaving) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	if n > 0 {
		for _, h := range l.hashes {
			_, _ = h.Write(p[:n]) // never fails
		}
		l.s.metrics.payloadOut.Add(int64(n))
		l.s.moved(l.j, n, l.s.total.down)
	}
	return n, err
}
