package measure

import (
	"maps"
	"time"

	"weir/storage"
)

// A Sum counts operations: the measurements of an Interval without its time, kind and server, and
// their sums over time, kinds and servers. The zero value is empty.
//
// A further counter is a field here and an entry of Fields, in the order of
// the keys in JSON; adding, reading and checking it follow from that.
type Sum struct {
	Moved int64 `json:"moved_bytes"` // payload moved in this interval, also by operations that continue
	// of the operations that ended: payload counted but never copied to memory
	Discarded int64 `json:"discarded_bytes,omitempty"`
	Wire      int64 `json:"wire_bytes,omitempty"` // of the operations that ended: bytes on connections both ways
	Begun     int64 `json:"begun"`                // operations started
	Done      int64 `json:"done"`                 // operations that succeeded
	// sum over clients of the square of the number of operations that each completed in the phase:
	// its growth in this interval
	DoneSquares float64                 `json:"done_squares,omitempty"`
	Failed      map[storage.Class]int64 `json:"failed,omitempty"`
	Retried     int64                   `json:"retried,omitempty"`
	Verified    int64                   `json:"verified,omitempty"` // operations whose payload was checked and correct
	// operations to be checked for which no reference checksum is available
	Unverifiable int64 `json:"unverifiable,omitempty"`
	// operations of Done whose payload a check found wrong after they had ended; Failed has those found wrong at once
	Wrong int64 `json:"wrong,omitempty"`
	// reads of files of unknown size whose response had a content encoding that was not requested
	Encoded    int64   `json:"encoded,omitempty"`
	ReadBack   int64   `json:"read_back_bytes,omitempty"`   // payload that checks read back from the service, which is no load
	Summed     int64   `json:"checksummed_bytes,omitempty"` // size of the files whose checksum checks requested from the service
	Tasks      int64   `json:"tasks,omitempty"`             // tasks ended
	Sessions   int64   `json:"sessions,omitempty"`          // connections made
	Handshakes int64   `json:"tls_handshakes,omitempty"`    // of the operations that ended: TLS handshakes
	Resumed    int64   `json:"tls_resumed,omitempty"`       // TLS handshakes that resumed a session
	Missed     int64   `json:"missed,omitempty"`            // open model: planned arrivals that never started
	Waits      int64   `json:"waits,omitempty"`             // of the operations that ended: requests of the service to wait and retry
	Waited     float64 `json:"waited_seconds,omitempty"`    // time that clients waited for that reason
	// of the operations that ended: files opened again because their data server was lost
	Reopened int64 `json:"reopened,omitempty"`
	// of the operations that ended: requests that were signed because the service demands it
	Signed int64 `json:"signed,omitempty"`
	// of the operations that ended: credentials that were read again because they were renewed, by each client process
	Renewed int64   `json:"renewed,omitempty"`
	Think   float64 `json:"think_seconds,omitempty"` // planned pauses that began
	// on one line of the interval for all kinds: time that clients spent in operations, also in
	// operations that continue, and in pauses after failed tasks
	OperationTime float64 `json:"operation_seconds,omitempty"`
	Paused        float64 `json:"paused_seconds,omitempty"`
	// the same: time that clients paused because the service requested it (Retry-After)
	RetryAfter float64   `json:"retry_after_seconds,omitempty"`
	FailedTime float64   `json:"failed_seconds,omitempty"`       // duration of the operations that failed
	Closing    float64   `json:"closing_seconds,omitempty"`      // time for closing sessions after tasks
	FirstDone  time.Time `json:"first_done,omitzero"`            // end of the first operation that succeeded
	LastDone   time.Time `json:"last_done,omitzero"`             // end of the last of them
	Latency    Histogram `json:"latency_seconds"`                // of operations that succeeded; from the planned start in the open model
	FirstByte  Histogram `json:"first_byte_seconds"`             // of operations that got a byte
	Connect    Histogram `json:"connect_seconds"`                // of sessions made, until the transport connection
	Handshake  Histogram `json:"tls_handshake_seconds,omitzero"` // of operations with TLS handshakes: duration of the first
	Login      Histogram `json:"login_seconds"`                  // of sessions made, until their authentication
	Redirect   Histogram `json:"redirect_seconds,omitzero"`      // of redirected operations, from their start to the first redirect
	Late       Histogram `json:"late_seconds"`                   // actual minus planned start of tasks: the delay of the load generator itself
	CPU        float64   `json:"client_cpu_seconds,omitempty"`   // used by external programs that ended
	Memory     int64     `json:"program_memory_bytes,omitempty"` // largest resident memory of an external program that ended

	Jobs
}

// A Field is one quantity of a Sum: its key in JSON and a pointer to its value,
// an *int64, *float64, *time.Time, *Histogram or *map[storage.Class]int64.
type Field struct {
	Key   string
	Value any
}

