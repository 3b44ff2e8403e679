package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir/cluster"
	"weir/internal/pause"
	"weir/report/dashboard"
	"weir/run"
)

// watchFlags say where the live page is.
type watchFlags struct {
	address, tokenFile string
}

// watchHere is the value of --watch without one.
const watchHere = "this machine"

func watchCommand(s streams, signals signalSource) *cobra.Command {
	var f watchFlags
	c := &cobra.Command{
		Use:   "watch [RUN|CAMPAIGN|FOLDER]",
		Short: "Show a run in the browser, while it goes on or afterwards",
		Long: `Serves a page that follows a run directory: throughput, clients, latency, errors,
data servers, hosts, the curve so far and what it says. The run may go on, be
over, have been broken off, or begin a little later. Of a campaign's folder, or
one with several runs, the newest is shown, and the page goes on to the next one
by itself. Without an argument that is the folder runs.

The page is for this machine only, unless --listen names another address: then
the address that is printed has a token at its end, and who does not know it
sees nothing. What is sent is not encrypted: through networks that others can
listen to, use ssh -L and the address on this machine.

Nothing is written. Ctrl-C ends the page, not the run.`,
		Example: `  weir watch                                          # the newest below runs
  weir watch runs/latest
  weir watch runs/old-and-new --listen :9347          # a wall display, with a token`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := "runs"
			if len(args) == 1 {
				dir = args[0]
			}
			info, err := os.Stat(dir)
			if err == nil && !info.IsDir() {
				return exit{exitUsage, fmt.Errorf("%s is a file: name a run directory, a campaign's folder, or a folder with runs", dir)}
			}
			ended := signals.listen()
			page, openErr := f.open(c.Context(), dir, s)
			if openErr != nil {
				return openErr
			}
			if err != nil {
				s.tell("%s is not there yet: waiting for it\n", line(dir))
			}
			select {
			case <-ended:
			case <-c.Context().Done():
			}
			return page.Close()
		},
	}
	c.Flags().StringVar(&f.address, "listen", "", "`HOST:PORT` to serve the page at (default the first free port from 9347 on, for this machine only)")
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "ask for the token in `FILE` (default: a new one, where others than this machine can connect)")
	return c
}

// open begins to serve the page of dir and says where it is.
func (f *watchFlags) open(ctx context.Context, dir string, s streams) (*dashboard.Server, error) {
	conf := dashboard.Config{Dir: dir}
	var err error
	if f.address != "" && f.address != watchHere {
		if conf.Listen, err = dashboard.ParseAddress(f.address); err != nil {
			return nil, exit{exitUsage, err}
		}
	}
	if conf.Token, err = fileText(f.tokenFile); err != nil {
		return nil, fmt.Errorf("the token's file: %w", err)
	}
	if f.tokenFile != "" && len(conf.Token) < leastToken {
		return nil, exit{exitUsage, fmt.Errorf("%s: a token has %d letters or more", f.tokenFile, leastToken)}
	}
	page, err := dashboard.Open(ctx, conf, aside)
	if err != nil {
		return nil, listening("the live page", err)
	}
	s.tell("live page      %s\n", page.URL())
	return page, nil
}

// leastToken is how long a token must be that cannot be guessed over a network.
const leastToken = 16

// A livePage is the page of a run that is being measured; nil if nobody wants one.
type livePage struct {
	*dashboard.Server
	streams
}

// interruptible calls do, which signals can end, with the live page that the
// flags ask for.
func (f *runFlags) interruptible(ctx context.Context, s streams, signals signalSource, do func(in run.Interrupts) error) error {
	if f.watch.address == "" && f.watch.tokenFile != "" {
		return exit{exitUsage, errors.New("--watch-token-file is for --watch")}
	}
	if f.watch.address != "" {
		page, err := f.watch.open(ctx, "", s)
		if err != nil {
			return err
		}
		f.page = &livePage{page, s}
	}
	in, release := interruptible(ctx, signals.listen(), s.err)
	err := afterSignal(in.Finish, do(in))
	interrupted := in.Finish.Err() != nil
	release()
	return f.page.end(ctx, err, interrupted, signals)
}

