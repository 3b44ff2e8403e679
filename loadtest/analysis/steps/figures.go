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
	Throughput = "throughput" // with payload: steps are compared by bytes per second
	Rate       = "rate"       // without payload: steps are compared by operations per second
)

// Figures are one point of the curve: the results of the measurement time of one step. Pointers are
// nil if the value is unknown.
type Figures struct {
	Step    int `json:"step"`
	Clients int `json:"clients"`                   // as planned; for jobs of a batch system: the active clients
	Planned int `json:"planned_clients,omitempty"` // if each client is a job of a batch system
	// of a run on many machines: workers that never started, or were lost before the end of its
	// hold
	WorkersMissing int     `json:"workers_missing,omitempty"`
	ClientsMissing float64 `json:"clients_missing,omitempty"` // mean over the hold if workers were missing: planned but not active
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
	Batches        int      `json:"batches"` // independent means behind the intervals

	Moved       int64                   `json:"moved_bytes"`
	Discarded   int64                   `json:"discarded_bytes"` // never copied to memory
	Done        int64                   `json:"done"`
	Errors      int64                   `json:"errors"`
	Wrong       int64                   `json:"wrong,omitempty"` // operations of Done whose payload a later check found wrong
	ErrorRatio  float64                 `json:"error_ratio"`     // errors and wrong payloads per ended operation
	ErrorsBy    map[storage.Class]int64 `json:"errors_by_class,omitempty"`
	Paused      float64                 `json:"paused_seconds"`                // pauses of clients after failed tasks, summed
	RetryAfter  float64                 `json:"retry_after_seconds,omitempty"` // pauses of clients requested by the service, summed
	AskedShare  float64                 `json:"retry_after_share,omitempty"`   // of the clients' time
	PausedShare float64                 `json:"paused_share"`                  // of the clients' time
	Unavailable float64                 `json:"unavailable_seconds"`           // of the measurement time, in outages
	Excluded    string                  `json:"excluded,omitempty"`            // why the step does not count for the curve; "" if it does
	Canceled    int64                   `json:"canceled"`                      // by the end of the run: no errors
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
	// wall clock time of a task without the pause after it, mean by Little's law; nil: open model,
	// or no task ended
	TaskSeconds *float64 `json:"task_seconds"`

	Waits    int64   `json:"waits,omitempty"`          // requests of the service to wait and retry
	Waited   float64 `json:"waited_seconds,omitempty"` // duration of these waits, summed
	Reopened int64   `json:"reopened,omitempty"`       // files opened again because their data server was lost
	Signed   int64   `json:"signed,omitempty"`         // requests signed because the service requires it

	Latency   *Quantiles `json:"latency_seconds"`
	FirstByte *Quantiles `json:"first_byte_seconds"`
	Redirect  *Quantiles `json:"redirect_seconds,omitempty"`      // nil: no redirects
	Connect   *Quantiles `json:"connect_seconds"`                 // of new sessions
	Handshake *Quantiles `json:"tls_handshake_seconds,omitempty"` // nil: no TLS handshakes
	Login     *Quantiles `json:"login_seconds"`
	LateP99   *float64   `json:"late_p99_seconds"` // the generator's own delay

	PerClient     float64  `json:"per_client_bytes_per_second"`
	PerClientRate float64  `json:"per_client_operations_per_second"`
	Fairness      *float64 `json:"fairness"`          // Jain's index of the operations that each client completed; nil: not meaningful
	Steady        *bool    `json:"steady"`            // nil: too few seconds, or an interval that is too wide
	Drift         *float64 `json:"drift_ratio"`       // change from the start of the hold to its end, of the mean
	Little        *float64 `json:"littles_law_ratio"` // X*(R+Z)/N, 1 if nothing was lost

	ServerCPU   *float64 `json:"server_cpu_share"` // of all cores of the server's hosts, 0 to 1
	ServerCores *float64 `json:"server_cpu_cores"` // cores that the service kept busy
	// CPU time of the service per successful operation; nil: unknown, or no success
	ServerEach    *float64           `json:"server_cpu_seconds_per_operation"`
	ClientCPU     *float64           `json:"client_cpu_share"`   // of all cores of the clients' hosts
	ClientCores   *float64           `json:"client_cpu_cores"`   // cores that the load generator kept busy
	ExternalCores float64            `json:"external_cpu_cores"` // cores that external client programs kept busy
	Hosts         []hosts.HostFigure `json:"hosts"`
	Resources     []ResourceUsage    `json:"resources"`         // the most used first
	SteadyPart    *SteadyPart        `json:"steady_part"`       // nil: too few seconds, or no steady part
	AllActive     *Window            `json:"all_active"`        // while all its clients were active
	WithTail      *Window            `json:"with_tail"`         // from the step's first second to its last
	Servers       []Share            `json:"servers,omitempty"` // data servers, by name

	ExcludedFact *fact.Fact `json:"excluded_fact,omitempty"` // Excluded

	Backends []BackendFigure `json:"backends,omitempty"` // in the order of Balance.Backends
	Balance  *StepBalance    `json:"balance,omitempty"`  // nil: fewer than two, or no load on them
	JobFigures
	Sites []SiteFigure `json:"sites,omitempty"` // of runs of jobs over several links
}

// Bad returns the number of operations that failed or had a wrong payload.
func (s *Figures) Bad() int64 { return s.Errors + s.Wrong }

// BadBy returns these operations by class. Wrong payloads are of class Checksummed.
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

// Site returns the figures of the jobs at a site, or nil if the site is unknown.
func (s *Figures) Site(name string) *SiteFigure {
	for i := range s.Sites {
		if s.Sites[i].Site == name {
			return &s.Sites[i]
		}
	}
	return nil
}

// Unwell returns the share of failures: of operations, or of jobs if that share is larger. A job
// has thousands of operations, of which only the last operation shows that it failed.
func (s *Figures) Unwell() float64 {
	return max(s.ErrorRatio, s.LostJobs())
}

// Spare returns the share of the throughput that the emulated links leave unused: 1 without links,
// 0 if they were busy all the time. The least busy of several links counts.
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

// LinkFull reports whether the links leave too little for an increase to be visible.
func (s *Figures) LinkFull() bool { return s.Spare() < 0.03 }

// Quantiles are quantiles of durations, in seconds, each within 1%.
type Quantiles struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// QuantilesOf returns the quantiles of the values in h, or nil if h is empty.
func QuantilesOf(h *measure.Histogram) *Quantiles {
	if h.Count() == 0 {
		return nil
	}
	return &Quantiles{Count: h.Count(), Mean: stats.OrZero(h.Mean()), P50: h.Quantile(0.5), P90: h.Quantile(0.9),
		P95: h.Quantile(0.95), P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Max()}
}

// A Phase has the means of one phase of one step.
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

// Parts returns the sums in m as parts, the largest first.
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

// A Subinterval is one of four equal parts of a step, from its first second to its last: ramp up,
// steady, steady, and cool down.
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

// A Window has the means of a step over a part of its time.
type Window struct {
	Seconds    float64 `json:"seconds"`
	Clients    float64 `json:"clients"` // mean
	Throughput float64 `json:"throughput_bytes_per_second"`
	Operations float64 `json:"operations_per_second"`
}

// A SteadyPart is the rest of a step's hold after its warm-up was cut off.
type SteadyPart struct {
	Window
	From    float64  `json:"from_seconds"` // length of the part that was cut off
	Low     *float64 `json:"throughput_low"`
	High    *float64 `json:"throughput_high"`
	Batches int      `json:"batches"`
}
