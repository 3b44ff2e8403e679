package analysis

import (
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/fit"
)

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
	Detail  string  `json:"detail"`                // the texts of Facts

	Facts []fact.Fact `json:"facts,omitempty"`
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
	Again     *float64 `json:"again_clients"`    // a load beyond Next at which it holds again; nil: none
	// Above is set if the condition holds above the lightest load only, as a least throughput does.
	Above      bool   `json:"above_lightest,omitempty"`
	Unmeasured bool   `json:"unmeasured,omitempty"` // no step has the quantity
	Detail     string `json:"detail"`               // the texts of Facts

	Facts []fact.Fact `json:"facts,omitempty"`
}

// PartFits are fourth-order functions through the four parts of all steps: what all active clients got, and what each
// of them got, against how many there were.
type PartFits struct {
	Total *Fit `json:"total"` // nil: too few parts
	Each  *Fit `json:"each"`
}
