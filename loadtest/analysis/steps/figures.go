package steps

import (
	"cmp"
	"slices"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/measure"
	"weir/storage"
)

// Values of Findings.Measure.
const (
	Throughput = "throughput" // payload was moved: steps are compared by bytes per second
	Rate       = "rate"       // no payload: steps are compared by operations per second
)

// Figures are one point of the curve: the results of the measurement time of one step. Pointers are nil where the run does not
// tell.
type Figures struct {
	Step    int `json:"step"`
	Clients int `json:"clients"`                   // as planned; those that were active where each is a job of a batch system
	Planned int `json:"planned_clients,omitempty"` // where each client is a job of a batch system
	// of a run on many machines: that never came, or were lost before its hold was over
	WorkersMissing int     `json:"workers_missing,omitempty"`
	ClientsMissing float64 `json:"clients_missing,omitempty"` // mean over the hold, where workers were missing: planned and not active
	Rate           float64 `json:"rate_per_second,omitempty"` // open model: planned arrivals
	Duration       float64 `json:"measured_seconds"`          // measured
	ActiveClients  float64 `json:"active_clients"`            // mean

	Throughput     float64  `json:"throughput_bytes_per_second"`
	ThroughputLow  *float64 `json:"throughput_low"`  // 95% interval of the mean, bytes per second
	ThroughputHigh *float64 `json:"throughput_high"` // nil: too few seconds
	Operations     float64  `json:"operations_per_second"`
	OperationsLow  *float64 `json:"operations_low"` // 95% interval of the mean, per second
	OperationsHigh *float64 `json:"operations_high"`
	Peak           *Peak    `json:"peak"`    // nil: nothing ended
	Batches        int      `json:"batches"` // independent means that the intervals stand on

	Moved       int64                   `json:"moved_bytes"`
	Discarded   int64                   `json:"discarded_bytes"` // never copied to memory
	Done        int64                   `json:"done"`
	Errors      int64                   `json:"errors"`
	Wrong       int64                   `json:"wrong,omitempty"` // operations of Done whose payload a check found wrong after they had ended
	ErrorRatio  float64                 `json:"error_ratio"`     // errors and wrong payloads of all operations that ended
	ErrorsBy    map[storage.Class]int64 `json:"errors_by_class,omitempty"`
	Paused      float64                 `json:"paused_seconds"`                // that clients paused after failed tasks, summed
	RetryAfter  float64                 `json:"retry_after_seconds,omitempty"` // that clients paused because the service asked them to, summed
	AskedShare  float64                 `json:"retry_after_share,omitempty"`   // of the clients' time
	PausedShare float64                 `json:"paused_share"`                  // of the clients' time
	Unavailable float64                 `json:"unavailable_seconds"`           // of the measurement time, in outages
	Excluded    string                  `json:"excluded,omitempty"`            // why the step does not count for the curve; "" if it does
	Canceled    int64                   `json:"canceled"`                      // by the end of the run; no errors
	Retried     int64                   `json:"retried"`
	Verified    int64                   `json:"verified"`
	Unverified  int64                   `json:"unverifiable"`
	// reads of files of unknown size with a content encoding that was not requested
	Encoded     int64   `json:"encoded,omitempty"`
	Missed      int64   `json:"missed"` // open model: arrivals that never started
	SessionRate float64 `json:"sessions_per_second"`
	Handshakes  int64   `json:"tls_handshakes,omitempty"`
	Resumed     int64   `json:"tls_resumed,omitempty"` // TLS handshakes that resumed an earlier TLS session
	Tasks       int64   `json:"tasks"`                 // that ended
	// wall clock time of a task without the pause after it, mean by Little's law; nil: open model, or none ended
	TaskSeconds *float64 `json:"task_seconds"`

	Waits    int64   `json:"waits,omitempty"`          // times that the service told a client to wait and ask again
	Waited   float64 `json:"waited_seconds,omitempty"` // how long clients did so, summed
	Reopened int64   `json:"reopened,omitempty"`       // files opened again because their data server was lost
	Signed   int64   `json:"signed,omitempty"`         // requests that were signed because the service demands it

	Latency   *Quantiles `json:"latency_seconds"`
	FirstByte *Quantiles `json:"first_byte_seconds"`
	Redirect  *Quantiles `json:"redirect_seconds,omitempty"`      // nil: no redirects
	Connect   *Quantiles `json:"connect_seconds"`                 // of new sessions
	Handshake *Quantiles `json:"tls_handshake_seconds,omitempty"` // nil: no TLS handshakes
	Login     *Quantiles `json:"login_seconds"`
	LateP99   *float64   `json:"late_p99_seconds"` // the generator's own delay

	PerClient     float64  `json:"per_client_bytes_per_second"`
	PerClientRate float64  `json:"per_client_operations_per_second"`
	Fairness      *float64 `json:"fairness"`          // Jain's index of the operations that each client completed; nil: it says nothing
	Steady        *bool    `json:"steady"`            // nil: too few seconds, or too wide an interval, to tell
	Drift         *float64 `json:"drift_ratio"`       // change from the start of the hold to its end, of the mean
	Little        *float64 `json:"littles_law_ratio"` // X*(R+Z)/N, 1 when nothing was lost

	ServerCPU   *float64 `json:"server_cpu_share"` // of all cores of the server's hosts, 0 to 1
	ServerCores *float64 `json:"server_cpu_cores"` // cores that the service kept busy
	// CPU time of the service for each operation that succeeded; nil: unknown, or none did
	ServerEach    *float64           `json:"server_cpu_seconds_per_operation"`
	ClientCPU     *float64           `json:"client_cpu_share"`   // of all cores of the clients' hosts
	ClientCores   *float64           `json:"client_cpu_cores"`   // cores that the load generator kept busy
	ExternalCores float64            `json:"external_cpu_cores"` // cores that external client programs kept busy
	Hosts         []hosts.HostFigure `json:"hosts"`
	Resources     []ResourceUsage    `json:"resources"`         // the most used first
	SteadyPart    *SteadyPart        `json:"steady_part"`       // nil: too few seconds, or none is steady
	AllActive     *Window            `json:"all_active"`        // while all the step's clients were there
	WithTail      *Window            `json:"with_tail"`         // from the step's first second to its last
	Servers       []Share            `json:"servers,omitempty"` // data servers, by name

	ExcludedFact *fact.Fact `json:"excluded_fact,omitempty"` // Excluded

	Backends []BackendFigure `json:"backends,omitempty"` // in the order of Balance.Backends
	Balance  *StepBalance    `json:"balance,omitempty"`  // nil: fewer than two, or they did nothing
	JobFigures
	Sites []SiteFigure `json:"sites,omitempty"` // of runs of jobs over several links
}

