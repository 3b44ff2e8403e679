package main

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"weir/run"
)

// codeOf returns the exit code of a command that a signal ended.
func codeOf(sig os.Signal) exitCode {
	switch sig {
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
	var by run.Interruption
	if !errors.As(context.Cause(ctx), &by) {
		return err
	}
	if errors.Is(err, context.Canceled) && !errors.Is(err, run.ErrInterrupted) {
		err = nil
	}
	return exit{codeOf(by.Signal), err}
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
			end(run.Interruption{Signal: by})
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// interruptible returns the ways to end a run, which the first three signals are, until release is called.
func (s streams) interruptible(ctx context.Context, say io.Writer) (in run.Interrupts, release func()) {
	return run.Catch(ctx, s.signals.listen(), say)
}
