package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/loadtest/cluster"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/serve"
)

// Contents of the built-in server: files, or for jobs at least so many events in at least so many
// files.
const (
	builtInSet      = "1000x1MiB"
	builtInEvents   = 50_000
	builtInDatasets = 4
)

// startBuiltIn starts the built-in server if it is the plan's target, and sets the target to its
// URL. The nil server has nothing to stop.
func (r *session) startBuiltIn(ctx context.Context) (*builtInServer, error) {
	if r.Plan.Target != scenario.BuiltIn && !r.Plan.BuiltIn {
		return nil, nil
	}
	server, err := startServer(ctx, r.Console.Stderr, r.Plan, r.links.service())
	if err != nil {
		return nil, err
	}
	there := *r.Plan
	there.Target, there.BuiltIn = server.url, true
	r.Plan = &there
	return server, nil
}

// A builtInServer is weir's own server as another process.
type builtInServer struct {
	process *cluster.Child
	url     string
}

func (b *builtInServer) stop() error {
	if b == nil {
		return nil
	}
	return b.process.Stop()
}

// startServer starts the built-in server with synthetic files as a process of
// its own, so that its CPU time and that of the clients can be distinguished.
// listen is host:port; if it is empty, the server takes a free port of the
// loopback.
func startServer(ctx context.Context, log io.Writer, p *scenario.Plan, listen string) (*builtInServer, error) {
	command, err := cluster.SelfCommand(slices.Concat([]string{"serve", "--while-stdin"}, serverFiles(p.Work), serverCost(p))...)
	if err != nil {
		return nil, err
	}
	if listen != "" {
		command = append(command, "--listen", listen, "--public") // no other machine has a route there
	}
	c, err := cluster.Start(command, log)
	if err != nil {
		return nil, fmt.Errorf("start the built-in server: %w", err)
	}
	line, err := bufio.NewReader(c.Out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("the built-in server did not start: %q", line), c.Stop())
	}
	return &builtInServer{c, url}, ctx.Err()
}

// serverFiles returns the options for the files that work needs. Each file has
// the events of one job, so that a job reads as much of it directly as when it
// is staged.
func serverFiles(w workload.Work) []string {
	if w.Job == nil {
		return []string{"--synthetic", builtInSet}
	}
	n := int64(max(w.Job.Events, 1))
	files := max(builtInDatasets, (builtInEvents+n-1)/n)
	return []string{"--events", fmt.Sprintf("%dx%dx%dB", files, n, int64(w.Job.Event))}
}

// serverCost returns the options for the cost of the server's pages.
func serverCost(p *scenario.Plan) (args []string) {
	if p.Server.PageCPU > 0 {
		args = append(args, "--cpu-per-page", time.Duration(p.Server.PageCPU).String(), "--threads", strconv.Itoa(p.Server.Threads))
		if page := p.Page(); page > 0 {
			args = append(args, "--page", fmt.Sprintf("%dB", int64(page)))
		}
	}
	for _, n := range p.Server.CPU {
		args = append(args, "--cpu", strconv.Itoa(n))
	}
	return args
}

// withSeeds adds the seeds of the contents to the built-in server's files, so that parts of them
// can be verified.
func withSeeds(files []workload.File) []workload.File {
	for i := range files {
		files[i].Seed, files[i].Made = serve.SeedOf(0, files[i].Path), true
	}
	return files
}
