// Package analysis says what a run directory means: the curve with its spread, the best step, the knee, and whether
// the numbers can be believed. Its functions are pure: the same run gives the same findings.
//
// A run passes through the files in this order: load reads it into sums, hosts, usage and selfreport sum up its
// samples; curve, batches, steady and windows make its steps; understand, optimum and boundary interpret the curve
// with packages fit and shape; resources and bottleneck find what limits it; validity, checks and the files named
// after what they check judge the data; threshold and gate compare it with the scenario's thresholds; headline and
// verdict put the result into words; csv and rows write it; series is the run against time. table.go analyzes a table
// that another program has written.
package analysis

import (
	"slices"
	"time"

	"weir/loadtest/analysis/shape"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// FindingsVersion is the version of the format of findings.json.
const FindingsVersion = 5

// Values of Findings.Measure.
const (
	Throughput = "throughput" // payload was moved: steps are compared by bytes per second
	Rate       = "rate"       // no payload: steps are compared by operations per second
)

// Findings is what a run showed. Its JSON is findings.json; the keys are part of the format. Quantities are in base
// units: seconds, bytes, counts.
type Findings struct {
	Version  int             `json:"version"`          // FindingsVersion
	Source   string          `json:"source,omitempty"` // FromTable; "" is a run directory
	Run      string          `json:"run"`
	Name     string          `json:"name"`
	Target   string          `json:"target"`
	Work     string          `json:"workload"` // what each client did, in words
	Start    time.Time       `json:"start"`
	Model    scenario.Model  `json:"model"`                  // closed or open
	Measure  string          `json:"measure"`                // Throughput or Rate
	Sessions *float64        `json:"sessions_per_operation"` // that clients made while load was held; nil: no operation ended
	Renewed  int64           `json:"renewed,omitempty"`      // credentials that client processes read again because they were renewed
	Ending   *measure.Ending `json:"ending"`                 // how the run ended; nil: it goes on, or was killed
	// the result in one line of at most 100 letters where its numbers allow: value with interval, load, limit
	Headline string   `json:"headline"`
	Verdict  string   `json:"verdict"`          // begins with Headline; one fact a line
	Search   string   `json:"search,omitempty"` // of a run that searched: its last decision, how it ended that is
	Validity Validity `json:"validity"`
	Curve    []Step   `json:"curve"`
	// Correlation is that of neighboring batch means within the steps, by which all intervals are widened; 0: no more
	// than chance.
	Correlation float64  `json:"batch_correlation"`
	Phases      []Phase  `json:"phases"`
	Kinds       []Part   `json:"kinds"`   // measurement time of all steps, by kind of operation
	Servers     []Part   `json:"servers"` // the same, by data server
	Knee        *Knee    `json:"knee"`
	Optimum     *Optimum `json:"optimum"`
	Warnings    []string `json:"warnings"`

	Outages    []Outage   `json:"outages"`    // by time
	Thresholds []Judgment `json:"thresholds"` // of the scenario, in its order

	Subintervals []Subinterval `json:"subintervals"`
	Fits         *Fits         `json:"fits"`          // nil: too few steps
	Power        *Operating    `json:"maximum_power"` // most throughput over latency
	Collapse     *Collapse     `json:"collapse"`      // nil: none
	Hysteresis   []Hysteresis  `json:"hysteresis"`    // of loads that were held on the way up and down
	Boundaries   []Boundary    `json:"boundaries"`
	Bottleneck   []Bottleneck  `json:"bottleneck"` // the first to saturate comes first
	Balance      *Balance      `json:"balance"`    // nil: fewer than two servers shared the load, or it is not known

	// of a run whose clients have several workloads; Curve is of all together
	Populations []PopulationCurve `json:"populations,omitempty"`
	Workers     []WorkerFigure    `json:"workers,omitempty"`          // of a run on many machines
	Transfers   *TransferFigures  `json:"transfers,omitempty"`        // of a record of transfers
	Parts       *PartFits         `json:"subinterval_fits,omitempty"` // where workers are jobs of a batch system

	pageThreads int // of the built-in server, that serve pages that cost CPU time; 0: none do
}

// Validity says whether the numbers can be believed.
type Validity struct {
	Status string  `json:"status"` // valid, suspect (a check warns), invalid (one fails); of tables unchecked
	Checks []Check `json:"checks"`
	Notes  []Note  `json:"notes"` // what could not be checked, which is no evidence of a problem
}

// States of a result.
const (
	Valid     = "valid"     // enough data, and no check has evidence that they are wrong
	Suspect   = "suspect"   // evidence that the numbers may be wrong, or too little data to rely on
	Invalid   = "invalid"   // evidence that the numbers are wrong, or nothing was measured
	Unchecked = "unchecked" // of a table: nothing speaks against it, and nothing for it
)

// A Check is one reason to believe a result, or not to.
type Check struct {
	Name   string `json:"name"`
	Status string `json:"status"`           // ok, warn, fail, skipped
	Detail string `json:"detail"`           // with numbers
	Effect string `json:"effect,omitempty"` // of warn and fail: what it means for the result

	notes []Note
}

// States of a check.
const (
	OK      = "ok"
	Warn    = "warn"
	Fail    = "fail"
	Skipped = "skipped" // nothing to judge by; the detail says why
)

// A Step is one point of the curve: what the measurement time of one step gave. Pointers are nil where the run does not
// tell.
type Step struct {
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
	Encoded     int64                   `json:"encoded,omitempty"` // reads of files of unknown size with a content encoding that was not requested
	Missed      int64                   `json:"missed"`            // open model: arrivals that never started
	SessionRate float64                 `json:"sessions_per_second"`
	Handshakes  int64                   `json:"tls_handshakes,omitempty"`
	Resumed     int64                   `json:"tls_resumed,omitempty"` // TLS handshakes that resumed an earlier TLS session
	Tasks       int64                   `json:"tasks"`                 // that ended
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
	ServerEach    *float64        `json:"server_cpu_seconds_per_operation"`
	ClientCPU     *float64        `json:"client_cpu_share"`   // of all cores of the clients' hosts
	ClientCores   *float64        `json:"client_cpu_cores"`   // cores that the load generator kept busy
	ExternalCores float64         `json:"external_cpu_cores"` // cores that external client programs kept busy
	Hosts         []HostFigure    `json:"hosts"`
	Resources     []ResourceUsage `json:"resources"`         // the most used first
	SteadyPart    *SteadyPart     `json:"steady_part"`       // nil: too few seconds, or none is steady
	AllActive     *Window         `json:"all_active"`        // while all the step's clients were there
	WithTail      *Window         `json:"with_tail"`         // from the step's first second to its last
	Servers       []Share         `json:"servers,omitempty"` // data servers, by name

	Backends []BackendFigure `json:"backends,omitempty"` // in the order of Balance.Backends
	Balance  *StepBalance    `json:"balance,omitempty"`  // nil: fewer than two, or they did nothing
	JobFigures
	Sites           []SiteFigure `json:"sites,omitempty"` // of runs of jobs over several links
	serverByHost    bool         // ServerCPU is of whole hosts, not of processes
	latencySeconds  float64      // summed over operations done
	thinkSeconds    float64
	lateSeconds     float64   // by which starts after pauses were late, summed
	busySeconds     float64   // that clients were in operations, summed; 0: not recorded
	closingSeconds  float64   // that clients took to close sessions, summed
	computeSeconds  float64   // that jobs computed, summed
	burned          float64   // cores that jobs kept busy on purpose, by computing
	eachJob         bool      // its tasks are jobs of events
	programs        bool      // its tasks are programs of the user's
	oneByOne        bool      // what its jobs do comes one after the other: requests and computing
	change          float64   // how likely its drift is by chance
	turn            float64   // by how much its last quarter differs from its first, as a share of the latter
	creep           creep     // how its level changed, by the second
	warmed          float64   // the same of what was cut off from its beginning
	unequal         bool      // its clients were served unequally
	bounded         bool      // it was to end with the last of so many jobs
	burst           float64   // s from one burst of operations to the next, at most; 0: it does not work in bursts
	throttled       float64   // share of periods in which a generator had used up its CPU quota, the largest of its hosts
	clientMay       float64   // cores that the generator may use, where that is fewer than its machine has
	timedStarts     int64     // tasks whose planned start was known
	means           []float64 // batch means of what steps are compared by
	fromTable       bool      // by a table, which need not tell what moved
	errorRatioGiven bool      // the table tells the error ratio
}

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

// A HostFigure is the mean of what one host went through in one step's measurement time.
type HostFigure struct {
	Host            string       `json:"host"`
	Role            monitor.Role `json:"role"`
	Cores           int          `json:"cores"`
	CPU             *float64     `json:"cpu_busy"` // share of all cores
	IOWait          *float64     `json:"iowait"`
	Steal           *float64     `json:"steal"`
	BusiestCore     *float64     `json:"busiest_core"` // mean of the busiest core's share
	ServerCores     *float64     `json:"server_cpu_cores"`
	ClientCores     *float64     `json:"client_cpu_cores"`
	ServerRSS       int64        `json:"server_resident_bytes"` // largest seen
	ClientRSS       int64        `json:"client_resident_bytes"`
	MemoryAvailable int64        `json:"memory_available_bytes"` // smallest seen
	Disk            string       `json:"busiest_disk,omitempty"`
	DiskBusy        *float64     `json:"disk_busy"` // of the busiest disk
	DiskRead        float64      `json:"disk_read_bytes_per_second"`
	DiskWrite       float64      `json:"disk_write_bytes_per_second"`
	NetReceived     float64      `json:"net_received_bytes_per_second"` // loopback apart from all others: the larger
	NetSent         float64      `json:"net_sent_bytes_per_second"`
	Retransmits     float64      `json:"retransmitted_segments_per_second"`
	CPUWaits        *float64     `json:"cpu_waits,omitempty"`       // share of time in which something that could run waited for a core
	Quota           float64      `json:"cpu_quota_cores,omitempty"` // of the clients' control groups; 0: none
	QuotaGroup      string       `json:"cpu_quota_group,omitempty"`
	// share of the scheduler's periods in which the clients' control group had used up its quota; nil: it has none
	Throttled *float64 `json:"cpu_throttled_ratio,omitempty"`
	// share of all cores that processes which were not watched used while nearly no core was idle
	Contended  *float64 `json:"contended_cpu"`
	saturated  float64  // share of the time in which nearly no core was idle, seconds with few idle cores in part
	userSystem *float64 // share of all cores in user and system mode
	simulated  bool     // the service is a part of the clients' process
	local      bool     // the target is a folder: no process serves it but those that are named
	unwatched  float64  // share of all cores of programs that were seen and not watched
	kernel     float64  // share of all cores of threads of the kernel

	MostUsedCore   *float64 `json:"most_used_core"`         // largest mean of one core: not biased as BusiestCore is
	DiskQueue      *float64 `json:"disk_queue"`             // of the busiest disk: mean requests waiting or in service
	DisksInUse     int      `json:"disks_in_use,omitempty"` // the busiest and those that share its work; 0: no other does
	DisksBusy      *float64 `json:"disks_busy,omitempty"`   // mean of those in use
	DisksFull      int      `json:"disks_full,omitempty"`   // those in use that are at least 90% busy
	Interface      string   `json:"busiest_interface,omitempty"`
	NetSpeed       float64  `json:"net_speed_bits_per_second,omitempty"`
	ReceivedShare  *float64 `json:"net_received_share"` // of the busiest interface's speed; nil: no speed is known
	SentShare      *float64 `json:"net_sent_share"`
	Connections    float64  `json:"connections"` // established ones of the whole host
	ListenDrops    float64  `json:"listen_drops_per_second"`
	MemoryTotal    int64    `json:"memory_bytes"`
	Swapped        int64    `json:"swap_used_bytes"` // largest seen
	ServerFiles    int      `json:"server_open_files"`
	ClientFiles    int      `json:"client_open_files"`
	swapGrowth     int64    // from the first second to the last
	irq            *float64
	groups         []groupFigure     // of the service's processes
	scratch        *DiskFigure       // nil: no copies of files lie on its disks
	spreads        map[string]ranged // of shares, by resource; of the generator in cores
	unknownTraffic float64           // bytes per second of the busiest interface without a known speed, but loopback
	unknownName    string

	Service *ServerFigure `json:"service,omitempty"` // what a server says of itself
	Link    *LinkFigure   `json:"link,omitempty"`    // what an emulated link went through
}

// Bad returns how many operations failed or had a wrong payload.
func (s *Step) Bad() int64 { return s.Errors + s.Wrong }

// BadBy returns them by class. Wrong payloads are of class Checksummed.
func (s *Step) BadBy() map[storage.Class]int64 {
	if s.Wrong == 0 {
		return s.ErrorsBy
	}
	by := map[storage.Class]int64{storage.Checksummed: s.Wrong}
	for class, n := range s.ErrorsBy {
		by[class] += n
	}
	return by
}

// Analyze analyses run. Weird runs (no steps, only errors, no hosts) give findings that say so; an error means that
// the directory can not be read.
func Analyze(run *results.Run) (*Findings, error) {
	d, err := load(run)
	if err != nil {
		return nil, err
	}
	return d.findings(), nil
}

// Curve returns the steps of run as Analyze does, but none of what they show together, and by what they are compared:
// Throughput or Rate. It costs a fraction of Of, so that a search can ask after each step. Steps during a part of
// which the service was away are left out; one in which it refused everything is not.
func Curve(run *results.Run) (steps []Step, measure string, err error) {
	d, err := load(run)
	if err != nil {
		return nil, "", err
	}
	f := &Findings{Measure: d.measure()}
	for _, t := range d.held() {
		f.Curve = append(f.Curve, d.step(t))
	}
	d.availability(f)
	steps = slices.DeleteFunc(f.Curve, func(s Step) bool { return s.Excluded != "" && s.ErrorRatio < shape.MostErrors && s.Done > 0 })
	widen(steps)
	return steps, f.Measure, nil
}

// leastPayload is how many bytes the operations of a mix move, on the mean, where throughput is what counts.
const leastPayload = 512

// measure says by what steps are compared: where no payload is moved, and in a mix that moves next to none, by
// operations.
func (d *data) measure() string {
	var moved, done int64
	for _, t := range d.held() {
		moved, done = moved+t.Moved, done+t.Done
	}
	if moved > 0 && (d.plan.Work.Kind != workload.MixWork || moved >= leastPayload*done) {
		return Throughput
	}
	return Rate
}

func (d *data) findings() *Findings {
	f := &Findings{
		Version: FindingsVersion, Run: d.about.Run, Name: d.plan.Name, Target: d.plan.Target, Work: d.plan.WorkText(), Start: d.about.Start,
		Model: d.plan.Model, Measure: d.measure(), Warnings: []string{}, Curve: []Step{}, Phases: d.phases(),
		Subintervals: d.subintervals(), Hysteresis: []Hysteresis{}, Boundaries: []Boundary{}, Bottleneck: []Bottleneck{}, Ending: d.ending(),
	}
	if d.plan.BuiltIn {
		f.pageThreads = d.plan.Server.Threads
	}
	all := map[int][]second{}
	for _, seconds := range d.bySteps() {
		all[seconds[0].step] = seconds
	}
	for _, s := range d.held() {
		step := d.step(s)
		d.windows(&step, all[s.number])
		f.Curve = append(f.Curve, step)
	}
	d.sessions(f)
	d.signing(f)
	d.availability(f)
	f.Correlation = widen(f.Curve)
	f.Populations = d.populationCurves()
	f.Kinds, f.Servers, f.Workers = parts(d.kinds), parts(d.servers), d.workers()
	d.missingWorkers(f)
	f.Transfers = d.transferFigures()
	if d.plan.On.Batch.Queues() {
		f.Parts = f.partFits()
	}
	d.resources(f)
	best, left := d.capacity(f)
	f.Balance = d.balance(f)
	f.Validity = d.validity(f, best, left)
	f.Thresholds = d.stopped(f.judged(d.plan.Thresholds))
	f.Warnings = append(append(f.Warnings, d.warnings(f)...), d.warnUnnamedServers(f.Balance)...)
	if f.Transfers != nil {
		f.Headline, f.Verdict = f.Transfers.Text(), f.transferVerdict()
	}
	f.Search = d.search()
	return f
}

// capacity fills in what the steps that count show together: models, knee, optimum, limits, bottleneck and verdict.
// It returns the place of the best of them in the curve, -1 if there is none, and how many count.
func (d *data) capacity(f *Findings) (best, left int) {
	g := f.Counting()
	g.understand()
	at := g.best()
	g.Bottleneck = d.bottleneck(g, at)
	g.Boundaries = g.boundaries(d.plan.Boundaries)
	g.Headline = g.headline()
	g.Verdict = g.verdict()
	best, left = at, len(g.Curve)
	if at >= 0 {
		best = f.indexOf(g.Curve[at].Step)
	}
	curve := f.Curve
	*f = *g
	f.Curve = curve
	f.reportOutages(left)
	return best, left
}
