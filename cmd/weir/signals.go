package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"weir/internal/screen"
	"weir/run"
)

// An interruption is the signal that ended a command, as the cause of its context.
type interruption struct{ signal os.Signal }

func (i interruption) Error() string { return "interrupted by " + i.SignalName() }

// Is makes every interruption a run.ErrInterrupted.
func (i interruption) Is(err error) bool { return err == run.ErrInterrupted }

// SignalName returns the signal's name, as in kill -l.
func (i interruption) SignalName() string {
	return map[os.Signal]string{os.Interrupt: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"}[i.signal]
}

func (i interruption) code() exitCode {
	switch i.signal {
	case syscall.SIGTERM:
		return exitTerminated
	case syscall.SIGHUP:
		return exitHangup
	}
	return exitInterrupt
}

// afterSignal gives err the exit code of the signal that ended ctx; it returns err itself
// if none did. An error that only says that ctx ended has no text.
func afterSignal(ctx context.Context, err error) error {
	var by interruption
	if !errors.As(context.Cause(ctx), &by) {
		return err
	}
	if errors.Is(err, context.Canceled) && !errors.Is(err, run.ErrInterrupted) {
		err = nil
	}
	return exit{by.code(), err}
}

// untilSignal returns ctx until the first signal or, if whileStdin is set, the end of
// standard input.
func (s streams) untilSignal(ctx context.Context, whileStdin bool) (context.Context, context.CancelFunc) {
	caught := s.signals.listen()
	ctx, end := context.WithCancelCause(ctx)
	cancel := func() { end(nil) }
	if whileStdin {
		go func() {
			_, _ = io.Copy(io.Discard, s.in) // only its end matters
			cancel()
		}()
	}
	go func() {
		select {
		case by := <-caught:
			end(interruption{by})
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// interruptible turns the first three signals, or the end of the terminal, into the ways
// to end a run, and writes to say what the next one will do. release gives the signals back.
func (s streams) interruptible(ctx context.Context, say io.Writer) (in run.Interrupts, release func()) {
	var finish, stop, leave context.CancelCauseFunc
	in.Leave, leave = context.WithCancelCause(ctx)
	in.Stop, stop = context.WithCancelCause(in.Leave)
	in.Finish, finish = context.WithCancelCause(in.Stop)
	unshield, unhang := screen.Shield(), func() {}
	signals := s.signals.listen()
	if signals != nil {
		signals, unhang = withHangup(signals)
	}
	tell := func(text string) {
		screen.New(say).NewLine()
		_, _ = io.WriteString(say, "weir: "+text+"\n") // the run survives the loss of its terminal
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 1; ; n++ {
			var by interruption
			select {
			case by.signal = <-signals:
			case <-done:
				return
			}
			switch n {
			case 1:
				finish(by) // first, for the terminal may be halted
				tell("finishing: the last operations may end; interrupt again to stop at once")
			case 2:
				stop(run.ErrStopped)
				tell("stopping; interrupt again to leave the files of this run on the target")
			default:
				leave(run.ErrLeft)
			}
		}
	}()
	return in, func() {
		close(done)
		<-ended
		unhang()
		unshield()
		leave(nil)
	}
}

// withHangup adds the end of the terminal to signals, unless the process was started to
// outlive it (nohup).
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
