package measure

import (
	"time"

	"weir/storage"
)

// Phases of a step, as they stand in Interval.Phase.
const (
	Ramp   = "ramp"   // clients are being started or stopped
	Settle = "settle" // full load, not counted
	Hold   = "hold"   // full load, counted
	Drain  = "drain"  // no new operations; the last ones end
)

// An Interval is what the clients saw in one second of one phase of one step,
// of one kind of operation on one data server. Intervals end at whole seconds
// of the wall clock and where a phase ends, so they can be shorter. A second in
// which nothing moved is written too. Counters of intervals of the same second
// add; so do histograms.
type Interval struct {
	Start      time.Time               `json:"start"`
	Seconds    float64                 `json:"duration_seconds"`
	Step       int                     `json:"step"` // from 1
	Phase      string                  `json:"phase"`
	Clients    float64                 `json:"clients"` // virtual clients running, mean over the interval, over all kinds
	Kind       storage.Kind            `json:"kind"`
	Server     string                  `json:"server,omitempty"`          // data server host:port; "" is the target itself
	Moved      int64                   `json:"moved_bytes"`               // payload moved in this interval, also by operations that go on
	Dropped    int64                   `json:"discarded_bytes,omitempty"` // of the operations that ended here: payload counted but never copied to memory
	Wire       int64                   `json:"wire_bytes,omitempty"`      // of the operations that ended here: bytes on connections both ways
	Begun      int64                   `json:"begun"`                     // operations started
	Done       int64                   `json:"done"`                      // operations ended well
	Failed     map[storage.Class]int64 `json:"failed,omitempty"`
	Retried    int64                   `json:"retried,omitempty"`
	Verified   int64                   `json:"verified,omitempty"`             // operations whose payload was checked and right
	Unproven   int64                   `json:"unverifiable,omitempty"`         // to be checked, but nobody knows what is right
	ReadBack   int64                   `json:"read_back_bytes,omitempty"`      // payload that checks read back from the service, which is no load
	Summed     int64                   `json:"checksummed_bytes,omitempty"`    // size of the files of which checks asked the service for the checksum
	Tasks      int64                   `json:"tasks,omitempty"`                // tasks ended
	Sessions   int64                   `json:"sessions,omitempty"`             // connections made
	Missed     int64                   `json:"missed,omitempty"`               // open model: planned arrivals that never started
	Waits      int64                   `json:"waits,omitempty"`                // of the operations that ended here: times that the service told a client to wait and ask again
	Waited     float64                 `json:"waited_seconds,omitempty"`       // how long clients did so, summed
	Reopened   int64                   `json:"reopened,omitempty"`             // of the operations that ended here: files opened again because their data server was lost
	Think      float64                 `json:"think_seconds,omitempty"`        // planned pauses that began here, summed
	Paused     float64                 `json:"paused_seconds,omitempty"`       // time that clients spent in pauses after failed tasks; on one line of the interval for all kinds
	FailedTime float64                 `json:"failed_seconds,omitempty"`       // time that operations took that failed here, summed
	FirstDone  time.Time               `json:"first_done,omitzero"`            // end of the first operation that ended well here
	LastDone   time.Time               `json:"last_done,omitzero"`             // end of the last one
	Latency    Histogram               `json:"latency_seconds"`                // of operations ended well; from the planned start in the open model
	FirstByte  Histogram               `json:"first_byte_seconds"`             // of operations that got one
	Connect    Histogram               `json:"connect_seconds"`                // of sessions made, to the transport connection
	Login      Histogram               `json:"login_seconds"`                  // of sessions made, to their authentication
	Redirect   Histogram               `json:"redirect_seconds,omitzero"`      // of operations that were sent to another server, from their begin to the first time
	Late       Histogram               `json:"late_seconds"`                   // actual minus planned start of tasks: the generator's own fault
	CPU        float64                 `json:"client_cpu_seconds,omitempty"`   // used by external programs that ended here
	Memory     int64                   `json:"program_memory_bytes,omitempty"` // most resident memory of an external program that ended here

	Jobs
	Sites map[string]*Site `json:"sites,omitempty"` // by name, where clients are at the ends of several links; what is in them is in v, too
}

// An Event is something that happened once: a step that began, an error seen
// for the first time, a warning.
type Event struct {
	Time  time.Time     `json:"time"`
	Kind  string        `json:"event"` // run, step, phase, error, warning, threshold, search, link, site, worker, resume, end
	Step  int           `json:"step,omitempty"`
	Text  string        `json:"text"`
	Class storage.Class `json:"class,omitzero"`   // of errors
	On    string        `json:"server,omitempty"` // of errors: the data server that failed; "" is the target itself
	What  string        `json:"kind,omitempty"`   // of errors: kind of operation

	Clients int     `json:"clients,omitempty"`         // of steps: virtual clients; in the open model the most
	Rate    float64 `json:"rate_per_second,omitempty"` // of steps in the open model: arrivals
	Hold    float64 `json:"hold_seconds,omitempty"`    // of steps: as planned

	Outcome Outcome `json:"outcome,omitempty"` // of kind end; see Ending
	Reason  string  `json:"reason,omitempty"`  // of kind end: the signal, or the key of the plan, that ended the run

	Worker *Worker `json:"worker,omitempty"` // of kind worker
}

// A Sink takes what was measured. Its methods are called by one goroutine at
// a time; an error ends the run.
type Sink interface {
	Interval(*Interval) error
	Event(Event) error
}

// Errors returns how many operations failed, without those that the run ended.
func (v *Interval) Errors() int64 {
	sum := int64(0)
	for class, n := range v.Failed {
		if class.Failure() {
			sum += n
		}
	}
	return sum
}
