package cluster

import (
	"errors"
	"sync/atomic"
	"time"
)

// A remote is a worker as the controller sees it. But for heard its fields are
// the controller's own.
type remote struct {
	line
	name    string
	session string  // over a network
	number  int     // 1, 2, 3 ... by when they came
	site    int     // place of its link in the plan's, 0 without
	jobs    string  // name of the site whose jobs are told apart; ""
	on      machine // over a network
	pid     int
	room    int // most clients that it can have; 0: no bound

	numbers int  // how many clients' numbers it has been given
	there   bool // it has come, and was neither lost nor is it done
	ready   bool // it asks for the next step
	in      bool // it holds a step: it was given one and has not asked for the next
	held    bool // it has ever been given one
	absent  bool // it was there before we were killed, and has not come back yet
	step    int  // number of the one that it was given last
	clients int  // of the step that it was given last
	seconds int  // that it has told of
	late    bool // it has told of a second after that had been written
	about   WorkerState
	why     string       // it was lost
	gone    bool         // its clients have done their tasks and left the step
	latest  time.Time    // start of its last interval
	heard   atomic.Int64 // when it was heard last, as nanoseconds of the controller's clock
}

// A line is how orders reach a worker.
type line interface {
	say(o order) error // a lost worker is noticed where it is heard
	near() bool        // it can be told something now, as far as is known
	hangUp()           // the worker ends if it has not yet
	written(no int64)  // what its report no tells has been written
}

// heard is what one worker says: reports, that it comes, or that it is lost.
type heard struct {
	worker  *remote
	comes   bool
	hello   *hello // with comes
	reports []report
	err     error           // it is lost
	done    chan<- struct{} // gets a token when the controller has dealt with it; nil: nobody waits
}

// errSilent tells why a worker is given up.
var errSilent = errors.New("it has not been heard of")

// recall takes over what a worker says of itself that was there before we were
// killed.
func (w *remote) recall(h *hello) {
	w.numbers = 0
	for _, s := range h.Has {
		w.numbers += s.Count
	}
	w.step, w.ready, w.gone, w.clients = h.Step, h.Ready, h.Gone, h.Clients
	w.held, w.in = h.Step > 0, h.Step > 0 && !h.Ready
}
