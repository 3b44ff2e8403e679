package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"weir/internal/screen"
	"weir/measure"
)

// What ends a run that is interrupted.
var (
	errFinishing = errors.New("interrupted")
	errStopped   = errors.New("stopped by a second interrupt")
	errLeft      = errors.New("interrupted while it was removing what the run made")
)

// Interrupts are the ways in which signals end a run. Each context includes
// the ones after it.
type interrupts struct {
	finish context.Context // ends first: no new operations, the last ones may end, all is reported
	stop   context.Context // operations are broken off; what the run made is removed
	leave  context.Context // what the run made stays
}

// interruptible turns the first three signals, or the end of our terminal, into
// the ways to end a run, and says what the next one will do. Nothing else that
// happens to the terminal ends it. release gives the signals back.
func interruptible(ctx context.Context, signals <-chan os.Signal, say io.Writer) (in interrupts, release func()) {
	var finish, stop, leave context.CancelCauseFunc
	in.leave, leave = context.WithCancelCause(ctx)
	in.stop, stop = context.WithCancelCause(in.leave)
	in.finish, finish = context.WithCancelCause(in.stop)
	unshield, unhang := screen.Shield(), func() {}
	if signals != nil {
		signals, unhang = withHangup(signals)
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
				finish(by) // before it is told: a terminal may be halted
				screen.New(say).Fresh()
				_, _ = fmt.Fprintln(say, "weir: finishing: the last operations may end; interrupt again to stop at once")
			case 2:
				stop(errStopped)
				screen.New(say).Fresh()
				_, _ = fmt.Fprintln(say, "weir: stopping; interrupt again to leave what this run has made where it is")
			default:
				leave(errLeft)
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

// ending is how a run ends that finish has ended.
func (in interrupts) ending() measure.Ending {
	var by interruption
	if errors.As(context.Cause(in.finish), &by) {
		return measure.InterruptedBy(by.name())
	}
	return measure.InterruptedBy("")
}

// cleaning is the context in which a run removes what it has made: it ends
// with an interrupt that comes after those that ended the run itself.
func (in interrupts) cleaning() context.Context {
	if in.stop.Err() != nil {
		return in.leave
	}
	return in.stop
}
