package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"weir/internal/screen"
	"weir/lab"
)

// up starts the system and keeps it until a signal comes, or until command
// has ended, if there is one.
func (f *labFlags) up(ctx context.Context, k lab.Kind, command []string, s streams, signals signalSource) error {
	ctx, cancel := context.WithCancelCause(ctx)
	caught, release := withHangup(signals.listen())
	defer release()
	defer cancel(nil)
	system, err := f.startUnless(ctx, cancel, caught, k, s)
	if err != nil {
		return err
	}
	switch {
	case len(command) > 0:
		if system.Note != "" {
			s.say("weir: %s\n", system.Note)
		}
		err = runInside(ctx, system, command, s, caught)
	case f.json:
		err = writeJSON(s.out, system.State())
	default:
		err = printSystem(s.out, system)
	}
	if len(command) == 0 && err == nil {
		s.say("weir: interrupt (Ctrl-C) to stop it\n")
		select {
		case <-caught:
		case <-ctx.Done():
		}
		s.say("weir: stopping\n")
	}
	return errors.Join(err, system.Stop())
}

// withHangup adds the end of our terminal to the signals that were caught,
// unless we were told to outlive it.
func withHangup(signals <-chan os.Signal) (all <-chan os.Signal, release func()) {
	both, hangup := make(chan os.Signal), make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangup, syscall.SIGHUP)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var sig os.Signal
			select {
			case sig = <-signals:
			case sig = <-hangup:
			case <-done:
				return
			}
			select {
			case both <- sig:
			case <-done:
				return
			}
		}
	}()
	return both, func() {
		signal.Stop(hangup)
		close(done)
		<-ended
	}
}

// startUnless starts the system unless a signal comes before it is up.
func (f *labFlags) startUnless(ctx context.Context, cancel context.CancelCauseFunc, caught <-chan os.Signal, k lab.Kind, to streams) (*lab.System, error) {
	started, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case by := <-caught:
			cancel(exit{interruption{by}.code(), errors.New("interrupted before it was up")})
		case <-started:
		}
	}()
	system, err := f.start(ctx, k, to)
	close(started)
	<-watched
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return nil, cause
	} else if cause != nil {
		return nil, errors.Join(cause, system.Stop())
	}
	return system, err
}

// start starts the system and shows the progress.
func (f *labFlags) start(ctx context.Context, k lab.Kind, to streams) (*lab.System, error) {
	if err := k.Installed(f.Options); err != nil {
		return nil, err
	}
	begin := time.Now()
	to.say("weir: starting %s\n", k.Name)
	defer to.working("starting " + k.Name).done()
	c := lab.Config{Dir: f.dir, TLS: f.tls, Progress: func(part string) { to.say("weir: %s is up\n", part) }}
	s, err := k.Start(ctx, c, f.Options)
	if err == nil {
		to.say("weir: ready after %.1f s\n", time.Since(begin).Seconds())
	}
	return s, err
}

// runInside runs a command against the system. Signals reach it: those from a
// terminal by themselves, others through us; a second one ends it.
func runInside(ctx context.Context, system *lab.System, argv []string, s streams, caught <-chan os.Signal) error {
	cmd := exec.CommandContext(ctx, programOf(system, argv[0]), argv[1:]...)
	cmd.Env = append(os.Environ(), system.Variables()...)
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
			case sig != os.Interrupt || !terminal(s.in):
				_ = cmd.Process.Signal(sig)
			}
		case err := <-done:
			return asExit(err)
		}
	}
}

// programOf finds a program in the PATH that the system's clients are to have.
func programOf(system *lab.System, name string) string {
	for _, v := range system.Env {
		path, ok := strings.CutPrefix(v, "PATH=")
		if !ok || strings.Contains(name, "/") {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil && dir != "" {
				return found
			}
		}
	}
	return name
}

func terminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// asExit makes a command's end our own: its exit code, or 128 and the signal
// that ended it, as shells do.
func asExit(err error) error {
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return err
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exit{code: 128 + exitCode(status.Signal())}
	}
	return exit{code: exitCode(ended.ExitCode())}
}

// printSystem prints what a user needs to use the system.
func printSystem(out io.Writer, s *lab.System) error {
	var b strings.Builder
	t := newTable(&b)
	for _, scheme := range slices.Sorted(maps.Keys(s.URLs)) {
		t.row(scheme, s.URLs[scheme])
	}
	if s.Data != "" {
		t.row("data", s.Data)
	}
	if s.Slots > 0 {
		t.row("slots", s.Slots)
	}
	if s.CAFile != "" {
		t.row("authority", s.CAFile)
	}
	if len(s.Servers) > 1 || s.Batch != "" {
		for _, server := range s.Servers {
			cells := []any{server.Name, server.Address, "pids " + strings.Trim(fmt.Sprint(s.Pids(server.Name)), "[]")}
			if server.Interface != "" {
				cells = append(cells, "by "+server.Interface)
			}
			t.row(cells...)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if s.Note != "" {
		b.WriteString("\n# " + s.Note + "\n")
	}
	if len(s.Env) > 0 {
		b.WriteString("\n# the environment of real clients\n")
		for _, v := range s.Env {
			b.WriteString("export " + v + "\n")
		}
	}
	if s.Name != "postgresql" { // which is not measured
		b.WriteString("\n# of a scenario\n" + s.Scenario())
	}
	_, err := io.WriteString(out, b.String())
	return err
}
