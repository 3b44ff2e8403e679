package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"weir/internal/screen"
	"weir/run"
)

// interruptible turns the first three signals, or the end of our terminal, into
// the ways to end a run, and says what the next one will do. Nothing else that
// happens to the terminal ends it. release gives the signals back.
func interruptible(ctx context.Context, signals <-chan os.Signal, say io.Writer) (in run.Interrupts, release func()) {
	var finish, stop, leave context.CancelCauseFunc
	in.Leave, leave = context.WithCancelCause(ctx)
	in.Stop, stop = context.WithCancelCause(in.Leave)
	in.Finish, finish = context.WithCancelCause(in.Stop)
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
				stop(run.ErrStopped)
				screen.New(say).Fresh()
				_, _ = fmt.Fprintln(say, "weir: stopping; interrupt again to leave what this run has made where it is")
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
