package analysis

import (
	"encoding/json"
	"fmt"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/measure"
)

// surroundings is what about.json says of the machine that weir ran on, as far as it limits the generator.
type surroundings struct {
	Cores     int     `json:"cores"`
	CoresUsed int     `json:"cores_used"` // by affinity and the control group's quota
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
	status, reasons := judge(s)
	for _, h := range hosts {
		s.narrow(h)
		if h.Cores == 0 || s.programs {
			continue
		}
		allowed, of := float64(h.Cores), "cores"
		if s.clientMay > 0 {
			allowed, of = s.clientMay, fmt.Sprintf("cores it may use, of %d", h.Cores)
		}
		own := s.without(*h.ClientCores)
		v := h.share(ResourceGenerator, *h.ClientCores)
		v.mean = *h.ClientCores
		u := use(ResourceGenerator, h, v.times(ratio(own, allowed*max(1e-9, *h.ClientCores))), "it used %.2f of %.0f %s", own, allowed, of)
		u.Side = client
		if s.burned > 0 {
			u.Detail += fmt.Sprintf(", in addition to %.2f that its jobs burned on purpose", s.burnedOn(h))
		}
		if s.LateP99 != nil && s.timedStarts*timed >= s.Done && s.burned == 0 {
			u.Detail += fmt.Sprintf(", %s late by %s (p99)", map[bool]string{true: "computing ended", false: "starts were"}[s.eachJob],
				unit.Seconds(*s.LateP99))
		}
		u.reached = u.reached || status == Fail && *u.Share < generatorFail // it is late, or misses starts
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
				"clients used %.2f of the %s they may use; of the whole machine %s", *h.ClientCores, say.Plural(int(s.clientMay), "core"), u.Detail)
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
