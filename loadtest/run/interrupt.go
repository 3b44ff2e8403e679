package run

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"weir/internal/screen"
	"weir/loadtest/measure"
)

// Causes of the contexts of Interrupts.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrStopped     = errors.New("stopped by a second interrupt")
	ErrLeft        = errors.New("interrupted while it was removing what the run made")
)

// Interrupts are the ways in which signals end a run. Each context includes the contexts after it.
type Interrupts struct {
	// Ends first: no new operations begin, running operations may end, and the result is reported.
	Finish context.Context
	Stop   context.Context // operations are aborted; the files and folders of the run are removed
	Leave  context.Context // the files and folders of the run stay
}

// An Interruption is the signal that ended a command, as the cause of its context. It is an ErrInterrupted.
type Interruption struct{ Signal os.Signal }

func (i Interruption) Error() string { return "interrupted by " + i.SignalName() }

// Is makes every Interruption an ErrInterrupted.
func (i Interruption) Is(err error) bool { return err == ErrInterrupted }

// SignalName returns the signal's name, as in kill -l.
func (i Interruption) SignalName() string {
	return map[os.Signal]string{os.Interrupt: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"}[i.Signal]
}

// Ending returns the ending of a run that Finish has ended.
func (in Interrupts) Ending() measure.Ending {
	var by Interruption
	errors.As(context.Cause(in.Finish), &by)
	return measure.InterruptedBy(by.SignalName())
}

// cleaning is the context in which a run removes its files and folders. It ends with the next
// interrupt after the interrupts that ended the run itself.
func (in Interrupts) cleaning() context.Context {
	if in.Stop.Err() != nil {
		return in.Leave
	}
	return in.Stop
}

// Effects are sentences on the effects of the first two signals, for people.
type Effects struct{ First, Second string }

// LoadTestEffects returns the effects of signals on load tests.
func LoadTestEffects() Effects {
	return Effects{"finishing: the last operations may end; interrupt again to stop at once",
		"stopping; interrupt again to leave the files of this run on the target"}
}

// Catch turns the first three signals, or the end of the terminal, into the ways to end a run, and
// writes the effect of a signal to say. signals is nil if no signals are caught. release returns
// them to their defaults.
func Catch(ctx context.Context, signals <-chan os.Signal, say io.Writer, effects Effects) (in Interrupts, release func()) {
	var finish, stop, leave context.CancelCauseFunc
	in.Leave, leave = context.WithCancelCause(ctx)
	in.Stop, stop = context.WithCancelCause(in.Leave)
	in.Finish, finish = context.WithCancelCause(in.Stop)
	unshield, unhang := screen.Shield(), func() {}
	if signals != nil {
		signals, unhang = WithHangup(signals)
	}
	tell := func(text string) {
		screen.New(say).NewLine()
		_, _ = io.WriteString(say, "weir: "+text+"\n") // the run survives the loss of its terminal
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 1; ; n++ {
			var by Interruption
			select {
			case by.Signal = <-signals:
			case <-done:
				return
			}
			switch n {
			case 1:
				finish(by) // first, for the terminal may be halted
				tell(effects.First)
			case 2:
				stop(ErrStopped)
				tell(effects.Second)
			default:
				leave(ErrLeft)
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

// WithHangup adds the end of the terminal to signals, unless the process was started to
// outlive it (nohup).
func WithHangup(signals <-chan os.Signal) (all <-chan os.Signal, release func()) {
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