// Fields returns all quantities of s in the order in which they are written.
// Values whose JSON is "omitempty" may be missing there.
func (s *Sum) Fields() [41 + jobFields]Field {
	all := [41 + jobFields]Field{
		{"moved_bytes", &s.Moved}, {"discarded_bytes", &s.Discarded}, {"wire_bytes", &s.Wire}, {"begun", &s.Begun}, {"done", &s.Done},
		{"done_squares", &s.DoneSquares}, {"failed", &s.Failed}, {"retried", &s.Retried}, {"verified", &s.Verified},
		{"unverifiable", &s.Unverifiable}, {"wrong", &s.Wrong}, {"encoded", &s.Encoded}, {"read_back_bytes", &s.ReadBack},
		{"checksummed_bytes", &s.Summed}, {"tasks", &s.Tasks}, {"sessions", &s.Sessions}, {"tls_handshakes", &s.Handshakes},
		{"tls_resumed", &s.Resumed}, {"missed", &s.Missed}, {"waits", &s.Waits}, {"waited_seconds", &s.Waited}, {"reopened", &s.Reopened},
		{"signed", &s.Signed}, {"renewed", &s.Renewed},
		{"think_seconds", &s.Think}, {"operation_seconds", &s.OperationTime},
		{"paused_seconds", &s.Paused}, {"retry_after_seconds", &s.RetryAfter}, {"failed_seconds", &s.FailedTime}, {"closing_seconds", &s.Closing},
		{"first_done", &s.FirstDone}, {"last_done", &s.LastDone}, {"latency_seconds", &s.Latency}, {"first_byte_seconds", &s.FirstByte},
		{"connect_seconds", &s.Connect}, {"tls_handshake_seconds", &s.Handshake}, {"login_seconds", &s.Login},
		{"redirect_seconds", &s.Redirect}, {"late_seconds", &s.Late},
		{"client_cpu_seconds", &s.CPU}, {"program_memory_bytes", &s.Memory},
	}
	jobs := s.Jobs.Fields()
	copy(all[41:], jobs[:])
	return all
}

// Add adds o to s. The sum belongs to other clients in the same time, or to the same clients at
// another time; in the latter case Running has no meaning but that it is positive.
func (s *Sum) Add(o *Sum) {
	s.AddCounts(o)
	s.AddHistograms(o)
}

// AddHistograms adds the histograms, which AddCounts leaves out.
func (s *Sum) AddHistograms(o *Sum) {
	into, from := s.Fields(), o.Fields()
	for i := range into {
		if h, ok := into[i].Value.(*Histogram); ok {
			h.Merge(from[i].Value.(*Histogram))
		}
	}
}

// AddCounts adds o to s without the histograms.
func (s *Sum) AddCounts(o *Sum) {
	memory, first := max(s.Memory, o.Memory), s.FirstDone
	if first.IsZero() || !o.FirstDone.IsZero() && o.FirstDone.Before(first) {
		first = o.FirstDone
	}
	into, from := s.Fields(), o.Fields()
	for i := range into {
		add(into[i].Value, from[i].Value)
	}
	s.Memory, s.FirstDone = memory, first
	if o.LastDone.After(s.LastDone) {
		s.LastDone = o.LastDone
	}
}

// add adds a count, an amount or counts by class.
func add(to, from any) {
	switch to := to.(type) {
	case *int64:
		*to += *from.(*int64)
	case *float64:
		*to += *from.(*float64)
	case *map[storage.Class]int64:
		for class, n := range *from.(*map[storage.Class]int64) {
			if *to == nil {
				*to = map[storage.Class]int64{}
			}
			(*to)[class] += n
		}
	}
}

// Reset empties s and keeps the memory of its histograms.
func (s *Sum) Reset() {
	for _, f := range s.Fields() {
		switch v := f.Value.(type) {
		case *int64:
			*v = 0
		case *float64:
			*v = 0
		case *time.Time:
			*v = time.Time{}
		case *map[storage.Class]int64:
			*v = nil
		case *Histogram:
			v.Reset()
		}
	}
}

// Errors returns the number of operations that failed, without operations that the run ended. With
// Done they are the operations that ended.
func (s *Sum) Errors() int64 {
	sum := int64(0)
	for class, n := range s.Failed {
		if class.Failure() {
			sum += n
		}
	}
	return sum
}

// Bad returns the number of operations that failed or had a wrong payload, without operations that
// the run ended.
func (s *Sum) Bad() int64 { return s.Errors() + s.Wrong }

// BadOf returns the number of these operations of a class. Wrong payloads are of class Checksummed.
func (s *Sum) BadOf(class storage.Class) int64 {
	if class == storage.Checksummed {
		return s.Failed[class] + s.Wrong
	}
	return s.Failed[class]
}

// Failures returns the operations that failed by class, without operations that the run ended; nil
// if no operation failed.
func (s *Sum) Failures() map[storage.Class]int64 {
	failed := maps.Clone(s.Failed)
	maps.DeleteFunc(failed, func(class storage.Class, _ int64) bool { return !class.Failure() })
	if len(failed) == 0 {
		return nil
	}
	return failed
}

// A Window sums the intervals of a stretch of time. It counts the length of
// intervals of the same moment, of other kinds and servers, once. Of the
// histograms it has only Latency. The zero value is empty.
type Window struct {
	Sum
	At         time.Time // start of the newest interval
	Step       int       // of the newest interval
	Seconds    float64
	Clients    float64 // of the newest interval
	JobSeconds float64 // jobs running, times seconds
}

// Add adds the next interval.
func (w *Window) Add(v *Interval) {
	if !v.Start.Equal(w.At) || w.Seconds == 0 {
		w.Seconds += v.Seconds
		w.Clients = v.Clients
		w.JobSeconds += v.Running * v.Seconds
	}
	w.At, w.Step = v.Start, v.Step
	w.AddCounts(&v.Sum)
	w.Latency.Merge(&v.Latency)
}

// Throughput returns bytes of payload per second.
func (w *Window) Throughput() float64 { return float64(w.Moved) / max(w.Seconds, 1e-9) }

// Rate returns operations that succeeded per second.
func (w *Window) Rate() float64 { return float64(w.Done) / max(w.Seconds, 1e-9) }

// Working returns the seconds for which jobs and programs computed.
func (s *Sum) Working() float64 { return s.Compute + s.CPU }

// Efficiency returns the time for which jobs computed over the time for which they ran, below 0 if
// no job ran.
func (w *Window) Efficiency() float64 {
	if w.JobSeconds <= 0 {
		return -1
	}
	return w.Working() / w.JobSeconds
}
