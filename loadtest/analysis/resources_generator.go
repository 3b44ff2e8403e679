package analysis

import (
	"encoding/json"
	"fmt"
	"strings"

	"weir/internal/unit"
	"weir/loadtest/measure"
)

// surroundings is what about.json says of the machine that weir ran on, as far as it limits the generator.
type surroundings struct {
	Cores     int     `json:"cores"`
	CoresUsed int     `json:"cores_used"` // by affinity
	Files     float64 `json:"open_files_soft"`
	PortLow   int     `json:"ephemeral_port_low"`
	PortHigh  int     `json:"ephemeral_port_high"`
}

// surroundings returns the zero value where the run does not tell.
func (d *data) surroundings() (s surroundings) {
	if json.Unmarshal(d.about.Environment, &s) != nil {
		return surroundings{}
	}
	return s
}

// generators returns the hosts on which clients were seen to run.
func generators(s *Step) (all []*HostFigure) {
	for i := range s.Hosts {
		if s.Hosts[i].ClientCores != nil {
			all = append(all, &s.Hosts[i])
		}
	}
	return all
}

// burnedOn is how many cores jobs kept busy on one of the clients' hosts, which has its part of them as of all that
// clients use.
func (s *Step) burnedOn(h *HostFigure) float64 {
	return s.burned * ratio(value(h.ClientCores), value(s.ClientCores))
}

// generatorUses is what the load generator used of what it may. Whether it is used up is judged as the check of the
// generator does.
func (d *data) generatorUses(s *Step) []ResourceUsage {
	var all []ResourceUsage
	hosts, here := generators(s), d.surroundings()
	if len(hosts) == 1 && here.Cores == hosts[0].Cores && here.CoresUsed > 0 && here.CoresUsed < here.Cores {
		s.clientMay = float64(here.CoresUsed)
	}
	quota, cores := 0.0, 0.0
	for _, h := range hosts {
		s.throttled = max(s.throttled, value(h.Throttled))
		cores += float64(h.Cores)
		quota += h.may()
	}
	if quota < cores && (s.clientMay == 0 || quota < s.clientMay) {
		s.clientMay = quota
	}
	status, reasons := judge(s)
	for _, h := range hosts {
		s.narrow(h)
		s.quotaUsedUp(h)
		if h.Cores == 0 || s.programs {
			continue
		}
		allowed, of := float64(h.Cores), "cores"
		if h.may() < allowed {
			allowed, of = h.may(), fmt.Sprintf("cores of its CPU quota, of %d", h.Cores)
		} else if s.clientMay > 0 && len(hosts) == 1 {
			allowed, of = s.clientMay, fmt.Sprintf("cores it may use, of %d", h.Cores)
		}
		own := s.without(*h.ClientCores)
		v := h.share(ResourceGenerator, *h.ClientCores)
		v.mean = *h.ClientCores
		u := use(ResourceGenerator, h, v.times(ratio(own, allowed*max(1e-9, *h.ClientCores))), "it used %.2f of %.3g %s", own, allowed, of)
		u.Side = client
		if s.burned > 0 {
			u.Detail += fmt.Sprintf(", in addition to %.2f that its jobs burned on purpose", s.burnedOn(h))
		}
		if s.LateP99 != nil && s.timedStarts*timed >= s.Done && s.burned == 0 {
			u.Detail += fmt.Sprintf(", %s late by %s (p99)", map[bool]string{true: "computing ended", false: "starts were"}[s.eachJob],
				unit.Seconds(*s.LateP99))
		}
		u.reached = u.reached || status == Fail && *u.Share < generatorFail || // it is late, or misses starts
			value(h.Throttled) >= throttledFail && h.ServerCores == nil
		u.holds = u.holds || status == Fail || status == Warn
		u.clear = u.clear && status == OK
		if status == Fail && *u.Share < generatorFail {
			u.Detail += "; it " + strings.Join(reasons, ", ")
		}
		all = append(all, u)
	}
	met := d.exhausted(s, hosts)
	if len(hosts) == 1 && len(met) == 0 {
		met = tableUses(hosts[0], here)
	}
	return append(all, met...)
}

