package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"weir/cluster"
	"weir/serve"
	"weir/workload"
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

// What weir's own server serves to a run without a target: files, or for jobs
// at least so many events, in at least so many files.
const (
	builtinSet      = "1000x1MiB"
	builtinEvents   = 50_000
	builtinDatasets = 4
)

// builtinFiles returns the options for the files that work needs. Each file has
// the events of one job, so that a job reads as much of it directly as when it
// is staged.
func builtinFiles(w workload.Work) []string {
	if w.Job == nil {
		return []string{"--synthetic", builtinSet}
	}
	n := int64(max(w.Job.Events, 1))
	files := max(builtinDatasets, (builtinEvents+n-1)/n)
	return []string{"--events", fmt.Sprintf("%dx%dx%dB", files, n, int64(w.Job.Event))}
}

// invented tells what the built-in server's files consist of, so that also parts
// of them can be checked.
func invented(files []workload.File) []workload.File {
	for i := range files {
		files[i].Seed, files[i].Made = serve.SeedOf(0, files[i].Path), true
	}
	return files
}

// startBuiltin starts the built-in server with synthetic files as its own
// process, so that its CPU and the clients' can be told apart. listen is where,
// host:port; empty is a free port of the loopback.
func startBuiltin(ctx context.Context, s streams, w workload.Work, listen string) (*builtin, error) {
	command, err := selfCommand(append([]string{"serve", "--while-stdin"}, builtinFiles(w)...)...)
	if err != nil {
		return nil, err
	}
	if listen != "" {
		command = append(command, "--listen", listen, "--public") // no other machine has a route there
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
