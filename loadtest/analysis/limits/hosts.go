package limits

import (
	"cmp"
	"slices"
	"strings"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
	"weir/monitor"
	"weir/storage"
)

// Hosts fills in the hosts of a step, and the CPU that both sides used.
func Hosts(d *steps.Run, w *hosts.Watched, s *steps.Working) {
	s.Machines, s.Hosts = w.Figures(s.Step), []hosts.HostFigure{}
	for f := range basics.Each(s.Machines) {
		f.Simulated, f.Local = d.Plan.Driver == storage.Simulated, d.Plan.Driver == storage.Local
		if f.Link != nil {
			f.Link.Over = d.Plan.Links.Over(strings.TrimPrefix(f.Host, "link "))
		}
		s.Hosts = append(s.Hosts, f.HostFigure)
		if f.Scratch != nil && s.Jobs != nil {
			s.ScratchDisks = append(s.ScratchDisks, *f.Scratch)
		}
	}
	slices.SortFunc(s.ScratchDisks, func(a, b hosts.DiskFigure) int {
		return cmp.Or(cmp.Compare(basics.Value(b.Busy), basics.Value(a.Busy)), cmp.Compare(a.Host, b.Host))
	})
	if len(s.ScratchDisks) > 0 {
		s.Scratch = &s.ScratchDisks[0]
	}
	hosts.ShareServers(s.Hosts)
	s.ServerCores, s.ServerCPU, s.ServerByHost = sideCPU(s.Hosts, hosts.Server, func(h *hosts.HostFigure) *float64 { return h.ServerCores })
	s.ServerEach = serverEach(s)
	s.ClientCores, s.ClientCPU, _ = sideCPU(s.Hosts, hosts.Client, func(h *hosts.HostFigure) *float64 { return h.ClientCores })
}

// serverEach returns the service's CPU time for each operation that succeeded: the time of its
// watched processes, or the time in the statistics of its servers if that is more, as some
// processes may be watched late or not at all.
func serverEach(s *steps.Working) *float64 {
	cores, reported := s.ServerCores, 0.0
	for h := range basics.Each(s.Hosts) {
		if h.Service != nil {
			reported += h.Service.Cores
		}
	}
	if s.ServerByHost {
		cores = nil // other programs are in it
	}
	if cores == nil && reported == 0 || s.Operations <= 0 {
		return nil
	}
	spent := max(basics.Value(cores), reported) / s.Operations
	return &spent
}

// sideCPU returns the number of cores that one side used and their share of its hosts' cores: from
// the watched processes if there are any, otherwise from whole hosts that have only this role. The
// share is also computed from whole hosts if the number of cores of the processes' hosts is
// unknown.
func sideCPU(figures []hosts.HostFigure, role monitor.Role, procs func(*hosts.HostFigure) *float64) (cores, share *float64, byHost bool) {
	sum := func(of func(*hosts.HostFigure) *float64) (cores, share *float64) {
		var used, all float64
		found, known := false, true
		for h := range basics.Each(figures) {
			if c := of(h); c != nil {
				used, all, found = used+*c, all+float64(h.Cores), true
				known = known && h.Cores > 0
			}
		}
		switch {
		case !found:
			return nil, nil
		case all <= 0 || !known:
			return &used, nil
		}
		return &used, new(min(1, stats.Ratio(used, all)))
	}
	if cores, share = sum(procs); share != nil {
		return cores, share, false
	}
	whole, of := sum(func(h *hosts.HostFigure) *float64 {
		if h.Role != role || h.CPU == nil {
			return nil
		}
		return new(*h.CPU * max(1, float64(h.Cores)))
	})
	if of == nil && cores != nil {
		return cores, nil, false
	}
	return whole, of, true
}

// generators returns the hosts on which clients ran.
func generators(s *steps.Working) (all []*hosts.Host) {
	for h := range basics.Each(s.Machines) {
		if h.ClientCores != nil {
			all = append(all, h)
		}
	}
	return all
}
