package endpoint

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/adler"
	"weir/internal/tpc"
	"weir/serve"
)

const (
	// digestTime is the time limit for another server to read a file and report its checksum.
	digestTime = 30 * time.Minute

	mostStreams = 8        // connections for a file that is pulled, even if a client requests more
	streamPart  = 16 << 20 // bytes of a part; parts follow one another over a connection
)

// doPull downloads a file from another server. It appears under its name when it is complete and
// its checksum is the checksum of the other server.
func (j *job) doPull(ctx context.Context) error {
	info, err := j.client.Stat(ctx, j.other)
	if err != nil {
		return err
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var reported string
	var reportedErr error
	asking.Go(func() { reported, reportedErr = j.askSum(ctx, info.Size) }) // during the download: the server may have to read the file
	up, err := j.server.Create(j.name)
	if err != nil {
		return err
	}
	own, err := j.bring(ctx, up, info)
	if err == nil {
		j.allow(digestTime)
		asking.Wait()
		if err = reportedErr; err == nil {
			err = j.compare(own, reported)
		}
	}
	if err != nil {
		up.Abort()
		return err
	}
	return up.Commit(j.replace, own)
}

// askSum requests the file's adler32 from the other server, unless the client has disabled the
// comparison. A missing checksum is an error only if the client requires it.
func (j *job) askSum(ctx context.Context, size int64) (string, error) {
	if j.verify == "false" {
		return "", nil
	}
	w := tpc.Wish{Size: size}
	if j.verify == "true" {
		w.Patience = j.stall / 4
	}
	info, err := j.client.Checksum(ctx, j.other, w)
	if err != nil && j.verify == "" && ctx.Err() == nil {
		err = nil
	}
	return info.Adler, err
}

// errWhole is the error for a server that does not send ranges of files.
var errWhole = errors.New("the other server gives no parts of files")

// bring downloads the bytes, and returns their checksums. It uses as many connections as the client
// requests, if there are enough parts and the received bytes can be written at any offset. Only
// adler32 can be combined from parts.
func (j *job) bring(ctx context.Context, up *serve.Upload, info tpc.Info) (own map[string]string, err error) {
	to, anywhere := up.Writer.(io.WriterAt)
	for alg := range j.stated {
		anywhere = anywhere && alg == adlerName
	}
	if n := min(int64(j.asked), mostStreams, info.Size/streamPart); anywhere && n > 1 {
		own, err = j.fetchParts(ctx, to, info, int(n))
		if !errors.Is(err, errWhole) {
			return own, err
		}
		j.quota.Release()
		j.moved.Store(0)
	}
	hashes := newHashes(j.stated)
	err = j.fetch(ctx, up, hashes, info.Size)
	return textsOf(hashes), err
}

// get requests the file, or a range of it.
func (j *job) get(ctx context.Context, header ...string) (*http.Response, error) {
	h := http.Header{"Accept-Encoding": {"identity"}}
	for i := 0; i+1 < len(header); i += 2 {
		h[header[i]] = []string{header[i+1]}
	}
	return j.client.Do(ctx, tpc.Request{Method: http.MethodGet, Target: j.other, Header: h})
}

// fetch downloads the bytes over one connection. size is their expected number, or -1 if it is not
// known.
func (j *job) fetch(ctx context.Context, to io.Writer, hashes map[string]hash.Hash, size int64) error {
	res, err := j.get(ctx)
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
		from = j.quota.Limit(res.Body)
	} else {
		if err := j.quota.Take(size); err != nil {
			return err
		}
		from = io.LimitReader(from, size+1) // one more byte detects excess data
	}
	got, err := j.drain(ctx, from, func(p []byte) error {
		for _, h := range hashes {
			_, _ = h.Write(p) // never fails
		}
		_, err := to.Write(p)
		return err
	})
	switch {
	case err != nil:
		return err
	case size >= 0 && got > size:
		return fmt.Errorf("the other server has a file of %d bytes, and sends more", size)
	case size >= 0 && got != size:
		return fmt.Errorf("the other server has a file of %d bytes, and sent %d", size, got)
	}
	return nil
}

// drain receives all bytes, and returns their number.
func (j *job) drain(ctx context.Context, from io.Reader, store func([]byte) error) (all int64, err error) {
	buf, put := j.server.Buffer()
	defer put()
	for {
		n, err := from.Read(buf)
		if n > 0 {
			j.count(n, j.server.Received)
			all += int64(n)
			if err := store(buf[:n]); err != nil {
				return all, &serve.StoreError{Err: err}
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case errors.As(err, new(*serve.Refusal)):
			return all, err
		case ctx.Err() != nil:
			return all, context.Cause(ctx)
		case err != nil:
			return all, fmt.Errorf("the connection to the other server broke: %w", err)
		}
	}
}

// fetchParts does the same as fetch over several connections.
func (j *job) fetchParts(ctx context.Context, to io.WriterAt, info tpc.Info, n int) (map[string]string, error) {
	if err := j.quota.Take(info.Size); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sums := make([]uint32, (info.Size+streamPart-1)/streamPart)
	var next atomic.Int64
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(sums)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				var err error
				if sums[i], err = j.fetchPart(ctx, to, info, i*streamPart); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	sum := uint32(1)
	for i, part := range sums {
		sum = adler.Combine(sum, part, min(streamPart, info.Size-int64(i)*streamPart))
	}
	return map[string]string{adlerName: adlerName + ":" + adler.Text(sum)}, nil
}

// fetchPart downloads a part that begins at from, and returns its checksum.
func (j *job) fetchPart(ctx context.Context, to io.WriterAt, info tpc.Info, from int64) (uint32, error) {
	n := min(streamPart, info.Size-from)
	span := fmt.Sprintf("%d-%d", from, from+n-1)
	res, err := j.get(ctx, "Range", "bytes="+span)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	switch tag := res.Header.Get("Etag"); {
	case res.StatusCode == http.StatusOK:
		return 0, errWhole
	case res.StatusCode != http.StatusPartialContent:
		return 0, tpc.Answered("GET", res)
	case res.Header.Get("Content-Range") != fmt.Sprintf("bytes %s/%d", span, info.Size), info.ETag != "" && tag != "" && tag != info.ETag:
		return 0, errors.New("the other server's file has changed, or it sends other bytes than those that were asked for")
	}
	sum := uint32(1)
	got, err := j.drain(ctx, io.LimitReader(res.Body, n), func(p []byte) error {
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
