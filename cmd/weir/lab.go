package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/lab"
	"weir/run"
)

func labCommand(s streams) *cobra.Command {
	var asJSON bool
	list := command("list", cobra.NoArgs, func(*cobra.Command, []string) error {
		return printList(s.out, asJSON, "services", lab.Offers(), printOffers)
	})
	jsonFlag(list, &asJSON, "print the list as JSON")
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
	var f labFlags
	c := command("up {"+strings.Join(labKinds(), "|")+"} [-- COMMAND [ARG...]]", nil, func(c *cobra.Command, args []string) error {
		kind, command, err := f.split(c, args)
		if err != nil {
			return usageError(c, err)
		}
		return f.up(c.Context(), kind, command, s)
	})
	fs := c.Flags()
	fs.IntVar(&f.Servers, "servers", 0, "`N` data servers behind a redirector (xrootd) or HAProxy (gridftp), "+
		"or machines (ssh); 0: a single one")
	fs.IntVar(&f.Slots, "slots", 0, "`N` jobs that run at once; 0: 200 (htcondor), 256 (slurm)")
	fs.DurationVar(&f.Lookup, "lookup", time.Second, "how long the redirector makes clients wait for each new file, as in `5s` (xrootd)")
	fs.StringVar(&f.Auth, "auth", "none", "authentication `METHOD`: "+strings.Join(lab.XRootDAuths(), ", ")+
		" (xrootd); gridftp has none and gsi")
	fs.StringVar(&f.Version, "version", "", "`VERSION` of the server, as in 5.8 or 6 (xrootd; default: this system's)")
	fs.StringArrayVar(&f.Set, "set", nil, "`DIRECTIVE=VALUE` of the servers' configuration, as in xrd.sched=\"mint 8 maxt 1024\"; "+
		"can be repeated (xrootd)")
	fs.BoolVar(&f.tls, "tls", false, "also use TLS (nginx, xrootd)")
	parsedFlag(fs, "disk-limit", "", "give each data server (nginx, xrootd), or each node for scratch (ssh), "+
		"a disk of its own that reads and writes this `RATE` at most, as in 40MB/s (as root)",
		into(&f.disk.Rate, diskRate))
	parsedFlag(fs, "disk-slow", "", "`RATE` of the disk of the last of the --servers, if it differs, as in 400kB/s",
		into(&f.disk.Slow, diskRate))
	parsedFlag(fs, "disk-size", "10GB", "`SIZE` of such a disk; it takes space as files are written", into(&f.disk.Size, unit.ParseSize))
	parsedFlag(fs, "memory-limit", "", "`SIZE` of the memory of each such server with its page cache, as in 1GB: "+
		"what does not fit is read from the disk", into(&f.disk.Memory, unit.ParseSize))
	fs.StringVar(&f.dir, "dir", "", "use this empty or missing `DIR` for all files of the service; it is emptied at the end")
	quietFlag(c, &s.quiet)
	jsonFlag(c, &f.json, "print the description of the service as JSON")
	return c
}

func labKinds() (names []string) {
	for _, k := range lab.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// split separates the kind of system from the command after --, and checks both.
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
		return kind, nil, fmt.Errorf("name one service: %s (and a command of yours after --)", strings.Join(labKinds(), ", "))
	}
	if k, ok := lab.KindOf(args[0]); ok {
		return k, command, f.check(c, k)
	}
	return kind, nil, fmt.Errorf("there is no service %q: use one of %s", args[0], strings.Join(labKinds(), ", "))
}

// check returns an error if k does not have what the flags ask for.
func (f *labFlags) check(c *cobra.Command, k lab.Kind) error {
	changed := c.Flags().Changed
	if err := k.Check(f.Options, changed); err != nil {
		return err
	}
	if f.disk.Rate == 0 && (changed("disk-slow") || changed("disk-size") || changed("memory-limit")) {
		return errors.New("--disk-slow, --disk-size and --memory-limit need --disk-limit: add it, as in --disk-limit 40MB/s")
	}
	if f.disk.Slow > 0 && f.Servers < 2 {
		return errors.New("--disk-slow needs --servers 2 or more: the last one has the slow disk")
	}
	return f.disk.Check()
}

func diskRate(text string) (unit.Size, error) { return unit.ParseSize(strings.TrimSuffix(text, "/s")) }

func printOffers(w io.Writer, all []lab.Offer) error {
	t := say.NewTable(w)
	for _, o := range all {
		name := o.Name
		switch {
		case o.Servers > 0:
			name = "  --servers N"
		case o.Auth != "none":
			name = "  --auth " + o.Auth
		}
		t.Row(name, o.What, o.Readiness())
	}
	return t.Flush()
}

// up starts the system and keeps it until a signal comes, or until command has ended, if
// there is one.
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
	c := lab.Config{Dir: f.dir, TLS: f.tls, Disk: f.disk, Progress: func(part string) { s.say("weir: %s is up\n", part) }}
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
// by themselves, others are forwarded; a second one kills it.
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
