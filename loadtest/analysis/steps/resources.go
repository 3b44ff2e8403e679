package steps

import "weir/loadtest/analysis/fact"

// A ResourceUsage is the use of one resource in one step.
type ResourceUsage struct {
	Resource  string   `json:"resource"` // ResourceCPU or another resource
	Host      string   `json:"host"`
	Side      string   `json:"side"`      // "server", "client", "both", "other"
	Share     *float64 `json:"use_ratio"` // share of its capacity; nil: the capacity is unknown
	Low       *float64 `json:"use_low"`   // 95% interval of Share over the step's samples; nil with Share
	High      *float64 `json:"use_high"`
	Saturated bool     `json:"saturated"` // used up at this load and at all heavier loads
	Undecided bool     `json:"undecided"` // saturation unknown: the interval extends from one bound to the other
	Detail    string   `json:"detail"`    // in numbers, with units: the texts of Facts

	Facts []fact.Fact `json:"-"`
}

// A BackendFigure has the means of one backend in the measurement time of one step. Bytes are
// payload per second; nil is unknown.
type BackendFigure struct {
	Name        string   `json:"name"`
	Throughput  *float64 `json:"throughput_bytes_per_second"` // by Balance.Source
	Share       float64  `json:"share"`
	Clients     *float64 `json:"clients_bytes_per_second"`
	Log         *float64 `json:"transfer_log_bytes_per_second"`
	Interface   *float64 `json:"interface_bytes_per_second"`
	Service     *float64 `json:"service_bytes_per_second"`
	Balancer    *float64 `json:"balancer_bytes_per_second"`
	Operations  *float64 `json:"operations_per_second"` // that succeeded for clients
	Errors      int64    `json:"errors"`                // errors of clients
	Sessions    *float64 `json:"sessions"`              // at once
	SessionRate *float64 `json:"sessions_per_second"`   // sessions that began
	Queue       *float64 `json:"queue"`                 // waiting sessions
	Limit       int      `json:"session_limit,omitempty"`
	Weight      int      `json:"weight,omitempty"` // the balancer's setting
	Status      string   `json:"status,omitempty"` // as the balancer reports it
	Transfers   *float64 `json:"transfers"`        // running transfers, by its log
	CPU         *float64 `json:"cpu_busy"`         // share of its machine's cores
	Cores       *float64 `json:"cpu_cores"`        // used by its own processes
	Network     *float64 `json:"network_share"`    // of its interface's speed, the busier direction
}

// A StepBalance describes how evenly the backends shared the load of one step.
type StepBalance struct {
	Sum       float64 `json:"sum_bytes_per_second"` // of all backends; 0 if only sessions are known
	Imbalance float64 `json:"imbalance"`            // largest over mean; with weights, of shares over weights
	Variation float64 `json:"variation"`            // standard deviation over mean, the same
	Choices   int64   `json:"choices"`              // number of choices of a backend
	ByChance  float64 `json:"imbalance_by_chance"`  // average for that number of random choices
	Mostly    float64 `json:"imbalance_by_chance_p95"`
}
