package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"weir/cluster"
)

// A builtin is weir's own server as another process.
type builtin struct {
	*cluster.Child
	URL string
}

// selfCommand returns this program with other arguments.
func selfCommand(args ...string) ([]string, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("where is this program? %w", err)
	}
	return append([]string{exe}, args...), nil
}

// startBuiltin starts the built-in server with synthetic files as its own
// process, so that its CPU and the clients' can be told apart.
func startBuiltin(ctx context.Context, s streams, synthetic string) (*builtin, error) {
	command, err := selfCommand("serve", "--synthetic", synthetic, "--while-stdin")
	if err != nil {
		return nil, err
	}
	c, err := cluster.Start(command, s.err)
	if err != nil {
		return nil, fmt.Errorf("start the built-in server: %w", err)
	}
	line, err := bufio.NewReader(c.Out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("the built-in server did not start: %q", line), c.Stop())
	}
	return &builtin{c, url}, ctx.Err()
}
