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

// A Host is a host in one step, with figures that the document leaves out.
type Host struct {
	HostFigure
	Saturated      float64           // share of the time in which nearly no core was idle, seconds with few idle cores in part
	UserSystem     *float64          // share of all cores in user and system mode
	Simulated      bool              // the service is a part of the clients' process
	Local          bool              // the target is a folder: no process serves it but those that are named
	unwatched      float64           // share of all cores of programs that were seen and not watched
	Kernel         float64           // share of all cores of threads of the kernel
	SwapGrowth     int64             // from the first second to the last
	IRQ            *float64          // share of all cores in interrupts
	Groups         []GroupFigure     // of the service's processes
	Scratch        *DiskFigure       // nil: no copies of files lie on its disks
	spreads        map[string]Ranged // of shares, by resource; of the generator in cores
	UnknownTraffic float64           // bytes per second of the busiest interface without a known speed, but loopback
	UnknownName    string
}

// A GroupFigure is a group of the service's processes in one step.
type GroupFigure struct {
	Name               string
	Cores              Ranged
	Threads, Processes int // most seen
	Measured           int // threads whose CPU time was measured, most seen; 0: none
	Busiest, Other     Ranged
	Allowed            int // cores on which they may run; 0: not known
}

// keep notes the interval of a resource's share; what was noted before is dropped.
func (h *Host) keep(resource string, s *spread) {
	delete(h.spreads, resource)
	if v, ok := s.interval(); ok {
		h.spreads[resource] = v
	}
}

// Share returns a resource's share with its interval: mean itself, without an interval, where there are no samples.
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

// CoreSide guesses whose core it is.
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

// May returns how many cores the CPU quota of the clients leaves them.
func (h *Host) May() float64 {
	if h.Quota > 0 {
		return min(h.Quota, float64(h.Cores))
	}
	return float64(h.Cores)
}

// Others returns the share of h's CPU that programs used which are no watched process; what threads of the kernel did, such as those of
// encrypted disks and of NFS servers, they mostly did for the service. ok is false where the processes of a side that h
// has were not watched. Of jobs that are programs these count among the clients' processes, as does a simulated service. A folder is
// served by the clients' own system calls and the kernel: every program beside them is another one, unless hosts name it.
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

// programs returns the cores that external client programs kept busy, which are no watched processes.
func (h *Host) programs(external float64) float64 {
	if h.Role != Client && h.Role != "both" {
		return 0
	}
	return external
}

// Lost returns the share of h's CPU that others used while it was used up.
func (h *Host) Lost(external float64) float64 {
	if h.Contended == nil {
		return 0
	}
	return max(0, *h.Contended-h.Saturated*stats.Ratio(h.programs(external), float64(h.Cores)))
}
