package cluster

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"weir/loadtest/engine"
	"weir/loadtest/scenario"
	"weir/monitor"
)

// A WorkerOptions says which workers a Server waits for, and which functions it notifies.
type WorkerOptions struct {
	Want           int             // workers that the first step waits for
	Wait           time.Duration   // for so long at most; also how long a run without workers waits for new ones
	Version        string          // of the program; other versions are reported; "": not checked
	FilesPerClient int             // open files that a client needs at most; 0: no bound
	Manifest       engine.Manifest // of what workers are about to make on the target; nil: they make nothing
	Samples        monitor.Sink    // of the machines that workers are on, but for this one; nil: they are not watched
	ResumeState    *ResumeState    // nil: the run is a new one
	// Reach returns the port of this machine at which a worker at the site of that place reaches a server, host:port, when it
	// connects from an address. nil: workers reach servers at their own addresses.
	Reach func(ctx context.Context, site int, server string, from netip.Addr) (port uint16, err error)
	// JobPerClient: each worker is one client, a job that begins when it comes and works for the step's measurement time.
	// Want is not used then.
	JobPerClient bool
	// Call submits as many workers as the step has clients, with JobPerClient. It returns when they were submitted;
	// nil: they connect by themselves.
	Call func(ctx context.Context, step scenario.Step) error
	// Coming says how many of those that were called for are still to come, as far as the batch system knows. nil:
	// all that have not come yet.
	Coming func() int
	// Left says how many jobs of workers are not over, as far as the batch system knows. nil: it is not known.
	Left func() int
	// Absent says what is known of workers that are not there, in a sentence each. nil: nothing.
	Absent func() []string
	// Worker is called when the state of a worker changes, by one goroutine at a time. It may be nil.
	Worker func(WorkerState)

	patience time.Duration // after which a silent worker is given up
	away     bool          // of tests: workers are taken to be on another machine than the controller
	closed   bool          // no later workers: processes of this machine
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
	Name    string        // 1, 2, 3 ... in the order in which they connected
	Host    string        // its machine, as that calls itself
	Job     string        // what the batch system calls it; "": not known
	State   string        // Waiting, Working, Lost or Ended
	Clients int           // that it has in the step
	Offset  time.Duration // how far its machine's clock is behind the controller's
	Doubt   time.Duration // about Offset, to both sides
}

// show passes the state of a worker on.
func (k *controller) show(w *remote) {
	if k.options.Worker == nil {
		return
	}
	s := w.about
	s.Name, s.State, s.Clients = w.name, Waiting, 0
	switch {
	case w.in:
		s.State, s.Clients = Working, w.clients
	case !w.there && w.why != "":
		s.State = Lost
	case !w.there:
		s.State = Ended
	}
	k.options.Worker(s)
}

// A remote is a worker as the controller sees it. But for lastHeard its fields are the controller's own.
type remote struct {
	connection
	name    string
	session string  // over a network
	number  int     // 1, 2, 3 ... in the order in which they connected
	site    int     // place of its link among those of the plan with clients, or of its population; 0 without
	jobs    string  // name of the site whose jobs are distinguished; ""
	on      machine // over a network
	pid     int
	room    int // most clients that it can have; 0: no bound

	numbers   int  // how many clients' numbers it has been given
	there     bool // it has come, and was neither lost nor is it done
	ready     bool // it asks for the next step
	in        bool // it holds a step: it was given one and has not asked for the next
	held      bool // it has ever been given one
	absent    bool // it was connected before the restart, and has not registered again yet
	step      int  // number of the one that it was given last
	clients   int  // of the step that it was given last
	seconds   int  // that it has reported
	late      bool // it reported a second after that had been written
	about     WorkerState
	scratch   scratchReport // zero: its jobs copy no files, as far as is known
	why       string        // it was lost
	gone      bool          // its clients have done their tasks and left the step
	latest    time.Time     // start of its last interval
	lastHeard atomic.Int64  // when it was heard last, as nanoseconds of the controller's clock
}

// A connection carries orders to a worker.
type connection interface {
	say(o order) error // a lost worker is noticed where it is heard
	connected() bool   // it is connected, as far as is known
	disconnect()       // the worker ends if it has not yet
	written(no int64)  // the content of its report no has been written
}

// workerInput is input of one worker: reports, its registration, or its loss.
type workerInput struct {
	worker       *remote
	registers    bool
	registration *registration // with registers
	reports      []report
	err          error           // it is lost
	done         chan<- struct{} // gets a token when the controller has dealt with it; nil: no caller waits
}

// errSilent is why a worker is given up.
var errSilent = errors.New("it has not been heard of")

// restore takes over the state that a worker reports which was connected before the restart.
func (w *remote) restore(h *registration) {
	w.numbers = 0
	for _, s := range h.Has {
		w.numbers += s.Count
	}
	w.step, w.ready, w.gone, w.clients = h.Step, h.Ready, h.Gone, h.Clients
	w.held, w.in = h.Step > 0, h.Step > 0 && !h.Ready
}
