package analysis

import "weir/loadtest/analysis/fit"

// The models fitted to the curve, as in findings.json.
type (
	// Fits are the models fitted by weighted least squares. Their yield is bytes per second, or operations per second
	// where Findings.Measure is Rate. If Fits.Unfit is set, Best is "" and all models are nil.
	Fits = fit.Fits
	// Fit is one of the models.
	Fit = fit.Fit
	// Estimate is a parameter of a model with its interval.
	Estimate = fit.Estimate
	// Maximum is where a model is highest.
	Maximum = fit.Maximum
)

// Knee is where more clients begin to bring less each than they did on average: the place of the curve that is
// farthest above the straight way from its lightest step to its best.
type Knee struct {
	Clients     int      `json:"clients"`
	ClientsLow  *float64 `json:"clients_low"` // 95% interval by bootstrap
	ClientsHigh *float64 `json:"clients_high"`
	Throughput  float64  `json:"throughput_bytes_per_second"` // between those of the tested steps around it
	Operations  float64  `json:"operations_per_second"`
	Step        int      `json:"tested_step"` // the tested step next to it
	Tested      int      `json:"tested_clients"`
	// Saturation is where the line of the lightest step meets the best throughput, the crossing of the asymptotes
	// (Denning and Buzen, ACM Computing Surveys 10, 1978): clients that could keep the service busy if none ever
	// waited for another. Zero in the open model, and where it lies beyond the tested range.
	Saturation float64 `json:"saturation_clients"`
	Method     string  `json:"method"`
}

// Optimum is the least tested load that gives as much as any: its results, and the loads that cannot be distinguished from it.
// Everything that names a best load takes it from here.
type Optimum struct {
	Step    int `json:"tested_step"`
	Clients int `json:"clients"` // of that step
	// the lightest and the heaviest tested load that cannot be distinguished from the best;
	ClientsLow  int      `json:"clients_low"`
	ClientsHigh int      `json:"clients_high"`                // the truly best one lies among them in 97.5% of cases
	Equals      []int    `json:"equal_steps"`                 // these steps, the lightest first; one of each load
	Throughput  float64  `json:"throughput_bytes_per_second"` // measured in that step, as what follows
	Low         *float64 `json:"throughput_low"`              // 95% interval; nil: none
	High        *float64 `json:"throughput_high"`
	Operations  float64  `json:"operations_per_second"`
	Unclear     bool     `json:"unclear,omitempty"`   // the interval contains zero, or is wider than twice the mean: no peak can be named
	Inside      bool     `json:"inside_tested_range"` // the heaviest load certainly gives less; false: no maximum was found
	// Peak is the number of clients at which the model that describes the curve is highest; nil if no model does, or
	// it has no maximum in the tested range.
	Peak   *Estimate `json:"fitted_peak_clients"`
	Method string    `json:"method"`
}

// An Operating point is a tested step that is singled out.
type Operating struct {
	Step       int     `json:"step"`
	Clients    int     `json:"clients"`
	Throughput float64 `json:"throughput_bytes_per_second"`
	Operations float64 `json:"operations_per_second"`
	Latency    float64 `json:"latency_mean_seconds,omitempty"`
	Method     string  `json:"method"`
}

// A Collapse is a load beyond the best one under which throughput broke down.
type Collapse struct {
	Step    int     `json:"step"`
	Clients int     `json:"clients"`
	Left    float64 `json:"throughput_left_ratio"` // of the best step's
	Detail  string  `json:"detail"`
}

// Hysteresis compares steps of the same load on the way up and on the way down.
type Hysteresis struct {
	Clients int     `json:"clients"`
	Up      int     `json:"step_up"`
	Down    int     `json:"step_down"`
	Change  float64 `json:"change_ratio"` // of the yield, from the way up to the way down
	Certain bool    `json:"certain"`      // the interval of the difference leaves out 0, and it is 5% or more
}

