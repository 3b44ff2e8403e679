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

// WorkerOptions are the number of workers that a Server waits for, the limits of workers, and
// functions that it calls.
type WorkerOptions struct {
	Want           int             // number of workers that the first step waits for
	Wait           time.Duration   // longest wait for them; also without workers, for new workers
	Version        string          // of the program; other versions are reported; "": not checked
	FilesPerClient int             // most open files that a client needs; 0: no limit
	Manifest       engine.Manifest // records created paths in advance; nil: workers create nothing
	Samples        monitor.Sink    // samples of other machines with workers; nil: not monitored
	ResumeState    *ResumeState    // nil: a new run
	// Reach returns the port of this machine at which a worker at the site of that place reaches a
	// server, host:port, when it connects from an address. If it is nil, workers reach servers at
	// their own addresses.
	Reach func(ctx context.Context, site int, server string, from netip.Addr) (port uint16, err error)
	// JobPerClient makes each worker one client, a job that begins when it comes and works for the
	// step's measurement time. Want is not used then.
	JobPerClient bool
	// Call submits as many workers as the step has clients, with JobPerClient. It returns when they
	// are submitted. If it is nil, they connect by themselves.
	Call func(ctx context.Context, step scenario.Step) error
	// Coming returns the number of requested workers that may still come, according to the batch
	// system. If it is nil, all that have not come yet may still come.
	Coming func() int
	// Left returns the number of jobs of workers that are not over, according to the batch system.
	// It is nil if that is not known.
	Left func() int
	// Absent returns the reasons for missing workers, in a sentence each. It may be nil.
	Absent func() []string
	// Worker is called when the state of a worker changes, by one goroutine at a time. It may be nil.
	Worker func(WorkerState)

	patience time.Duration // time after which a silent worker is given up
	away     bool          // for tests: workers count as workers of another machine
	closed   bool          // no workers come later: processes of this machine
}

// patience is the time that a worker may be silent before it is given up.
const patience = 30 * time.Second

func (c WorkerOptions) complete() WorkerOptions {
	if c.patience <= 0 {
		c.patience = patience
	}
	c.Want = max(c.Want, 1)
	return c
}

// Values of WorkerState.State: the activity of a worker.
const (
	Waiting = "waiting" // waits for a step
	Working = "working" // holds a step
	Lost    = "lost"
	Ended   = "ended"
)

// A WorkerState is the controller's state of a worker.
type WorkerState struct {
	Name    string        // 1, 2, 3 ... in the order in which they connected
	Host    string        // its machine's own name
	Job     string        // its name in the batch system; "": not known
	State   string        // Waiting, Working, Lost or Ended
	Clients int           // number of its clients in the step
	Offset  time.Duration // of its machine's clock: positive if it is behind the controller's
	Doubt   time.Duration // uncertainty of Offset, to both sides
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

// A remote is the controller's state of a worker. Only the controller's goroutine uses its fields,
// except lastHeard.
type remote struct {
	connection
	name    string
	session string  // over a network
	number  int     // 1, 2, 3 ... in the order in which they connected
	site    int     // index of its link (of links with clients) or of its population; 0 without
	jobs    string  // name of the site whose jobs are distinguished; ""
	on      machine // over a network
	pid     int
	room    int // most clients that it can have; 0: no limit

	numbers   int  // number of clients' numbers that it has been given
	there     bool // it has come, and is neither lost nor done
	ready     bool // it waits for the next step
	in        bool // it holds a step, and has not requested the next
	held      bool // it was ever given a step
	absent    bool // it was connected before the restart, and has not registered again yet
	step      int  // number of the step that it was given last
	clients   int  // of the step that it was given last
	seconds   int  // number of seconds that it has reported
	late      bool // it reported a second after that was written
	about     WorkerState
	scratch   scratchReport // zero: no copies of files are known
	why       string        // reason for its loss
	gone      bool          // its clients have done their tasks and left the step
	latest    time.Time     // start of its last interval
	lastHeard atomic.Int64  // time of its last message, in nanoseconds of the controller's clock
}

// A connection carries orders to a worker.
type connection interface {
	say(o order) error // the loss of a worker is detected on receiving
	connected() bool   // as far as is known
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
	done         chan<- struct{} // gets a token when it has been handled; nil: no caller waits
}

// errSilent is the error for which a silent worker is given up.
var errSilent = errors.New("it has not been heard of")

// restore applies the reported state of a worker that was connected before the restart.
func (w *remote) restore(h *registration) {
	w.numbers = 0
	for _, s := range h.Has {
		w.numbers += s.Count
	}
	w.step, w.ready, w.gone, w.clients = h.Step, h.Ready, h.Gone, h.Clients
	w.held, w.in = h.Step > 0, h.Step > 0 && !h.Ready
}
