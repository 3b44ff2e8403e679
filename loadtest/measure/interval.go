package measure

import (
	"time"

	"weir/storage"
)

// Phases of a step, as they stand in Interval.Phase.
const (
	Ramp         = "ramp"          // clients are being started or stopped
	Warmup       = "warmup"        // full load, not counted
	Measured     = "measure"       // full load, counted
	GracefulStop = "graceful_stop" // no new operations; running operations end
)

// An Interval has the measurements of one second of one phase of one step, of one kind of operation
// on one data server, by one population of clients. Intervals end at whole seconds of the wall
// clock and at the end of a phase, so they can be shorter. A second in which nothing moved is
// written too.
type Interval struct {
	Start      time.Time    `json:"start"`
	Seconds    float64      `json:"duration_seconds"`
	Step       int          `json:"step"` // from 1
	Phase      string       `json:"phase"`
	Clients    float64      `json:"clients"` // virtual clients running, mean over the interval, over all kinds
	Kind       storage.Kind `json:"kind"`
	Server     string       `json:"server,omitempty"`     // data server host:port; "" is the target itself
	Population string       `json:"population,omitempty"` // of clients; "" if all have the same workload

	Sum
	Sites map[string]*Site `json:"sites,omitempty"` // by name, where clients are at the ends of several links; Sum includes them
}

// Add adds o, an interval of the same second, step, phase, kind and server of other clients, to v.
// The longer of the two spans is kept.
func (v *Interval) Add(o *Interval) {
	v.Seconds = max(v.Seconds, o.Seconds)
	v.Clients += o.Clients
	v.Sum.Add(&o.Sum)
	for name, s := range o.Sites {
		v.addSite(name, s)
	}
}

// An EventKind is the subject of an Event. Runs of later versions may have other kinds.
type EventKind string

// Kinds of events.
const (
	EventRun       EventKind = "run"       // of the run as a whole
	EventStep      EventKind = "step"      // a step began
	EventPhase     EventKind = "phase"     // of older versions: a phase of a step began
	EventError     EventKind = "error"     // an operation failed, the first of its class and server
	EventWarning   EventKind = "warning"   // something is wrong, and the run continues
	EventThreshold EventKind = "threshold" // a threshold was not met, and ends the run
	EventSearch    EventKind = "search"    // why the search takes its next step
	EventLink      EventKind = "link"      // an emulated link
	EventCommand   EventKind = "command"   // a command of the scenario began or ended
	EventSite      EventKind = "site"      // of transfers: a site was switched off or on
	EventWorker    EventKind = "worker"    // a worker came, was lost, or left
	EventService   EventKind = "service"   // of data challenges: requests to a service failed, took long or were refused for a while
	EventResume    EventKind = "resume"    // an interrupted run is continued
	EventEnd       EventKind = "end"       // the run ended; see Ending
)

// EventKinds returns all kinds of events, as they are written.
func EventKinds() []string {
	return []string{string(EventRun), string(EventStep), string(EventPhase), string(EventError), string(EventWarning), string(EventThreshold),
		string(EventSearch), string(EventLink),
		string(EventCommand), string(EventSite), string(EventWorker), string(EventService), string(EventResume),
		string(EventEnd)}
}

// An Event is something that happened once: a step that began, the first error of its kind, a
// warning.
type Event struct {
	Time  time.Time     `json:"time"`
	Kind  EventKind     `json:"event"`
	Step  int           `json:"step,omitempty"`
	Text  string        `json:"text"`
	Class storage.Class `json:"class,omitzero"`   // of errors
	On    string        `json:"server,omitempty"` // of errors: the data server that failed; "" is the target itself
	What  string        `json:"kind,omitempty"`   // of errors: kind of operation
	// of errors: OpenFiles or Ports, if the machine of the clients had no more of them
	Exhausted string `json:"exhausted,omitempty"`

	Clients   int     `json:"clients,omitempty"`          // of steps: virtual clients; in the open model the most
	Rate      float64 `json:"rate_per_second,omitempty"`  // of steps in the open model: arrivals
	Duration  float64 `json:"duration_seconds,omitempty"` // of steps: as planned
	Processes int     `json:"processes,omitempty"`        // of steps whose clients are in several processes of one machine: how many

	Outcome Outcome `json:"outcome,omitempty"` // of kind end; see Ending
	// of kind end: the signal, or the key of the plan, that ended the run; of kind threshold: the threshold;
	// of kind search: the code of its fact
	Reason string `json:"reason,omitempty"`

	Worker  *Worker      `json:"worker,omitempty"`          // of kind worker
	Missing int          `json:"missing_workers,omitempty"` // of warnings: workers of the step that did not begin
	Stopped *StoppedStep `json:"stopped,omitempty"`         // of kind threshold

	Command *Command `json:"command,omitempty"` // of kind command
	Service *Service `json:"service,omitempty"` // of kind service
}

// A Service has the answers of a service to weir's requests in the time before an event.
type Service struct {
	Name     string  `json:"name"`             // TransferService or Issuer
	Seconds  float64 `json:"duration_seconds"` // up to the time of the event
	Requests int     `json:"requests"`         // that ended
	Failed   int     `json:"failed"`           // of these without a usable response
	Latency  float64 `json:"latency_seconds"`  // of a request, mean
	Busy     bool    `json:"busy"`             // the service requested a pause
	Reason   string  `json:"reason,omitempty"` // of the last failure, one line
}

// Values of Service.Name.
const (
	TransferService = "transfer service"
	Issuer          = "issuer of credentials"
)

// A Command is the state of a command of the scenario.
type Command struct {
	Run   string  `json:"run"`
	After float64 `json:"after_seconds"` // of the beginning of the load, as planned
	State string  `json:"state"`         // CommandBegan, ...
	Exit  int     `json:"exit_code"`     // of CommandEnded; -1: ended by a signal
}

// States of a command.
const (
	CommandBegan  = "began"
	CommandEnded  = "ended"
	CommandKilled = "killed"  // it still ran at the end of the load
	CommandNotRun = "not run" // the load ended before its time, or its shell could not be started
)

// Values of Event.Exhausted.
const (
	OpenFiles = "open files"
	Ports     = "ports"
)

// A StoppedStep is the step that did not meet a threshold.
type StoppedStep struct {
	Step    int     `json:"step"`
	Seconds float64 `json:"measured_seconds"`          // before it was stopped
	Clients int     `json:"clients"`                   // as planned
	Rate    float64 `json:"rate_per_second,omitempty"` // as planned, in the open model
	Value   float64 `json:"value"`                     // of the quantity of the threshold, in base units
}

// A Sink receives the measurements. Its methods are called by one goroutine at a time; an error
// ends the run.
type Sink interface {
	Interval(*Interval) error
	Event(Event) error
}
