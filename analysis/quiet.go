package analysis

import (
	"fmt"

	"weir/internal/unit"
)

// Bounds of the check whether the machines were left to the test.
const (
	othersWarn = 0.2  // share of a machine's CPU that neither side's processes used
	stealWarn  = 0.05 // share that other guests of the hypervisor took
)

// checkQuiet asks whether anything else used the CPU of the watched hosts
// while the load was held. It needs hosts of which all sides' processes were
// watched. Time in interrupts belongs to no process and is left out.
func checkQuiet(f *Findings) Check {
	c := Check{Name: "quiet machines", Status: Skipped, Detail: "no host was watched together with the processes under test"}
	var others, steal float64
	var where, whom string
	for i := range f.Curve {
		s := &f.Curve[i]
		for k := range s.Hosts {
			h := &s.Hosts[k]
			share, ok := h.others(s)
			if !ok {
				continue
			}
			if c.Status == Skipped || share > others {
				others, where, whom = share, f.at(s), h.Host
			}
			steal = max(steal, value(h.Steal))
			c.Status = OK
		}
	}
	if c.Status == Skipped {
		return c
	}
	c.Detail = fmt.Sprintf("other programs used at most %s of the CPU of %s (%s), other guests of its hypervisor %s", unit.Percent(others), whom, where, unit.Percent(steal))
	if others > othersWarn || steal > stealWarn {
		c.Status = Warn
		c.Detail += ": what is measured is what they left"
	}
	return c
}

// others returns the share of h's CPU that no watched process used; ok is
// false where the processes of a side that h has were not watched. Of
// jobs that are programs these count among the clients' processes.
func (h *HostFigure) others(s *Step) (share float64, ok bool) {
	serves, loads := h.Role == server || h.Role == "both", h.Role == client || h.Role == "both"
	if h.userSystem == nil || h.Cores == 0 || !serves && !loads || serves && h.ServerCores == nil || loads && h.ClientCores == nil {
		return 0, false
	}
	used := value(h.ServerCores) + value(h.ClientCores)
	if loads && !s.programs {
		used += s.ExternalCores
	}
	return max(0, *h.userSystem-ratio(used, float64(h.Cores))), true
}
