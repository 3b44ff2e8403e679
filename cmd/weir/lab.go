package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/screen"
	"weir/internal/unit"
	"weir/lab"
	"weir/loadtest/run"
)

func labCommand(s streams) *cobra.Command {
	var asJSON bool
	list := command("list", cobra.NoArgs, func(*cobra.Command, []string) error {
		if asJSON {
			return writeJSON(s.out, map[string]any{"services": lab.Offers()})
		}
		return lab.WriteOffers(s.out)
	})
	flagVars{"json": &asJSON}.add(list)
	return group("lab", labUpCommand(s), list)
}

// labFlags are the options of the system to start.
type labFlags struct {
	lab.Options
	tls  bool
	dir  string
	disk lab.Disk
	json bool
}

func labUpCommand(s streams) *cobra.Command {
	f := labFlags{Options: lab.Options{Lookup: time.Second, Auth: "none"}}
	c := command("up {"+strings.Join(lab.Names(), " | ")+"} [-- COMMAND [ARG...]]", nil, func(c *cobra.Command, args []string) error {
		kind, command, err := f.split(c, args)
		if err != nil {
			return usageError(c, err)
		}
		return f.up(c.Context(), kind, command, s)
	})
	flagVars{
		"servers": &f.Servers, "slots": &f.Slots, "lookup": &f.Lookup, "auth": &f.Auth, "version": &f.Version, "set": &f.Set, "copies": &f.Copies,
		"tls":        &f.tls,
		"disk-limit": into(&f.disk.Rate, diskRate), "disk-slow": into(&f.disk.Slow, diskRate),
		"disk-size": &parsed{"10GB", into(&f.disk.Size, unit.ParseSize)}, "memory-limit": into(&f.disk.Memory, unit.ParseSize),
		"dir": &f.dir, "quiet/q": &s.quiet, "json": &f.json,
	}.add(c)
	return c
}

// split separates the kind of system from the command after --, and checks the kind and the
// command.
func (f *labFlags) split(c *cobra.Command, args []string) (kind lab.Kind, command []string, err error) {
	if n := c.ArgsLenAtDash(); n >= 0 {
		args, command = args[:n], args[n:]
		if len(command) == 0 {
			return kind, nil, errors.New("no command after --")
		}
		if f.json {
			return kind, nil, errors.New("--json cannot be combined with a command: leave it out")
		}
	}
	if len(args) != 1 {
		return kind, nil, fmt.Errorf("name one service: %s (and a command of yours after --)", strings.Join(lab.Names(), ", "))
	}
	if k, ok := lab.KindOf(args[0]); ok {
		return k, command, k.Check(f.Options, f.disk, c.Flags().Changed)
	}
	return kind, nil, fmt.Errorf("there is no service %q: use one of %s", args[0], strings.Join(lab.Names(), ", "))
}

func diskRate(text string) (unit.Size, error) { return unit.ParseSize(strings.TrimSuffix(text, "/s")) }

// up starts the system and keeps it until a signal arrives or, if there is a command, until it has
// ended.
func (f *labFlags) up(ctx context.Context, k lab.Kind, command []string, s streams) error {
	caught, release := run.WithHangup(s.signals.listen())
	defer release()
	system, err := f.start(ctx, caught, k, s)
	if err != nil {
		return err
	}
	switch {
	case len(command) > 0:
		if system.Note != "" {
			s.say("weir: %s\n", system.Note)
		}
		return errors.Join(runInside(ctx, system, command, s, caught), system.Stop())
	case f.json:
		err = writeJSON(s.out, system.State())
	default:
		err = system.WriteText(s.out)
	}
	if err == nil {
		s.say("weir: interrupt (Ctrl-C) to stop it\n")
		select {
		case <-caught:
		case <-ctx.Done():
		}
		s.say("weir: stopping\n")
	}
	return errors.Join(err, system.Stop())
}

// start starts the system unless a signal comes before it is up, and shows the progress.
func (f *labFlags) start(ctx context.Context, caught <-chan os.Signal, k lab.Kind, s streams) (*lab.System, error) {
	if err := k.Installed(f.Options); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	started, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case by := <-caught:
			cancel(exit{codeOf(by), errors.New("interrupted before it was up")})
		case <-started:
		}
	}()
	begin := time.Now()
	s.say("weir: starting %s\n", k.Name)
	spinner := s.working("starting " + k.Name)
	c := lab.Config{Dir: f.dir, TLS: f.tls, Disk: f.disk, Progress: func(part string) { s.say("weir: %s is up\n", part) },
		Lost: func(part string, why error) { s.say("weir: %s ended: %v\n", part, why) }}
	system, err := k.Start(ctx, c, f.Options)
	spinner.Stop()
	close(started)
	<-watched
	switch cause := context.Cause(ctx); {
	case cause != nil && err == nil:
		return nil, errors.Join(cause, system.Stop())
	case cause != nil:
		return nil, cause
	case err == nil:
		s.say("weir: ready after %.1f s\n", time.Since(begin).Seconds())
	}
	return system, err
}

// runInside runs a command in the environment of the system. Signals of a terminal reach it
// directly, other signals are forwarded. A second signal kills it.
func runInside(ctx context.Context, system *lab.System, argv []string, s streams, caught <-chan os.Signal) error {
	cmd := system.Command(ctx, argv)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.in, screen.Under(s.out), screen.Under(s.err) // it has the terminal
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for n := 1; ; n++ {
		select {
		case sig := <-caught:
			switch {
			case n > 1:
				_ = cmd.Process.Kill()
			case sig != os.Interrupt || !screen.IsTerminalReader(s.in):
				_ = cmd.Process.Signal(sig)
			}
		case err := <-done:
			return exitOf(err)
		}
	}
}

// exitOf returns the exit of a command: its code, or 128 and the signal that ended it.
func exitOf(err error) error {
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return err
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exit{code: 128 + exitCode(status.Signal())}
	}
	return exit{code: exitCode(ended.ExitCode())}
}
