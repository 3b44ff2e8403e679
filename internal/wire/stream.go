package wire

import (
	"context"
	"io"
	"net/http"
	"time"
)

// silence is how long a stream may say nothing. Servers send beats.
const silence = time.Minute

// Stream asks with GET for an answer without an end, such as events. It asks one
// server only, that which answered last. Who gets the stream closes it; its end
// is an error if nothing was heard for a minute.
func (c *Client) Stream(ctx context.Context, path string) (io.ReadCloser, error) {
	ctx, stop := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.urls[int(c.best.Load())%len(c.urls)]+path, http.NoBody)
	if err != nil {
		stop(nil)
		return nil, err
	}
	c.sign(req)
	patient := c.http
	patient.Timeout = 0
	s := &stream{stop: stop, timer: time.AfterFunc(silence, func() { stop(errSilent) }), ctx: ctx}
	res, err := patient.Do(req) //nolint:bodyclose // the stream closes it
	if err != nil {
		s.timer.Stop()
		stop(nil)
		return nil, err
	}
	s.body = res.Body
	if res.StatusCode != http.StatusOK {
		defer s.Close() //nolint:errcheck // it was read
		return nil, refusal(res)
	}
	return s, nil
}

// A stream is an answer that ends by itself when nothing is heard for long.
type stream struct {
	ctx   context.Context
	stop  context.CancelCauseFunc
	timer *time.Timer
	body  io.ReadCloser
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if n > 0 {
		s.timer.Reset(silence)
	}
	if cause := context.Cause(s.ctx); err != nil && cause != nil {
		err = cause
	}
	return n, err
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.timer.Stop()
	s.stop(nil)
	return s.body.Close()
}
