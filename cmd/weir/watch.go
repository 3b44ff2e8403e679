package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/pause"
	"weir/internal/screen"
	"weir/loadtest/cluster"
	"weir/loadtest/report/dashboard"
	"weir/loadtest/run"
)

// watchFlags set the address of the live page.
type watchFlags struct{ address, tokenFile string }

// watchHere is the value of --watch without an address.
const watchHere = "this machine"

func watchCommand(s streams) *cobra.Command {
	var f watchFlags
	c := command("watch [RUN|CAMPAIGN|FOLDER]", cobra.MaximumNArgs(1), func(c *cobra.Command, args []string) error {
		dir := "runs"
		if len(args) == 1 {
			dir = args[0]
		}
		info, missing := os.Stat(dir)
		if missing == nil && !info.IsDir() {
			return usagef("%s is a file: name a run directory, a campaign's folder, or a folder with runs", dir)
		}
		ctx, cancel := s.untilSignal(c.Context(), false)
		defer cancel()
		page, err := f.open(c.Context(), dir, s)
		if err != nil {
			return err
		}
		if missing != nil {
			s.printErr("%s does not exist yet: waiting for it\n", line(dir))
		}
		<-ctx.Done()
		return page.Close()
	})
	flagVars{"listen": &f.address, "token-file": &f.tokenFile}.add(c)
	return c
}

// open begins to serve the page of dir and prints its address.
func (f *watchFlags) open(ctx context.Context, dir string, s streams) (*dashboard.Server, error) {
	const minToken = 16 // a shorter token could be guessed over a network
	conf := dashboard.Config{Dir: dir}
	var err error
	if f.address != "" && f.address != watchHere {
		if conf.Listen, err = dashboard.ParseAddress(f.address); err != nil {
			return nil, usage(err)
		}
	}
	if conf.Token, err = fileText(f.tokenFile); err != nil {
		return nil, usagef("the token's file: %w", err)
	}
	if f.tokenFile != "" && len(conf.Token) < minToken {
		return nil, usagef("%s: the token must have %d characters or more", f.tokenFile, minToken)
	}
	page, err := dashboard.Open(ctx, conf, analyzeAside)
	if err != nil {
		return nil, listening("the live page", err)
	}
	s.printErr("live page      %s\n", page.URL())
	return page, nil
}

// A livePage is the page of a run that is in progress. A nil page does nothing.
type livePage struct {
	*dashboard.Server
	streams
}

// interruptible calls do, which signals can end, with the live page that the flags request.
func (f *runFlags) interruptible(ctx context.Context, s streams, do func(in run.Interrupts) error) error {
	if f.watch.address == "" && f.watch.tokenFile != "" {
		return usagef("--watch-token-file needs --watch")
	}
	if f.watch.address != "" {
		page, err := f.watch.open(ctx, "", s)
		if err != nil {
			return err
		}
		f.page = &livePage{page, s}
	}
	in, release := s.interruptible(ctx, s.err, f.effects)
	err := afterSignal(in.Finish, do(in))
	interrupted := in.Finish.Err() != nil
	release()
	return f.page.end(ctx, err, interrupted)
}

// show switches the page to the run or campaign in dir.
func (p *livePage) show(dir string) {
	if p != nil {
		p.Show(dir)
	}
}

// end closes the page after the run, whose error is err. Open pages get the result. On a terminal
// they are served until the last page is closed or a signal arrives, unless a signal has ended the
// run.
func (p *livePage) end(ctx context.Context, err error, interrupted bool) error {
	if p == nil {
		return err
	}
	ctx, cancel := p.untilSignal(ctx, false)
	defer cancel()
	telling, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	p.Settle(telling)
	if p.Pages() > 0 && !interrupted && screen.IsTerminal(p.err) {
		p.printErr("live page      %s is served until it is closed, or Ctrl-C\n", p.URL())
		for p.Pages() > 0 && ctx.Err() == nil {
			pause.For(ctx, time.Second)
			if p.Pages() == 0 {
				pause.For(ctx, 3*time.Second) // a page that is reloaded connects again
			}
		}
	}
	return errors.Join(err, p.Close())
}

// analyzeAside analyzes a run in a process of its own.
func analyzeAside(ctx context.Context, dir string, m dashboard.Moment) (*dashboard.Found, error) {
	command, err := cluster.SelfCommand("glance", fmt.Sprintf("--goes-on=%v", m.GoesOn), "--", dir)
	if err != nil {
		return nil, err
	}
	return dashboard.UnderstandBy(ctx, command, m)
}

func glanceCommand(s streams) *cobra.Command {
	running := false
	c := command("glance RUN", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
		s.signals.listen() // the page handles them
		found, err := dashboard.UnderstandHere(c.Context(), args[0], dashboard.Moment{GoesOn: running})
		if err != nil {
			return err
		}
		return json.NewEncoder(s.out).Encode(found)
	})
	flagVars{"goes-on": &running}.add(c)
	return c
}

// listening explains why an address cannot be listened at.
func listening(what string, err error) error {
	var op *net.OpError
	if !errors.As(err, &op) || op.Addr == nil {
		return err
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: another program listens at %v: choose another port", what, op.Addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s: %v is not an address of this machine", what, op.Addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: this user may not listen at %v: choose a port above 1023", what, op.Addr)
	}
	return err
}

// misplaced returns an error that explains --watch ADDRESS instead of --watch=ADDRESS, if the
// address was taken for a scenario.
func (f *watchFlags) misplaced(args []string, err error) error {
	for _, arg := range args {
		if _, missing := os.Lstat(arg); f.address != watchHere || missing == nil {
			continue
		}
		if _, _, bad := net.SplitHostPort(arg); bad == nil {
			if _, bad := dashboard.ParseAddress(arg); bad == nil {
				return usagef("%w; if this is the address of the live page, write --watch=%s", err, line(arg))
			}
		}
	}
	return err
}