// show goes on to the run or campaign in dir.
func (p *livePage) show(dir string) {
	if p != nil {
		p.Show(dir)
	}
}

// How long a page is served when its run is over.
const (
	lastWords = 20 * time.Second // at most, to tell the result to pages that are open
	reloading = 3 * time.Second  // a page that is gone for so long does not come back
)

// end closes the page when the run is over. Pages that are open are told the
// result; on a terminal they are served until the last one is closed, or a
// signal comes, unless one has ended the run. err is the run's.
func (p *livePage) end(ctx context.Context, err error, interrupted bool, signals signalSource) error {
	if p == nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := signals.listen()
	go func() {
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	telling, stop := context.WithTimeout(ctx, lastWords)
	defer stop()
	p.Settle(telling)
	if p.Pages() > 0 && !interrupted && isTerminal(p.err) {
		p.tell("live page      %s is served until it is closed, or Ctrl-C\n", p.URL())
		for p.Pages() > 0 && ctx.Err() == nil {
			pause.For(ctx, time.Second)
			if p.Pages() == 0 {
				pause.For(ctx, reloading)
			}
		}
	}
	if closing := p.Close(); closing != nil {
		return errors.Join(err, closing)
	}
	return err
}

// aside analyzes a run in a process of its own that gives way to all others, so
// that the page does not disturb what it shows.
func aside(ctx context.Context, dir string, goesOn bool) (*dashboard.Found, error) {
	command, err := cluster.SelfCommand("glance", fmt.Sprintf("--goes-on=%v", goesOn), "--", dir)
	if err != nil {
		return nil, err
	}
	if nice, err := exec.LookPath("nice"); err == nil { // POSIX has it; without it, the one core must do
		command = append([]string{nice, "-n", "19"}, command...)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) && len(failed.Stderr) > 0 {
		return nil, errors.New(line(string(failed.Stderr)))
	}
	if err != nil {
		return nil, err
	}
	found := new(dashboard.Found)
	if err := json.Unmarshal(out, found); err != nil {
		return nil, err
	}
	found.Cost = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return found, nil
}

// glanceCommand is an analysis for the live page.
func glanceCommand(s streams, signals signalSource) *cobra.Command {
	goesOn := false
	c := &cobra.Command{
		Use:    "glance RUN",
		Short:  "Analyze a run for its live page (started by weir watch)",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			signals.listen() // and leave it to the page to heed them
			found, err := dashboard.UnderstandHere(c.Context(), args[0], goesOn)
			if err != nil {
				return err
			}
			return json.NewEncoder(s.out).Encode(found)
		},
	}
	c.Flags().BoolVar(&goesOn, "goes-on", false, "the run is still being written")
	return c
}

// listening explains why nothing can listen at an address.
func listening(what string, err error) error {
	var op *net.OpError
	if !errors.As(err, &op) || op.Addr == nil {
		return err
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: another program listens at %v: choose another port", what, op.Addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s: %v is no address of this machine", what, op.Addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: this user may not listen at %v: choose a port above 1023", what, op.Addr)
	}
	return err
}

// apart says what was meant where --watch ADDRESS was written instead of
// --watch=ADDRESS, so that the address was taken for a scenario.
func (f *watchFlags) apart(args []string, err error) error {
	for _, arg := range args {
		if _, missing := os.Lstat(arg); f.address != watchHere || missing == nil {
			continue
		}
		if _, _, bad := net.SplitHostPort(arg); bad == nil {
			if _, bad := dashboard.ParseAddress(arg); bad == nil {
				return exit{exitUsage, fmt.Errorf("%w; if that is where the live page shall be, write --watch=%s", err, line(arg))}
			}
		}
	}
	return err
}
