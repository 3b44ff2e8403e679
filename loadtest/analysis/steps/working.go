package steps

import (
	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
)

// Working is a step with further values for its interpretation, which are not in the document.
type Working struct {
	*Figures
	Machines        []hosts.Host // for Figures.Hosts
	ServerByHost    bool         // ServerCPU covers whole hosts, not processes
	LatencySeconds  float64      // summed over the operations that succeeded
	ThinkSeconds    float64
	lateSeconds     float64   // delay of starts after pauses, summed
	BusySeconds     float64   // time of clients in operations, summed; 0: not recorded
	closingSeconds  float64   // time of clients for closing sessions, summed
	ComputeSeconds  float64   // computing time of jobs, summed
	Burned          float64   // cores that jobs kept busy deliberately, by computing
	EachJob         bool      // its tasks are jobs of events
	Programs        bool      // its tasks are programs of the user
	OneByOne        bool      // its jobs request and compute in turn
	Change          float64   // probability that chance explains its drift
	Turn            float64   // difference between its last and its first quarter, as a share of the first
	Creep           creep     // change of its level, per second
	Warmed          float64   // the same for the part cut off from its beginning
	Unequal         bool      // its clients were served unequally
	Bounded         bool      // planned to end after a number of jobs
	Burst           float64   // longest time between bursts of operations, in s; 0: no bursts
	Throttled       float64   // share of periods in which a generator had used up its CPU quota, maximum over its hosts
	ClientMay       float64   // cores that the generator may use, if fewer than its machine has
	TimedStarts     int64     // tasks whose planned start is known
	Means           []float64 // batch means of the quantity by which steps are compared
	ErrorRatioGiven bool      // the table has the error ratio
}

// Document returns the figures of steps for the document.
func Document(all []*Working) []Figures {
	out := make([]Figures, len(all))
	for i, s := range all {
		out[i] = *s.Figures
	}
	return out
}

// External returns the cores that client programs kept busy, which are not watched processes; 0 if
// tasks are programs of the user.
func (s *Working) External() float64 {
	if s.Programs {
		return 0
	}
	return s.ExternalCores
}

// Without returns the part of cores, which all clients kept busy, that remains without the cores
// that their jobs burned deliberately: that is load, not the generator's cost.
func (s *Working) Without(cores float64) float64 {
	return cores * max(0, 1-stats.Ratio(s.Burned, basics.Value(s.ClientCores)))
}

// OwnCPU returns the share of its machines' CPU that the generator itself used.
func (s *Working) OwnCPU() float64 { return s.Without(basics.Value(s.ClientCPU)) }

// BurnedOn returns the number of cores that jobs kept busy on one of the clients' hosts, assuming
// the host's share of all cores that clients use.
func (s *Working) BurnedOn(h *hosts.Host) float64 {
	return s.Burned * stats.Ratio(basics.Value(h.ClientCores), basics.Value(s.ClientCores))
}

// AllClientsBusy reports whether a step of the open model had nearly all its clients at work.
func (s *Working) AllClientsBusy() bool {
	return s.Rate > 0 && s.ActiveClients >= 0.95*float64(s.Clients)
}
