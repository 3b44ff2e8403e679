package tpc

import (
	"context"
	"io"
	"net/http"
)

// Open returns the bytes of a file from its first one, with GET. They come as they are read, for as long as ctx lasts. The caller
// closes them.
func (c *Client) Open(ctx context.Context, t Target) (io.ReadCloser, error) {
	res, err := c.Do(ctx, Request{Method: http.MethodGet, Target: t})
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer end(res)
		return nil, Answered("GET", res)
	}
	return res.Body, nil
}

// Store makes a file of size bytes with PUT, or replaces one. open returns the file's bytes from
// the first byte on; it is called again for each server that the endpoint redirects to. A server
// that supports Expect: 100-continue can refuse the file before its bytes are sent.
func (c *Client) Store(ctx context.Context, t Target, size int64, open func() (io.ReadCloser, error)) error {
	h := http.Header{"Content-Type": {"application/octet-stream"}}
	if size > 0 {
		h["Expect"] = []string{"100-continue"}
	}
	res, err := c.Do(ctx, Request{Method: http.MethodPut, Target: t, Header: h, Body: open, Length: size})
	if err != nil {
		return err
	}
	defer end(res)
	if res.StatusCode/100 == 2 && res.StatusCode != http.StatusMultiStatus {
		return nil
	}
	return Answered("PUT", res)
}
