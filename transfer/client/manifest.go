package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"weir/internal/durable"
	"weir/transfer"
)

// Manifest returns the results of a request for each file. GET /api/v1/requests/ID/manifest
func (c *Client) Manifest(ctx context.Context, id int64) (transfer.Manifest, error) {
	return get[transfer.Manifest](ctx, c, of(id, "/manifest"), nil)
}

// ErrCut is the error for a response that ended early: it may be requested again.
var ErrCut = errors.New("the answer broke off")

// EachItem does the same as Manifest for requests with many files. It calls f for each file as it
// is read, in the order of their names, and returns the other fields. It stops at the first error
// of f.
func (c *Client) EachItem(ctx context.Context, id int64, f func(transfer.Item) error) (transfer.Manifest, error) {
	return c.WriteManifest(ctx, id, io.Discard, f)
}

// WriteManifest does the same as EachItem and writes the manifest as it is read, as JSON with one
// line for each file; only a few files are in memory. The written manifest is complete, and its
// digest matches its files, only if the error is nil. ErrCut is the error for a lost connection.
func (c *Client) WriteManifest(ctx context.Context, id int64, to io.Writer, f func(transfer.Item) error) (m transfer.Manifest, err error) {
	r, err := c.ask.Stream(ctx, of(id, "/manifest"))
	if err != nil {
		return m, err
	}
	defer r.Close()
	read := &reading{from: r, to: to}
	sum := transfer.NewManifestHash()
	d := json.NewDecoder(read)
	for err == nil {
		var t json.Token
		if t, err = d.Token(); errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		switch t {
		case "request":
			err = d.Decode(&m.Request)
		case "sha256":
			if err = d.Decode(&m.Digest); err == nil {
				_, err = io.Copy(io.Discard, read) // the end
			}
			if err == nil && m.Digest != sum.Digest() {
				return m, fmt.Errorf("the manifest of request %d is not that of its files: its sha256 is %s, theirs %s", id, m.Digest, sum.Digest())
			}
			if err == nil {
				return m, nil
			}
		case "items":
			err = eachOf(d, func(one transfer.Item) error {
				sum.Add(one)
				return f(one)
			})
		}
	}
	switch {
	case read.wrong != nil:
		err = read.wrong
	case ctx.Err() == nil && (read.failed != nil || errors.Is(err, io.ErrUnexpectedEOF)):
		err = fmt.Errorf("%w: %w", ErrCut, cmp.Or(read.failed, err))
	}
	return m, err
}

// SaveManifest writes the manifest of a request into a file, which appears only when it is
// complete. For each of the request's files it calls the function that each returns. Each attempt
// after a lost connection calls each again.
func (c *Client) SaveManifest(ctx context.Context, path string, id int64, each func() func(transfer.Item) error) (transfer.Manifest,
	error) {
	return Retry(ctx, true, func() (m transfer.Manifest, err error) {
		err = writeWhole(path, func(to io.Writer) (err error) {
			m, err = c.WriteManifest(ctx, id, to, each())
			return err
		})
		return m, err
	})
}

// writeWhole writes a file under a temporary name and renames it if write and all other steps
// succeeded. It follows symbolic links. If the file exists and is not a regular file, such as a
// pipe, it writes to it directly.
func writeWhole(path string, write func(io.Writer) error) (err error) {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at // a link stays one
	}
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
		return durable.WriteFunc(path, 0o644, write)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 64<<10)
	if err = write(out); err == nil {
		err = out.Flush()
	}
	return errors.Join(err, f.Close())
}

// A reading is a reader that copies the bytes that are read from one stream to the other.
type reading struct {
	from   io.Reader
	to     io.Writer
	failed error // reading
	wrong  error // writing
}

// Read implements io.Reader.
func (r *reading) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.failed = err
	}
	if n > 0 {
		if _, wrong := r.to.Write(p[:n]); wrong != nil {
			r.wrong = wrong
			return 0, wrong
		}
	}
	return n, err
}

// eachOf decodes a list, one element after another.
func eachOf(d *json.Decoder, f func(transfer.Item) error) error {
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		var one transfer.Item
		if err := d.Decode(&one); err != nil {
			return err
		}
		if err := f(one); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}
