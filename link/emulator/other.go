//go:build !linux

package emulator

import (
	"context"
	"errors"
	"io"
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

// Isolated does nothing on this system.
func Isolated(*exec.Cmd) {}

// Settle does nothing on this system.
func Settle() error { return nil }

// Move is not possible on this system.
func Move(context.Context, io.Reader, io.Writer) error { return errors.New(nowhere) }