// Bad returns how many operations failed or had a wrong payload.
func (s *Figures) Bad() int64 { return s.Errors + s.Wrong }

// BadBy returns them by class. Wrong payloads are of class Checksummed.
func (s *Figures) BadBy() map[storage.Class]int64 {
	if s.Wrong == 0 {
		return s.ErrorsBy
	}
	by := map[storage.Class]int64{storage.Checksummed: s.Wrong}
	for class, n := range s.ErrorsBy {
		by[class] += n
	}
	return by
}

// Site returns what jobs did at a site; nil if nothing is known of it.
func (s *Figures) Site(name string) *SiteFigure {
	for i := range s.Sites {
		if s.Sites[i].Site == name {
			return &s.Sites[i]
		}
	}
	return nil
}

// Unwell returns the share of failures: of operations, or of jobs if that is more. A job is
// thousands of operations, and the last of them alone tells that it failed.
func (s *Figures) Unwell() float64 {
	return max(s.ErrorRatio, s.LostJobs())
}

// Spare is the part of the throughput that the emulated links leave to gain: 1 without links, 0 if they were full all the time. Of
// several links the emptiest counts.
func (s *Figures) Spare() float64 {
	spare := -1.0
	for _, h := range s.Hosts {
		if h.Link != nil && len(h.Link.Over) == 0 {
			spare = max(spare, 1-max(basics.Value(h.Link.ToClients.Busy), basics.Value(h.Link.FromClients.Busy)))
		}
	}
	if spare < 0 {
		return 1
	}
	return spare
}

