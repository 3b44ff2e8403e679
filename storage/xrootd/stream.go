package xrootd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"weir/storage"
)

// ReadTo is c.Do for a Read of a whole file whose payload is written to w, in the order of the
// file. It holds at most Op.Chunk times Op.Ahead bytes. c is a client of this package.
func ReadTo(ctx context.Context, c storage.Client, op *storage.Op, p storage.Progress, w io.Writer) (storage.Result, error) {
	if op.Kind != storage.Read || op.Ranges != nil || op.Dest != "" {
		return storage.Result{}, errors.New("only the payload of a whole file's read can go to a writer")
	}
	own, err := ownClient(c)
	if err != nil {
		return storage.Result{}, err
	}
	return own.do(ctx, op, p, w, nil)
}

// WriteFrom is c.Do for a Write whose payload, Op.Size bytes, comes from r. It replaces an existing
// file. After an error of r, which it returns, the file is incomplete. c is a client of this
// package.
func WriteFrom(ctx context.Context, c storage.Client, op *storage.Op, p storage.Progress, r io.Reader) (storage.Result, error) {
	if op.Kind != storage.Write {
		return storage.Result{}, errors.New("only a write can have the payload of a reader")
	}
	own, err := ownClient(c)
	if err != nil {
		return storage.Result{}, err
	}
	return own.do(ctx, op, p, nil, r)
}

func ownClient(c storage.Client) (*client, error) {
	own, ok := c.(*client)
	if !ok {
		return nil, fmt.Errorf("a client of another driver: %w", errors.ErrUnsupported)
	}
	return own, nil
}
