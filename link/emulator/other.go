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

func newStar(context.Context, Way, []link.Named, Options) (*Network, error) {
	return nil, errors.New(nowhere)
}

// Best chooses the way Proxy, the only one of this system.
func Best(_ context.Context, links []link.Named, _ []string) Choice {
	return choose(links, Probe(), nil)
}

// Probe tells that only a proxy is possible.
func Probe() Possible { return Possible{nowhere, nowhere, nowhere, nowhere} }

// A Door is not possible on this system.
type Door struct{}

// Isolate is not possible on this system.
func Isolate(*exec.Cmd) (*Door, error) { return nil, errors.New(nowhere) }

// Close does nothing.
func (d *Door) Close() error { return nil }

// Gone returns nil.
func (d *Door) Gone() <-chan struct{} { return nil }

// Enter tells that this process is not isolated.
func Enter() (*Door, error) { return nil, nil } //nolint:nilnil // as elsewhere, where it is not isolated

// Dial is not possible on this system.
func (d *Door) Dial(context.Context, string) (*net.TCPConn, error) { return nil, errors.New(nowhere) }

// Move is not possible on this system.
func Move(context.Context, io.Reader, io.Writer) error { return errors.New(nowhere) }
