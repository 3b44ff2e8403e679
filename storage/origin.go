package storage

import (
	"context"
	"errors"
	"strings"
)

// AtOrigin is the beginning of paths of files at the origin of copies, in place of the target, for
// clients of a service that WithOrigin returns.
const AtOrigin = "origin:"

// OriginPath returns the path of a file at the origin.
func OriginPath(path string) string { return AtOrigin + path }

// OnOrigin returns the path below the origin, and whether path is one of the origin.
func OnOrigin(path string) (string, bool) {
	below, ok := strings.CutPrefix(path, AtOrigin)
	return strings.TrimLeft(below, "/"), ok
}

// WithOrigin returns a service whose clients are clients of target and of origin: operations whose
// Path begins with AtOrigin are carried out at the origin. The Source of a Copy may begin with it
// as well. The service is a Reporter if target is a Reporter. Close closes both services.
func WithOrigin(target, origin Service) Service {
	s := &pair{target, origin}
	if r, ok := target.(Reporter); ok {
		return struct {
			*pair
			Reporter
		}{s, r}
	}
	return s
}

// A pair is a target and the origin of the copies to it.
type pair struct{ target, origin Service }

// Client implements Service.
func (s *pair) Client() Client { return s.clientOf(0) }

func (s *pair) clientOf(number int) Client {
	return &pairClient{target: ClientOf(s.target, number), service: s}
}

// Close implements Service.
func (s *pair) Close() error { return errors.Join(s.target.Close(), s.origin.Close()) }

// A pairClient is a client of a pair.
type pairClient struct {
	service *pair
	target  Client
	origin  Client // nil before the first operation there
	op      Op     // of the running operation, with the path at its service
}

// Do implements Client.
func (c *pairClient) Do(ctx context.Context, op *Op, p Progress) (Result, error) {
	path, at := OnOrigin(op.Path)
	source, from := OnOrigin(op.Source)
	if !at && !from {
		return c.target.Do(ctx, op, p)
	}
	c.op = *op
	if from {
		c.op.Source = source
	}
	if !at {
		return c.target.Do(ctx, &c.op, p)
	}
	c.op.Path = path
	if c.origin == nil {
		c.origin = c.service.origin.Client()
	}
	return c.origin.Do(ctx, &c.op, p)
}

// Close implements Client.
func (c *pairClient) Close() error {
	err := c.target.Close()
	if c.origin != nil {
		err = errors.Join(err, c.origin.Close())
	}
	return err
}
