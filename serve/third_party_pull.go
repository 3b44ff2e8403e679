package serve

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"sync"
	"time"

	"weir/internal/adler"
	"weir/internal/content"
	"weir/internal/tpc"
)

// digestTime is how long another server may take to read a file and tell its checksum.
const digestTime = 30 * time.Minute

// notReady is for how long another server is asked again that does not tell a checksum.
func (c *Config) notReady() time.Duration { return c.StallTimeout / 4 }

// pull gets a file from another server. It appears under its name when it is whole
// and its checksum is the one that the other server tells.
func (s *Server) pull(ctx context.Context, j *job) error {
	info, err := s.copier.Stat(ctx, j.other)
	if err != nil {
		return err
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	told := make(chan sumAnswer, 1)
	asking.Go(func() { told <- s.askSum(ctx, j, info.Size) }) // beside the bytes: it may have to read the file
	up, err := s.tree.create(j.name)
	if err != nil {
		return parentless(err)
	}
	own, err := s.bring(ctx, j, up, info)
	if err != nil {
		up.abort()
		return err
	}
	j.allow(digestTime)
	answer := <-told
	if answer.err == nil {
		answer.err = j.compare(own, answer.sum)
	}
	if answer.err != nil {
		up.abort()
		return answer.err
	}
	e, _, err := up.commit(j.replace)
	if err != nil {
		return parentless(err)
	}
	s.sums.forget(j.name, false)
	for alg, text := range own {
		s.sums.remember(j.name, alg, text, e)
	}
	return nil
}

type sumAnswer struct {
	sum string
	err error
}

// askSum asks the other server for the file's adler32, unless the client does not
// want it compared. That it is not told is no error, but for a client that insists.
func (s *Server) askSum(ctx context.Context, j *job, size int64) sumAnswer {
	if j.verify == "false" {
		return sumAnswer{}
	}
	patience := time.Duration(0)
	if j.verify == "true" {
		patience = s.conf.notReady()
	}
	info, err := s.copier.Checksum(ctx, j.other, tpc.Wish{Size: size, Patience: patience})
	if err != nil && j.verify == "" && ctx.Err() == nil {
		err = nil
	}
	return sumAnswer{info.Adler, err}
}

// bring moves the bytes, and returns their checksums.
func (s *Server) bring(ctx context.Context, j *job, up upload, info tpc.Info) (own map[string]string, err error) {
	if n := j.streams(up, info.Size); n > 1 {
		own, err = s.fetchParts(ctx, j, up.(io.WriterAt), info, n)
		if !errors.Is(err, errWhole) {
			return own, err
		}
		j.room.give()
		j.moved.Store(0)
	}
	hashes := newHashes(j.stated)
	err = s.fetch(ctx, j, up, hashes, info.Size)
	return textsOf(hashes), err
}

// fetch moves the bytes over one connection. size is what they must be, -1 if nobody
// said.
func (s *Server) fetch(ctx context.Context, j *job, to io.Writer, hashes map[string]hash.Hash, size int64) error {
	res, err := s.copier.Do(ctx, tpc.Request{Method: http.MethodGet, Target: j.other, Header: http.Header{"Accept-Encoding": {"identity"}}})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return tpc.Answered("GET", res)
	}
	if size < 0 {
		size = res.ContentLength
	}
	if res.ContentLength >= 0 && res.ContentLength != size {
		return fmt.Errorf("the other server has a file of %d bytes, and sends %d", size, res.ContentLength)
	}
	from := io.Reader(res.Body)
	if size < 0 {
		from = &measured{res.Body, j.room}
	} else {
		if err := j.room.take(size); err != nil {
			return err
		}
		from = io.LimitReader(from, size+1) // one more tells that there is more
	}
	got, err := s.drain(ctx, j, from, func(p []byte) error {
		for _, h := range hashes {
			_, _ = h.Write(p) // never fails
		}
		_, err := to.Write(p)
		return err
	})
	if err != nil {
		return err
	}
	if size >= 0 && got > size {
		return fmt.Errorf("the other server has a file of %d bytes, and sends more", size)
	} else if size >= 0 && got != size {
		return fmt.Errorf("the other server has a file of %d bytes, and sent %d", size, got)
	}
	return nil
}

// drain moves what comes, and returns how much that was.
func (s *Server) drain(ctx context.Context, j *job, from io.Reader, store func([]byte) error) (all int64, err error) {
	pooled := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(pooled)
	for {
		n, err := from.Read(*pooled)
		if n > 0 {
			s.moved(j, n, s.total.up)
			s.metrics.payloadIn.Add(int64(n))
			all += int64(n)
			if err := store((*pooled)[:n]); err != nil {
				return all, &storeError{err}
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case errors.As(err, new(*tooLarge)):
			return all, err
		case ctx.Err() != nil:
			return all, context.Cause(ctx)
		case err != nil:
			return all, fmt.Errorf("the connection to the other server broke: %w", err)
		}
	}
}

// moved counts bytes and keeps the pace of all connections together.
func (s *Server) moved(j *job, n int, pace *pacer) {
	j.moved.Add(int64(n))
	j.allow(s.conf.StallTimeout)
	if pace != nil {
		pause(pace.take(time.Now(), n), s.stop)
	}
}

// newHashes returns a hash for adler32 and for each checksum that is stated.
func newHashes(stated map[string]string) map[string]hash.Hash {
	hashes := map[string]hash.Hash{}
	for alg := range stated {
		if h, err := content.NewHash(alg); err == nil {
			hashes[alg] = h
		}
	}
	hashes[adlerName] = adler.New()
	return hashes
}

func textsOf(hashes map[string]hash.Hash) map[string]string {
	texts := map[string]string{}
	for alg, h := range hashes {
		texts[alg] = content.Text(alg, h)
	}
	return texts
}