// A Boundary is the range of loads in which a condition holds.
type Boundary struct {
	Condition string   `json:"condition"` // as it was asked: latency_mean < 10 x single
	Limit     float64  `json:"limit"`     // in base units
	From      *float64 `json:"from_clients"`
	To        *float64 `json:"to_clients"`       // nil: at no tested load
	Next      *float64 `json:"broken_clients"`   // first tested load at which it does not hold; nil: none
	Crossing  *float64 `json:"crossing_clients"` // in between, by linear interpolation
	Detail    string   `json:"detail"`
}

// A ResourceUsage is how much one resource was used in one step.
type ResourceUsage struct {
	Resource  string   `json:"resource"` // ResourceCPU and the like
	Host      string   `json:"host"`
	Side      string   `json:"side"`      // server, client, both, other
	Share     *float64 `json:"use_ratio"` // 1 is all there is of it; nil: its size is not known
	Low       *float64 `json:"use_low"`   // 95% interval of Share over the step's samples; nil with Share
	High      *float64 `json:"use_high"`
	Saturated bool     `json:"saturated"` // it is used up at this load and at heavier ones
	Undecided bool     `json:"undecided"` // unknown whether it is used up: its interval reaches from one bound to the other
	Detail    string   `json:"detail"`    // in numbers, with units

	reached, holds bool    // used up at this step, by the lower end; nearly so, as heavier steps need it
	near, clear    bool    // used up by the mean; not used up, by the upper end
	foreign        float64 // part of the use that is known to be neither side's
	own            float64 // part that may be: the time of interrupts belongs to no watched process
	depth          float64 // of a disk: its queue
	group          float64 // mean share of the disks that share its work, 0: there is no other one
}

// A Bottleneck is what limits the curve from some load on.
type Bottleneck struct {
	Resource string  `json:"resource"` // as in ResourceUsage; or LimitLatency and the like
	Host     string  `json:"host"`
	Side     string  `json:"side"`
	Step     int     `json:"step"`                    // the lightest at which it is saturated
	From     int     `json:"from_clients"`            // of that step
	Shared   bool    `json:"shared"`                  // clients and service use it together
	Threads  int     `json:"threads,omitempty"`       // of a core that is the built-in server's: threads that serve its pages
	Foreign  float64 `json:"foreign_ratio,omitempty"` // part of a CPU that other programs and guests used in that step
	Reason   string  `json:"reason,omitempty"`        // of LimitUnknown: ReasonUnwatched and the like
	// of LimitUnknown: what may limit, and cannot be ruled out; of LimitNone: what may be full next
	Candidates []Candidate `json:"candidates,omitempty"`
	Excluded   []string    `json:"excluded,omitempty"` // of LimitInside: kinds of resources that are clearly not the limit
	Evidence   []string    `json:"evidence"`           // sentences with numbers
}

// Values of Bottleneck.Reason.
const (
	ReasonUnwatched = "unwatched"      // the machines of the service, or the generator, were not watched, or only some of them
	ReasonNoise     = "noise"          // the use of a resource is too near to its limit, or too noisy, to tell
	ReasonGrowth    = "growth"         // the noise hides whether the curve still grows
	ReasonForeign   = "other programs" // other programs, or guests of the hypervisor, used what was left
)

// A Candidate is a resource that may be what limits a curve.
type Candidate struct {
	Resource string   `json:"resource"`
	Host     string   `json:"host"`
	Side     string   `json:"side"`
	Step     int      `json:"step"`              // whose use is stated
	Threads  int      `json:"threads,omitempty"` // as of a Bottleneck
	Share    *float64 `json:"use_ratio"`         // nil: its size is not known, or it was not watched
	Low      *float64 `json:"use_low"`
	High     *float64 `json:"use_high"`
	Detail   string   `json:"detail"`
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

// PartFits are fourth-order functions through the four parts of all steps: what all active clients got, and what each
// of them got, against how many there were.
type PartFits struct {
	Total *Fit `json:"total"` // nil: too few parts
	Each  *Fit `json:"each"`
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
