//go:build !linux

package sockdiag

import (
	"errors"
	"fmt"
)

// A Reader reads sockets. It exists on Linux only.
type Reader struct{}

// Open returns an error that wraps errors.ErrUnsupported.
func Open() (*Reader, error) {
	return nil, fmt.Errorf("the measurements of TCP sockets are read on Linux only: %w", errors.ErrUnsupported)
}

// OpenOf returns the error of Open.
func OpenOf(int) (*Reader, error) { return Open() }

// Sockets returns an error that wraps errors.ErrUnsupported.
func (*Reader) Sockets(_ Filter, into []Socket) ([]Socket, error) {
	return into, errors.ErrUnsupported
}

// Close does nothing.
func (*Reader) Close() error { return nil }
