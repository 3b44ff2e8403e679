package endpoint

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"

	"weir/internal/tpc"
)

// doPush uploads a file to another server, and then requests its size and checksum from that
// server.
func (j *job) doPush(ctx context.Context) error {
	f, closer, err := j.server.Open(j.name)
	if err != nil {
		return err
	}
	defer closer.Close()
	header := http.Header{"Content-Type": {"application/octet-stream"}}
	if f.Size() > 0 { // XRootD 5.5.3 never responds to an Expect without a body
		header["Expect"] = []string{"100-continue"} // a redirect comes before the bytes
	}
	if !j.replace {
		if err := j.free(ctx); err != nil {
			return err
		}
		header["If-None-Match"] = []string{"*"}
	}
	var hashes map[string]hash.Hash
	body := func() (io.ReadCloser, error) {
		hashes = newHashes(j.stated)
		j.moved.Store(0)
		return io.NopCloser(&outgoing{j: j, from: io.NewSectionReader(f, 0, f.Size()), hashes: hashes}), nil
	}
	res, err := j.client.Do(ctx, tpc.Request{Method: http.MethodPut, Target: j.other, Header: header, Body: body, Length: f.Size()})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode > 299 {
		return tpc.Answered("PUT", res)
	}
	if got := j.moved.Load(); got != f.Size() { // and only then are the sums ours to read
		return fmt.Errorf("the other server answers after %d bytes of %d", got, f.Size())
	}
	return j.readBack(ctx, f.Size(), textsOf(hashes))
}

// free returns an error if there is a file that must not be replaced.
func (j *job) free(ctx context.Context) error {
	_, err := j.client.Stat(ctx, j.other)
	if err == nil {
		return errors.New("412: the other server has a file of this name already")
	}
	if kind := tpc.KindOf(err); kind == tpc.Missing || kind == tpc.Denied { // XRootD does not report on files that may be created
		return nil
	}
	return err
}

// readBack requests the size and the checksum of a pushed file from the other server.
func (j *job) readBack(ctx context.Context, size int64, own map[string]string) error {
	j.allow(digestTime)
	var info tpc.Info
	var err error
	if j.verify == "false" {
		info, err = j.client.Stat(ctx, j.other)
	} else {
		info, err = j.client.Checksum(ctx, j.other, tpc.Wish{Size: size, Want: own[adlerName], Patience: j.stall / 4})
	}
	switch kind := tpc.KindOf(err); {
	case j.verify != "true" && (kind == tpc.Denied || kind == tpc.Unsupported):
		return nil // it accepted the file, and reports no checksum
	case err != nil:
		return err
	case info.Size >= 0 && info.Size != size:
		return fmt.Errorf("the other server has %d bytes of %d", info.Size, size)
	}
	return j.compare(own, info.Adler)
}

// outgoing counts the bytes and updates their checksums as they are sent.
type outgoing struct {
	j      *job
	from   io.Reader
	hashes map[string]hash.Hash
}

// Read implements io.Reader.
func (l *outgoing) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	if n > 0 {
		for _, h := range l.hashes {
			_, _ = h.Write(p[:n]) // never fails
		}
		l.j.count(n, l.j.server.Sent)
	}
	return n, err
}