// may returns how many cores the CPU quota of the clients leaves them.
func (h *HostFigure) may() float64 {
	if h.Quota > 0 {
		return min(h.Quota, float64(h.Cores))
	}
	return float64(h.Cores)
}

// quotaUsedUp sets the use of the CPU to the share of the quota that clients and service used together, where that was used up and not
// by the clients alone: the load of all cores is no measure of it.
func (s *Step) quotaUsedUp(h *HostFigure) {
	own, both := *h.ClientCores, *h.ClientCores+value(h.ServerCores)
	if value(h.Throttled) < throttledFail || h.ServerCores == nil || own >= generatorFail*h.Quota ||
		both < boundOf(ResourceCPU).reached*h.Quota {
		return
	}
	for u := range each(s.Resources) {
		if u.Resource == ResourceCPU && u.Host == h.Host {
			*u = use(ResourceCPU, h, ranged{mean: min(1, both/h.Quota)},
				"clients and service used %.2f of the %.3g cores that the CPU quota of control group %s allows; of the whole machine %s",
				both, h.Quota, h.QuotaGroup, u.Detail)
			u.own = *u.Share
		}
	}
}

// narrow tells how full the cores are that jobs may burn, where those are fewer than the host has: how busy all cores
// are says little then. Several processes may have more cores together than one of them reports; then the number is unknown.
func (s *Step) narrow(h *HostFigure) {
	const several = 1.1
	share := ratio(*h.ClientCores, s.clientMay)
	if s.burned == 0 || share > several {
		return
	}
	for u := range each(s.Resources) {
		if u.Resource == ResourceCPU && u.Host == h.Host && share > shareOf(u.Share) {
			*u = use(ResourceCPU, h, h.share(ResourceGenerator, *h.ClientCores).times(ratio(1, s.clientMay)),
				"clients used %.2f of the %.3g cores they may use; of the whole machine %s", *h.ClientCores, s.clientMay, u.Detail)
			u.Side, u.own = client, share
		}
	}
}

// tableUses is of what the kernel allows the generator to have at a time.
func tableUses(h *HostFigure, here surroundings) []ResourceUsage {
	var all []ResourceUsage
	if here.Files > 0 && h.ClientFiles > 0 {
		u := use(ResourceFiles, h, ranged{mean: ratio(float64(h.ClientFiles), here.Files)},
			"the generator had %d files and sockets open, of at most %.0f", h.ClientFiles, here.Files)
		u.Side = client
		all = append(all, u)
	}
	if ports := here.PortHigh - here.PortLow + 1; here.PortLow > 0 && ports > 1 && h.Connections > 0 && h.side() == client {
		all = append(all, use(ResourcePorts, h, ranged{mean: ratio(h.Connections, float64(ports))},
			"%.0f connections of at most %d to one address and port", h.Connections, ports))
	}
	return all
}

// exhausted reports on limits of the generator's machine that errors name. An error is recorded when it is seen first;
// from then on the limit is met.
func (d *data) exhausted(s *Step, hosts []*HostFigure) []ResourceUsage {
	host := ""
	if len(hosts) == 1 {
		host = hosts[0].Host
	}
	met := map[string]bool{}
	var all []ResourceUsage
	for _, e := range d.events {
		resource := ranOut(e.Text)
		if e.Kind == measure.EventError && e.Step > 0 && e.Step <= s.Step && resource != "" && !met[resource] && s.Errors > 0 {
			met[resource] = true
			all = append(all, metLimit(resource, host, e))
		}
	}
	return all
}

// ranOut returns what the generator's machine had no more of when an error came of that, "" for all other errors.
func ranOut(text string) string {
	switch {
	case strings.Contains(text, "socket: too many open files"):
		return ResourceFiles
	case strings.Contains(text, "cannot assign requested address"):
		return ResourcePorts
	}
	return ""
}

func metLimit(resource, host string, e *measure.Event) ResourceUsage {
	one := 1.0
	return ResourceUsage{Resource: resource, Host: host, Side: client, Share: &one, Low: &one, High: &one, reached: true, holds: true,
		Detail: fmt.Sprintf("operations failed in step %d and since: %.200s", e.Step, strings.TrimSpace(e.Text))}
}
