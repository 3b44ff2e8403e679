package cluster

import (
	"context"
	"time"

	"weir/engine"
	"weir/monitor"
	"weir/scenario"
)

// A WorkerOptions says which workers a Server waits for, and who is told of them.
type WorkerOptions struct {
	Want           int             // workers that the first step waits for
	Wait           time.Duration   // for so long at most; also how long a run without workers waits for new ones
	Version        string          // of the program; workers of another one are told of; "": nobody asks
	FilesPerClient int             // open files that a client needs at most; 0: no bound
	Manifest       engine.Manifest // of what workers are about to make on the target; nil: they make nothing
	Samples        monitor.Sink    // of the machines that workers are on, but for this one; nil: they are not watched
	ResumeState    *ResumeState    // nil: the run is a new one
	// JobPerClient: each worker is one client, a job that begins when it comes
	// and works for the step's hold time. Want is not used then.
	JobPerClient bool
	// Call has as many workers come as the step has clients, with JobPerClient.
	// It returns when they were submitted; nil: they come by themselves.
	Call func(ctx context.Context, step scenario.Step) error
	// Coming says how many of those that were called for are still to come, as
	// far as the batch system tells. nil: all that have not come yet.
	Coming func() int
	// Left says how many jobs of workers are not over, as far as the batch system
	// tells. nil: it is not known.
	Left func() int
	// Absent says what is known of workers that are not there, in a sentence
	// each. nil: nothing.
	Absent func() []string
	// Worker is told when something about a worker changes, by one goroutine at
	// a time. nil: nobody is.
	Worker func(WorkerState)

	patience time.Duration // after which a silent worker is given up
	away     bool          // of tests: workers are taken to be on another machine than the controller
	closed   bool          // nobody comes later: processes of this machine
}

// patience is for how long a worker may be silent before it is given up.
const patience = 30 * time.Second

func (c WorkerOptions) complete() WorkerOptions {
	if c.patience <= 0 {
		c.patience = patience
	}
	c.Want = max(c.Want, 1)
	return c
}

// What a worker is doing, as WorkerState.State says.
const (
	Waiting = "waiting" // for a step
	Working = "working" // holds a step
	Lost    = "lost"
	Ended   = "ended"
)

// A WorkerState is what the controller knows of a worker.
type WorkerState struct {
	Name    string        // 1, 2, 3 ... in the order in which they came
	Host    string        // its machine, as that calls itself
	Job     string        // what the batch system calls it; "": not known
	State   string        // Waiting, Working, Lost or Ended
	Clients int           // that it has in the step
	Offset  time.Duration // how far its machine's clock is behind the controller's
	Doubt   time.Duration // about Offset, to both sides
	Why     string        // why it was lost
}

// show tells the crew of a worker.
func (k *controller) show(w *remote) {
	if k.crew.Worker == nil {
		return
	}
	s := w.about
	s.Name, s.State, s.Clients = w.name, Waiting, 0
	switch {
	case w.in:
		s.State, s.Clients = Working, w.clients
	case !w.there && w.why != "":
		s.State, s.Why = Lost, w.why
	case !w.there:
		s.State = Ended
	}
	k.crew.Worker(s)
}
