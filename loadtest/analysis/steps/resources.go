package steps

import "weir/loadtest/analysis/fact"

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
	Detail    string   `json:"detail"`    // in numbers, with units: the texts of Facts

	Facts []fact.Fact `json:"-"`
}

// A BackendFigure is one backend in the measurement time of one step. Bytes are payload per second; nil is unknown.
type BackendFigure struct {
	Name        string   `json:"name"`
	Throughput  *float64 `json:"throughput_bytes_per_second"` // by Balance.Source
	Share       float64  `json:"share"`
	Clients     *float64 `json:"clients_bytes_per_second"`
	Log         *float64 `json:"transfer_log_bytes_per_second"`
	Interface   *float64 `json:"interface_bytes_per_second"`
	Service     *float64 `json:"service_bytes_per_second"`
	Balancer    *float64 `json:"balancer_bytes_per_second"`
	Operations  *float64 `json:"operations_per_second"` // that clients saw to end well
	Errors      int64    `json:"errors"`                // that clients saw
	Sessions    *float64 `json:"sessions"`              // at once
	SessionRate *float64 `json:"sessions_per_second"`   // that began
	Queue       *float64 `json:"queue"`                 // sessions that waited for it
	Limit       int      `json:"session_limit,omitempty"`
	Weight      int      `json:"weight,omitempty"` // as the balancer has it
	Status      string   `json:"status,omitempty"` // the balancer's word
	Transfers   *float64 `json:"transfers"`        // that ran, by its log
	CPU         *float64 `json:"cpu_busy"`         // share of its machine's cores
	Cores       *float64 `json:"cpu_cores"`        // that its own processes used
	Network     *float64 `json:"network_share"`    // of its interface's speed, the tighter way
}

// A StepBalance is how evenly the backends shared one step.
type StepBalance struct {
	Sum       float64 `json:"sum_bytes_per_second"` // of all backends; 0 where sessions are all that is known
	Imbalance float64 `json:"imbalance"`            // largest over mean; with weights, of shares over weights
	Variation float64 `json:"variation"`            // standard deviation over mean, the same
	Choices   int64   `json:"choices"`              // how often a backend was chosen
	ByChance  float64 `json:"imbalance_by_chance"`  // what that many random choices give on average
	Mostly    float64 `json:"imbalance_by_chance_p95"`
}
