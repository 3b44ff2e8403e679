package hosts

import (
	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
)

// Roles of hosts and of watched processes.
const (
	Client = "client"
	Server = "server"
)

// A Host is a host in one step, with figures that the document does not contain.
type Host struct {
	HostFigure
	Saturated      float64           // share of the time with nearly no idle core; seconds with few idle cores count in part
	UserSystem     *float64          // share of all cores in user and system mode
	Simulated      bool              // the service is part of the clients' process
	Local          bool              // the target is a folder: only the named processes serve it
	unwatched      float64           // share of all cores of programs that were seen but not watched
	Kernel         float64           // share of all cores of threads of the kernel
	SwapGrowth     int64             // from the first second to the last
	IRQ            *float64          // share of all cores in interrupts
	Groups         []GroupFigure     // of the service's processes
	Scratch        *DiskFigure       // nil: its disks hold no copies of files
	spreads        map[string]Ranged // of shares, by resource; of the generator in cores
	UnknownTraffic float64           // bytes per second of the busiest interface without a known speed, but loopback
	UnknownName    string
}

// A GroupFigure is a group of the service's processes in one step.
type GroupFigure struct {
	Name               string
	Cores              Ranged
	Threads, Processes int // maximum
	Measured           int // maximum number of threads with measured CPU time
	Busiest, Other     Ranged
	Allowed            int // cores on which they may run; 0: unknown
}

// keep stores the interval of a resource's share and replaces an earlier interval.
func (h *Host) keep(resource string, s *spread) {
	delete(h.spreads, resource)
	if v, ok := s.interval(); ok {
		h.spreads[resource] = v
	}
}

// Share returns a resource's share with its interval. If there are no samples, it returns mean
// without an interval.
func (h *Host) Share(resource string, mean float64) Ranged {
	if v, ok := h.spreads[resource]; ok {
		return v
	}
	return Ranged{Mean: mean}
}

// Side returns the owner of the host, by its role or by the processes seen there.
func (h *Host) Side() string {
	switch {
	case h.Role == "both" || h.ServerCores != nil && h.ClientCores != nil:
		return "both"
	case h.Role == Server || h.Role == Client:
		return string(h.Role)
	case h.ServerCores != nil:
		return Server
	case h.ClientCores != nil:
		return Client
	}
	return "other"
}

// Serves reports whether the service runs on h, judging by its role.
func (h *Host) Serves() bool { return h.Side() == Server || h.Side() == "both" }

// CoreSide guesses the side that uses the busiest core.
func (h *Host) CoreSide() string {
	if h.Side() != "both" || h.ServerCores == nil || h.ClientCores == nil {
		return h.Side()
	}
	switch {
	case *h.ServerCores >= 0.9 && *h.ClientCores < 0.9:
		return Server
	case *h.ClientCores >= 0.9 && *h.ServerCores < 0.9:
		return Client
	}
	return "both"
}

// May returns the number of cores that the CPU quota allows the clients to use.
func (h *Host) May() float64 {
	if h.Quota > 0 {
		return min(h.Quota, float64(h.Cores))
	}
	return float64(h.Cores)
}

// Others returns the share of h's CPU that programs other than the watched processes used. Threads
// of the kernel, such as the threads of encrypted disks and of NFS servers, do not count: they
// mostly work for the service. ok is false if h has a side whose processes were not watched.
// External programs of jobs count as processes of the clients, and so does a simulated service. A
// folder is served by the clients' own system calls and the kernel, so every other program there
// counts, unless hosts names it.
func (h *Host) Others(external float64) (share float64, ok bool) {
	serves, loads := h.Role == Server || h.Role == "both", h.Role == Client || h.Role == "both"
	unwatched := serves && h.ServerCores == nil && !h.Simulated && (!h.Local || !loads) || loads && h.ClientCores == nil
	if h.UserSystem == nil || h.Cores == 0 || !serves && !loads || unwatched {
		return 0, false
	}
	programs := stats.Ratio(h.programs(external), float64(h.Cores))
	watched := stats.Ratio(basics.Value(h.ServerCores)+basics.Value(h.ClientCores), float64(h.Cores))
	return max(0, *h.UserSystem-watched-programs-h.Kernel, h.unwatched-programs), true
}

// programs returns the number of cores that external client programs kept busy. These are not
// watched processes.
func (h *Host) programs(external float64) float64 {
	if h.Role != Client && h.Role != "both" {
		return 0
	}
	return external
}

// Lost returns the share of h's CPU that unwatched programs used while the CPU was used up.
func (h *Host) Lost(external float64) float64 {
	if h.Contended == nil {
		return 0
	}
	return max(0, *h.Contended-h.Saturated*stats.Ratio(h.programs(external), float64(h.Cores)))
}
