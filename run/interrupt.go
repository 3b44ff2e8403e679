package run

import (
	"context"
	"errors"

	"weir/measure"
)

// Causes of the contexts of Interrupts.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrStopped     = errors.New("stopped by a second interrupt")
	ErrLeft        = errors.New("interrupted while it was removing what the run made")
)

// Interrupts are the ways in which signals end a run. Each context includes the
// ones after it.
type Interrupts struct {
	Finish context.Context // ends first: no new operations begin, the last ones may end, and the result is reported
	Stop   context.Context // operations are aborted; what the run made is removed
	Leave  context.Context // what the run made stays
}

// Ending returns how a run ends that Finish has ended. The cause of Finish may
// have a method SignalName.
func (in Interrupts) Ending() measure.Ending {
	var by interface {
		error
		SignalName() string
	}
	if errors.As(context.Cause(in.Finish), &by) {
		return measure.InterruptedBy(by.SignalName())
	}
	return measure.InterruptedBy("")
}

// cleaning is the context in which a run removes what it has made. It ends with
// the next interrupt after those that ended the run itself.
func (in Interrupts) cleaning() context.Context {
	if in.Stop.Err() != nil {
		return in.Leave
	}
	return in.Stop
}
