package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"weir/internal/adler"
	"weir/internal/tpc"
)

const (
	mostStreams = 8        // connections for a file that is pulled, whatever a client asks for
	streamPart  = 16 << 20 // bytes of a part, one after the other over a connection
)

// errWhole says that a server gives no parts of files.
var errWhole = errors.New("the other server gives no parts of files")

// streams is how many connections a pull is to have: what its client asks for, as far
// as there are parts for all of them, and what is received can be written anywhere.
// Only adler32 is put together of parts.
func (j *job) streams(up upload, size int64) int {
	_, anywhere := up.(io.WriterAt)
	for alg := range j.stated {
		anywhere = anywhere && alg == adlerName
	}
	if !anywhere {
		return 1
	}
	return int(min(int64(j.asked), mostStreams, size/streamPart))
}

// fetchParts is fetch over several connections.
func (s *Server) fetchParts(ctx context.Context, j *job, to io.WriterAt, info tpc.Info, n int) (map[string]string, error) {
	if err := j.room.take(info.Size); err != nil {
		return nil, err
	}
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	sums := make([]uint32, (info.Size+streamPart-1)/streamPart)
	var next atomic.Int64
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(sums)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				sum, err := s.fetchPart(ctx, j, to, info, i*streamPart)
				if err != nil {
					give(err)
					return
				}
				sums[i] = sum
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	sum := uint32(1)
	for i, part := range sums {
		sum = adler.Combine(sum, part, partLength(info.Size, int64(i)*streamPart))
	}
	return map[string]string{adlerName: adlerName + ":" + adler.Text(sum)}, nil
}

func partLength(size, from int64) int64 { return min(streamPart, size-from) }

// fetchPart gets a part that begins at from, and returns its checksum.
func (s *Server) fetchPart(ctx context.Context, j *job, to io.WriterAt, info tpc.Info, from int64) (uint32, error) {
	n := partLength(info.Size, from)
	header := http.Header{"Accept-Encoding": {"identity"}, "Range": {fmt.Sprintf("bytes=%d-%d", from, from+n-1)}}
	res, err := s.copier.Do(ctx, tpc.Request{Method: http.MethodGet, Target: j.other, Header: header})
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	want := fmt.Sprintf("bytes %d-%d/%s", from, from+n-1, strconv.FormatInt(info.Size, 10))
	switch tag := res.Header.Get("Etag"); {
	case res.StatusCode == http.StatusOK:
		return 0, errWhole
	case res.StatusCode != http.StatusPartialContent:
		return 0, tpc.Answered("GET", res)
	case res.Header.Get("Content-Range") != want || info.ETag != "" && tag != "" && tag != info.ETag:
		return 0, fmt.Errorf("the other server's file has changed, or it sends other bytes than those that were asked for")
	}
	sum := uint32(1)
	got, err := s.drain(ctx, j, io.LimitReader(res.Body, n), func(p []byte) error {
		sum = adler.Update(sum, p)
		_, err := to.WriteAt(p, from)
		from += int64(len(p))
		return err
	})
	if err == nil && got != n {
		err = fmt.Errorf("the other server sent %d bytes of a part of %d", got, n)
	}
	return sum, err
}
