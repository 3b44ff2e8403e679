package analysis

import (
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/fit"
)

// These types are the models fitted to the curve, as in findings.json.
type (
	// Fits are the models fitted by weighted least squares. Their yield is bytes per second, or
	// operations per second if Findings.Measure is Rate. If Fits.Unfit is set, Best is "" and all
	// models are nil.
	Fits = fit.Fits
	// Fit is one model of Fits.
	Fit = fit.Fit
	// Estimate is a parameter of a model with its interval.
	Estimate = fit.Estimate
	// Maximum is the maximum of a model: its load and its yield.
	Maximum = fit.Maximum
)

// Knee is the load beyond which additional clients increase the throughput by less than the average
// client does: the point of the curve that is farthest above the straight line from its lightest
// step to its best.
type Knee struct {
	Clients     int      `json:"clients"`
	ClientsLow  *float64 `json:"clients_low"` // 95% interval by bootstrap
	ClientsHigh *float64 `json:"clients_high"`
	Throughput  float64  `json:"throughput_bytes_per_second"` // interpolated between tested steps
	Operations  float64  `json:"operations_per_second"`
	Step        int      `json:"tested_step"` // the nearest tested step
	Tested      int      `json:"tested_clients"`
	// Saturation is the load at which the straight line through the lightest step reaches the best
	// throughput, the crossing of the asymptotes (Denning and Buzen, ACM Computing Surveys 10,
	// 1978): the number of clients that could keep the service busy if no client ever waited for
	// another. It is zero in the open model, and if the crossing lies beyond the tested range.
	Saturation float64 `json:"saturation_clients"`
	Method     string  `json:"method"`
}

// Optimum is the least tested load whose yield no other load certainly exceeds: its results, and
// the loads that cannot be distinguished from it. Everything that names a best load takes it from
// here.
type Optimum struct {
	Step    int `json:"tested_step"`
	Clients int `json:"clients"` // of that step
	// the lightest and the heaviest tested load that cannot be distinguished from the best
	ClientsLow  int      `json:"clients_low"`
	ClientsHigh int      `json:"clients_high"`                // the true best load is in this range in 97.5% of cases
	Equals      []int    `json:"equal_steps"`                 // indistinguishable steps, the lightest first; one of each load
	Throughput  float64  `json:"throughput_bytes_per_second"` // measured in Step, like the next fields
	Low         *float64 `json:"throughput_low"`              // 95% interval; nil: unknown
	High        *float64 `json:"throughput_high"`
	Operations  float64  `json:"operations_per_second"`
	Unclear     bool     `json:"unclear,omitempty"`   // the interval contains zero, or is wider than twice the mean: no peak can be named
	Inside      bool     `json:"inside_tested_range"` // the heaviest load certainly gives less; false: no maximum was found
	// Peak is the number of clients at which the model that describes the curve is highest; nil if
	// no model describes it, or the model has no maximum in the tested range.
	Peak   *Estimate `json:"fitted_peak_clients"`
	Method string    `json:"method"`
}

// An Operating point is a tested step with a special role, such as the step of maximum power.
type Operating struct {
	Step       int     `json:"step"`
	Clients    int     `json:"clients"`
	Throughput float64 `json:"throughput_bytes_per_second"`
	Operations float64 `json:"operations_per_second"`
	Latency    float64 `json:"latency_mean_seconds,omitempty"`
	Method     string  `json:"method"`
}

// A Collapse is a load beyond the best load under which throughput broke down.
type Collapse struct {
	Step    int     `json:"step"`
	Clients int     `json:"clients"`
	Left    float64 `json:"throughput_left_ratio"` // of the throughput of the best step
	Detail  string  `json:"detail"`                // the texts of Facts

	Facts []fact.Fact `json:"facts,omitempty"`
}

// Hysteresis compares steps of the same load on the way up and on the way down.
type Hysteresis struct {
	Clients int     `json:"clients"`
	Up      int     `json:"step_up"`
	Down    int     `json:"step_down"`
	Change  float64 `json:"change_ratio"` // of the yield, from the way up to the way down
	Certain bool    `json:"certain"`      // the interval of the difference excludes 0, and the change is 5% or more
}

// A Boundary is the range of loads in which a condition holds.
type Boundary struct {
	Condition string   `json:"condition"` // as in the scenario: latency_mean < 10 x single
	Limit     float64  `json:"limit"`     // in base units
	From      *float64 `json:"from_clients"`
	To        *float64 `json:"to_clients"`       // nil: at no tested load
	Next      *float64 `json:"broken_clients"`   // first tested load at which it does not hold; nil: no load
	Crossing  *float64 `json:"crossing_clients"` // in between, by linear interpolation
	Again     *float64 `json:"again_clients"`    // a load beyond Next at which it holds again; nil: no load
	// Above is set if the condition holds only above the lightest load, as a minimum throughput
	// does.
	Above      bool   `json:"above_lightest,omitempty"`
	Unmeasured bool   `json:"unmeasured,omitempty"` // no step has the quantity
	Detail     string `json:"detail"`               // the texts of Facts

	Facts []fact.Fact `json:"facts,omitempty"`
}

// PartFits are fourth-order functions fitted to the four parts of all steps: the yield of all
// active clients, and the yield per client, against the number of active clients.
type PartFits struct {
	Total *Fit `json:"total"` // nil: too few parts
	Each  *Fit `json:"each"`
}
