//go:build !linux

package emulator

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"

	"weir/link"
)

const nowhere = "this system has no network namespaces"

func newStar(context.Context, []link.Named, Options) (*Network, error) {
	return nil, errors.New(nowhere)
}

// Best returns ErrImpossible.
func Best(context.Context, []string) (Choice, error) { return choose(Probe(), nil) }

// Probe returns that this system cannot emulate links.
func Probe() string { return nowhere }

// A HostDialer is not possible on this system.
type HostDialer struct{}

// Isolate is not possible on this system.
func Isolate(*exec.Cmd) (*HostDialer, error) { return nil, errors.New(nowhere) }

// Close does nothing.
func (d *HostDialer) Close() error { return nil }

// Gone returns nil.
func (d *HostDialer) Gone() <-chan struct{} { return nil }

// Enter reports that this process is not isolated.
func Enter() (*HostDialer, error) { return nil, nil }

// Dial is not possible on this system.
func (d *HostDialer) Dial(context.Context, string) (*net.TCPConn, error) {
	return nil, errors.New(nowhere)
}

// Listen is not possible on this system.
func (d *HostDialer) Listen(context.Context) (net.Listener, error) { return nil, errors.New(nowhere) }

// Move is not possible on this system.
func Move(context.Context, io.Reader, io.Writer) error { return errors.New(nowhere) }
