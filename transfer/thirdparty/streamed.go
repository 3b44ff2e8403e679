package thirdparty

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"time"

	"weir/internal/content"
	"weir/internal/digest"
	"weir/internal/tpc"
	"weir/transfer"
)

const (
	streamNews = 200 * time.Millisecond
)

var errStalled = tpc.Stall(tpc.StallTime)

// streamsFile reports whether the bytes of the file pass through the coordinator.
func (k *thirdCopy) streamsFile() bool {
	if !k.c.streams() || k.needsStream {
		return k.c.streams()
	}
	return k.c.leases.MustStream(&k.l)
}

// stream copies the bytes of the file to its temporary name, and computes their checksum. Copies
// beyond the limit wait.
func (k *thirdCopy) stream(ctx context.Context) error {
	select {
	case k.c.streamed <- struct{}{}:
		defer func() { <-k.c.streamed }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	k.out.Streamed = true
	k.c.leases.SetStreamed(k.active)
	s := newStream(ctx, k.l.Size, k.l.Adler, k.tell)
	source, temp := k.marked()
	err := k.c.tpc.Store(s.ctx, temp, k.l.Size, func() (io.ReadCloser, error) {
		return s.open(func() (io.ReadCloser, error) { return k.c.tpc.Open(s.ctx, source) })
	})
	k.wrote = k.wrote || !unreached(err)
	sum, sourceErr, err := s.end(err)
	about := k.l.Dest
	if sourceErr != nil {
		about, err = k.l.Source, sourceErr
	}
	if err != nil {
		if tpc.KindOf(err) == tpc.Missing && about.Site == k.l.Dest.Site {
			err = failf(transfer.Transient, "%v", err) // the source may have it
		}
		return at(about, fmt.Errorf("copy from %s to %s through the coordinator: %w", k.l.Source.Site, k.l.Dest.Site, err))
	}
	k.tell(k.l.Size)
	k.sum = sum
	return nil
}

// compare compares the checksum of the bytes that passed with the required checksum of the file,
// and returns it.
func (k *thirdCopy) compare(want string) (string, error) {
	if k.sum == "" || want == "" || want == k.sum {
		return max(want, k.sum), nil
	}
	k.out.Adler = k.sum
	return want, failf(transfer.Checksum, "what came from %s has %s instead of %s", k.l.Source.Site, digest.Words(k.sum), hexOf(want))
}

// readBack computes the checksum of a file at an endpoint without checksums by reading its bytes.
// Readings beyond the limit of copies wait.
func (k *thirdCopy) readBack(ctx context.Context, t tpc.Target) (string, error) {
	select {
	case k.c.streamed <- struct{}{}:
		defer func() { <-k.c.streamed }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	s := newStream(ctx, k.l.Size, k.l.Adler, func(int64) {})
	body, err := s.open(func() (io.ReadCloser, error) { return k.c.tpc.Open(s.ctx, t) })
	if err == nil {
		_, err = io.Copy(io.Discard, body)
		err = errors.Join(err, body.Close())
	}
	sum, _, err := s.end(err)
	return sum, err
}

// A byteStream computes the checksum of a file of size bytes while the bytes pass. It does not
// store them.
type byteStream struct {
	ctx     context.Context // of all requests; it ends if no byte moves for too long
	stop    context.CancelCauseFunc
	size    int64
	kind    string // algorithm
	stalled *time.Timer
	moved   func(int64)

	mu   sync.Mutex
	pass *pass // the current pass
	news time.Time
}

// A pass is one reading of the file, from its first byte.
type pass struct {
	s   *byteStream
	in  io.ReadCloser
	at  int64
	sum hash.Hash
	err error // of the source
}

// newStream returns a byteStream, which uses the checksum algorithm of want. moved is called now
// and then with the number of bytes that have passed. The caller calls end.
func newStream(ctx context.Context, size int64, want string, moved func(int64)) *byteStream {
	kind, _ := digest.Split(want)
	s := &byteStream{size: size, kind: kind.Name, moved: moved}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	s.stalled = time.AfterFunc(tpc.StallTime, func() { s.stop(errStalled) })
	return s
}

// open begins another pass.
func (s *byteStream) open(source func() (io.ReadCloser, error)) (io.ReadCloser, error) {
	in, err := source()
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, hashErr := content.NewHash(s.kind)
	s.pass = &pass{s: s, in: in, sum: sum, err: err}
	if err = errors.Join(err, hashErr); err != nil {
		return nil, err
	}
	return s.pass, nil
}

// end ends the stream after a copy that ended with err. It returns the checksum of the bytes, the
// error of their source, and the reason why the copy failed.
func (s *byteStream) end(err error) (sum string, source, copying error) {
	if errors.Is(context.Cause(s.ctx), errStalled) {
		err = errStalled
	}
	s.stalled.Stop()
	s.stop(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pass
	s.pass = nil // it may be read for a while yet
	switch {
	case p == nil:
		return "", nil, err
	case err == nil && p.at < s.size:
		err = &tpc.Error{Kind: tpc.Broken, Begun: true, Text: fmt.Sprintf("it was answered after %d bytes of %d", p.at, s.size)}
	case errors.Is(err, errStalled):
		p.err = nil
	}
	return digest.Short(content.Text(s.kind, p.sum)), p.err, err
}

// Read implements io.Reader.
func (p *pass) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pass != p {
		return 0, errors.New("the copy has ended")
	}
	_, _ = p.sum.Write(b[:n]) // never fails
	p.at += int64(n)
	if n > 0 {
		s.stalled.Reset(tpc.StallTime)
	}
	switch ended := errors.Is(err, io.EOF); {
	case p.at > s.size || ended && p.at < s.size:
		err = &tpc.Error{Kind: tpc.Broken, Text: fmt.Sprintf("the file has %d bytes, and %d came", s.size, p.at)}
		p.err = err
	case err != nil && !ended && s.ctx.Err() == nil:
		err = &tpc.Error{Kind: cmp.Or(tpc.KindOf(err), tpc.Broken), Text: fmt.Sprintf("after %d bytes of %d: %v", p.at, s.size, err), Err: err}
		p.err = err
	}
	if now := time.Now(); now.Sub(s.news) >= streamNews {
		s.news = now
		s.moved(p.at)
	}
	return n, err
}

// Close ends the reading.
func (p *pass) Close() error { return p.in.Close() }