// LinkFull reports whether the links leave too little to gain for it to be seen.
func (s *Figures) LinkFull() bool { return s.Spare() < 0.03 }

// Quantiles of durations, in seconds, each within 1%.
type Quantiles struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// QuantilesOf returns those of what h has recorded; nil if that is nothing.
func QuantilesOf(h *measure.Histogram) *Quantiles {
	if h.Count() == 0 {
		return nil
	}
	return &Quantiles{Count: h.Count(), Mean: stats.OrZero(h.Mean()), P50: h.Quantile(0.5), P90: h.Quantile(0.9),
		P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Max()}
}

// A Phase is one phase of one step.
type Phase struct {
	Step       int     `json:"step"`
	Phase      string  `json:"phase"`
	Seconds    float64 `json:"seconds"`
	Clients    float64 `json:"clients"` // mean
	Throughput float64 `json:"throughput_bytes_per_second"`
	PerClient  float64 `json:"per_client_bytes_per_second"`
	Errors     int64   `json:"errors"`
}

// A Part is the share of one kind of operation, or of one data server, in the measurement time of all steps.
type Part struct {
	Name       string     `json:"name"` // "" is the target itself
	Throughput float64    `json:"throughput_bytes_per_second"`
	Operations float64    `json:"operations_per_second"`
	Moved      int64      `json:"moved_bytes"`
	Done       int64      `json:"done"`
	Errors     int64      `json:"errors"`
	Wrong      int64      `json:"wrong,omitempty"`
	Latency    *Quantiles `json:"latency_seconds"`

	ErrorsBy map[storage.Class]int64 `json:"errors_by_class,omitempty"`
}

// Parts lists sums by name, the largest first.
func Parts(m map[string]*Total) []Part {
	all := []Part{}
	for _, t := range m {
		all = append(all, Part{Name: t.name, Throughput: stats.Ratio(float64(t.Moved), t.Span), Operations: stats.Ratio(float64(t.Done), t.Span),
			Moved: t.Moved, Done: t.Done, Errors: t.Errors(), Wrong: t.Wrong, ErrorsBy: t.Failures(),
			Latency: QuantilesOf(&t.Latency)})
	}
	slices.SortFunc(all, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Moved, a.Moved), cmp.Compare(b.Done, a.Done), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// A Subinterval is one of four equal parts of a step, from its first second to its last: jobs come, are all active,
// are all active, leave.
type Subinterval struct {
	Step       int     `json:"step"`
	Number     int     `json:"number"` // 1 to 4
	Name       string  `json:"name"`   // ramp up, steady, cool down
	Seconds    float64 `json:"seconds"`
	Clients    float64 `json:"clients"` // mean
	Throughput float64 `json:"throughput_bytes_per_second"`
	PerClient  float64 `json:"per_client_bytes_per_second"`
	Operations float64 `json:"operations_per_second"`
}

// A Window is what a step gave over some part of its time.
type Window struct {
	Seconds    float64 `json:"seconds"`
	Clients    float64 `json:"clients"` // mean
	Throughput float64 `json:"throughput_bytes_per_second"`
	Operations float64 `json:"operations_per_second"`
}

// A SteadyPart is the part of a step's hold that is left when its beginning is cut off where it was still warming up.
type SteadyPart struct {
	Window
	From    float64  `json:"from_seconds"` // cut off from the hold's start
	Low     *float64 `json:"throughput_low"`
	High    *float64 `json:"throughput_high"`
	Batches int      `json:"batches"`
}
