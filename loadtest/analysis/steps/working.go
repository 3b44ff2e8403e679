package steps

import (
	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
)

// Working is a step with the values by which it is judged, which are not in the document.
type Working struct {
	*Figures
	Machines        []hosts.Host // as Figures.Hosts
	ServerByHost    bool         // ServerCPU is of whole hosts, not of processes
	LatencySeconds  float64      // summed over operations done
	ThinkSeconds    float64
	lateSeconds     float64   // by which starts after pauses were late, summed
	BusySeconds     float64   // that clients were in operations, summed; 0: not recorded
	closingSeconds  float64   // that clients took to close sessions, summed
	ComputeSeconds  float64   // that jobs computed, summed
	Burned          float64   // cores that jobs kept busy on purpose, by computing
	EachJob         bool      // its tasks are jobs of events
	Programs        bool      // its tasks are programs of the user's
	OneByOne        bool      // its jobs request and compute in turn
	Change          float64   // how likely its drift is by chance
	Turn            float64   // by how much its last quarter differs from its first, as a share of the latter
	Creep           creep     // how its level changed, by the second
	Warmed          float64   // the same of the part cut off from its beginning
	Unequal         bool      // its clients were served unequally
	Bounded         bool      // it was to end with the last of so many jobs
	Burst           float64   // s from one burst of operations to the next, at most; 0: it does not work in bursts
	Throttled       float64   // share of periods in which a generator had used up its CPU quota, the largest of its hosts
	ClientMay       float64   // cores that the generator may use, where that is fewer than its machine has
	TimedStarts     int64     // tasks whose planned start was known
	Means           []float64 // batch means of the quantity by which steps are compared
	ErrorRatioGiven bool      // the table has the error ratio
}

// Document returns the figures of steps, as the document has them.
func Document(all []*Working) []Figures {
	out := make([]Figures, len(all))
	for i, s := range all {
		out[i] = *s.Figures
	}
	return out
}

// External returns the cores that client programs kept busy, which are no watched processes; 0 where tasks are programs of the user's.
func (s *Working) External() float64 {
	if s.Programs {
		return 0
	}
	return s.ExternalCores
}

// Without returns what is left of cores that all clients kept busy when what their jobs burned on purpose is taken
// off: that is load, not the generator's cost.
func (s *Working) Without(cores float64) float64 {
	return cores * max(0, 1-stats.Ratio(s.Burned, basics.Value(s.ClientCores)))
}

// OwnCPU is the share of its machines' CPU that the generator itself used.
func (s *Working) OwnCPU() float64 { return s.Without(basics.Value(s.ClientCPU)) }

// BurnedOn returns the number of cores that jobs kept busy on one of the clients' hosts, which has its part of them as of all that
// clients use.
func (s *Working) BurnedOn(h *hosts.Host) float64 {
	return s.Burned * stats.Ratio(basics.Value(h.ClientCores), basics.Value(s.ClientCores))
}

// AllClientsBusy reports whether a step of the open model had all its clients at work nearly all the time.
func (s *Working) AllClientsBusy() bool {
	return s.Rate > 0 && s.ActiveClients >= 0.95*float64(s.Clients)
}
