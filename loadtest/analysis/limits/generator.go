package limits

import (
	"encoding/json"
	"fmt"
	"strings"

	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
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

// surroundingsOf returns the zero value if the run does not have them.
func surroundingsOf(d *steps.Run) (s surroundings) {
	if json.Unmarshal(d.About.Environment, &s) != nil {
		return surroundings{}
	}
	return s
}

// generatorUses is what the load generator used of what it may. Whether it is used up is judged as the check of the
// generator does; before are the other uses of the step, of which that of its CPU may be replaced.
func generatorUses(d *steps.Run, s *steps.Working, before []usage) []usage {
	var all []usage
	machines, here := generators(s), surroundingsOf(d)
	if len(machines) == 1 && here.Cores == machines[0].Cores && here.CoresUsed > 0 && here.CoresUsed < here.Cores {
		s.ClientMay = float64(here.CoresUsed)
	}
	quota, cores := 0.0, 0.0
	for _, h := range machines {
		s.Throttled = max(s.Throttled, basics.Value(h.Throttled))
		cores += float64(h.Cores)
		quota += h.May()
	}
	if quota < cores && (s.ClientMay == 0 || quota < s.ClientMay) {
		s.ClientMay = quota
	}
	status, reasons := JudgeGenerator(s)
	for _, h := range machines {
		narrow(s, h, before)
		quotaUsedUp(h, before)
		if h.Cores == 0 || s.Programs {
			continue
		}
		allowed, of := float64(h.Cores), "cores"
		if h.May() < allowed {
			allowed, of = h.May(), fmt.Sprintf("cores of its CPU quota, of %d", h.Cores)
		} else if s.ClientMay > 0 && len(machines) == 1 {
			allowed, of = s.ClientMay, fmt.Sprintf("cores it may use, of %d", h.Cores)
		}
		own := s.Without(*h.ClientCores)
		v := h.Share(hosts.ResourceGenerator, *h.ClientCores)
		v.Mean = *h.ClientCores
		u := use(hosts.ResourceGenerator, h, v.Times(stats.Ratio(own, allowed*max(1e-9, *h.ClientCores))), "it used %.2f of %.3g %s",
			own, allowed, of)
		u.Side = hosts.Client
		if s.Burned > 0 {
			u.Detail += fmt.Sprintf(", in addition to %.2f that its jobs burned on purpose", s.BurnedOn(h))
		}
		if s.LateP99 != nil && s.TimedStarts*Timed >= s.Done && s.Burned == 0 {
			u.Detail += fmt.Sprintf(", %s late by %s (p99)", map[bool]string{true: "computing ended", false: "starts were"}[s.EachJob],
				unit.Seconds(*s.LateP99))
		}
		u.reached = u.reached || status == GeneratorFull && *u.Share < generatorFail || // it is late, or misses starts
			basics.Value(h.Throttled) >= throttledFail && h.ServerCores == nil
		u.holds = u.holds || status == GeneratorFull || status == GeneratorNear
		u.clear = u.clear && status == GeneratorFree
		if status == GeneratorFull && *u.Share < generatorFail {
			u.Detail += "; it " + strings.Join(reasons, ", ")
		}
		all = append(all, u)
	}
	met := exhausted(d, s, machines)
	if len(machines) == 1 && len(met) == 0 {
		met = tableUses(machines[0], here)
	}
	return append(all, met...)
}

// quotaUsedUp sets the use of the CPU to the share of the quota that clients and service used together, where that was used up and not
// by the clients alone: the load of all cores is no measure of it.
func quotaUsedUp(h *hosts.Host, uses []usage) {
	own, both := *h.ClientCores, *h.ClientCores+basics.Value(h.ServerCores)
	if basics.Value(h.Throttled) < throttledFail || h.ServerCores == nil || own >= generatorFail*h.Quota ||
		both < boundOf(hosts.ResourceCPU).reached*h.Quota {
		return
	}
	for u := range basics.Each(uses) {
		if u.Resource == hosts.ResourceCPU && u.Host == h.Host {
			*u = use(hosts.ResourceCPU, h, hosts.Ranged{Mean: min(1, both/h.Quota)},
				"clients and service used %.2f of the %.3g cores that the CPU quota of control group %s allows; of the whole machine %s",
				both, h.Quota, h.QuotaGroup, u.Detail)
			u.own = *u.Share
		}
	}
}

// narrow tells how full the cores are that jobs may burn, where those are fewer than the host has: how busy all cores
// are says little then. Several processes may have more cores together than one of them reports; then the number is unknown.
func narrow(s *steps.Working, h *hosts.Host, uses []usage) {
	const several = 1.1
	share := stats.Ratio(*h.ClientCores, s.ClientMay)
	if s.Burned == 0 || share > several {
		return
	}
	for u := range basics.Each(uses) {
		if u.Resource == hosts.ResourceCPU && u.Host == h.Host && share > shareOf(u.Share) {
			*u = use(hosts.ResourceCPU, h, h.Share(hosts.ResourceGenerator, *h.ClientCores).Times(stats.Ratio(1, s.ClientMay)),
				"clients used %.2f of the %.3g cores they may use; of the whole machine %s", *h.ClientCores, s.ClientMay, u.Detail)
			u.Side, u.own = hosts.Client, share
		}
	}
}

// tableUses is of what the kernel allows the generator to have at a time.
func tableUses(h *hosts.Host, here surroundings) []usage {
	var all []usage
	if here.Files > 0 && h.ClientFiles > 0 {
		u := use(hosts.ResourceFiles, h, hosts.Ranged{Mean: stats.Ratio(float64(h.ClientFiles), here.Files)},
			"the generator had %d files and sockets open, of at most %.0f", h.ClientFiles, here.Files)
		u.Side = hosts.Client
		all = append(all, u)
	}
	if ports := here.PortHigh - here.PortLow + 1; here.PortLow > 0 && ports > 1 && h.Connections > 0 && h.Side() == hosts.Client {
		all = append(all, use(hosts.ResourcePorts, h, hosts.Ranged{Mean: stats.Ratio(h.Connections, float64(ports))},
			"%.0f connections of at most %d to one address and port", h.Connections, ports))
	}
	return all
}

// exhausted reports on limits of the generator's machine that errors name. An error is recorded when it is seen first;
// from then on the limit is met.
func exhausted(d *steps.Run, s *steps.Working, hosts []*hosts.Host) []usage {
	host := ""
	if len(hosts) == 1 {
		host = hosts[0].Host
	}
	met := map[string]bool{}
	var all []usage
	for _, e := range d.Events {
		resource := RanOut(e.Text)
		if e.Kind == measure.EventError && e.Step > 0 && e.Step <= s.Step && resource != "" && !met[resource] && s.Errors > 0 {
			met[resource] = true
			all = append(all, metLimit(resource, host, e))
		}
	}
	return all
}

// RanOut returns the resource whose exhaustion on the generator's machine caused an error, "" for all other errors.
func RanOut(text string) string {
	switch {
	case strings.Contains(text, "socket: too many open files"):
		return hosts.ResourceFiles
	case strings.Contains(text, "cannot assign requested address"):
		return hosts.ResourcePorts
	}
	return ""
}

func metLimit(resource, host string, e *measure.Event) usage {
	one := 1.0
	return usage{ResourceUsage: &steps.ResourceUsage{Resource: resource, Host: host, Side: hosts.Client, Share: &one, Low: &one, High: &one,
		Detail: fmt.Sprintf("operations failed in step %d and since: %.200s", e.Step, strings.TrimSpace(e.Text))}, reached: true, holds: true}
}
