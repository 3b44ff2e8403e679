package limits

import (
	"encoding/json"
	"fmt"
	"strings"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
)

// surroundings are the properties of the machine of weir that limit the generator, from about.json.
type surroundings struct {
	Cores     int     `json:"cores"`
	CoresUsed int     `json:"cores_used"` // by affinity
	Files     float64 `json:"open_files_soft"`
	PortLow   int     `json:"ephemeral_port_low"`
	PortHigh  int     `json:"ephemeral_port_high"`
}

// surroundingsOf returns the properties that the run recorded, or the zero value.
func surroundingsOf(d *steps.Run) (s surroundings) {
	if json.Unmarshal(d.About.Environment, &s) != nil {
		return surroundings{}
	}
	return s
}

// generatorUses returns the load generator's use of the resources that it may use. Their exhaustion
// is judged in the same way as in the check of the generator; before are the other uses of the
// step, of which the use of the generator's CPU may be replaced.
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
	status, reasons := GeneratorFacts(s)
	for _, h := range machines {
		narrow(s, h, before)
		quotaUsedUp(h, before)
		if h.Cores == 0 || s.Programs {
			continue
		}
		u := generatorUse(s, h, len(machines) == 1)
		u.reached = u.reached || status == GeneratorFull && *u.Share < generatorFail || // it is late, or misses starts
			basics.Value(h.Throttled) >= throttledFail && h.ServerCores == nil
		u.holds = u.holds || status == GeneratorFull || status == GeneratorNear
		u.clear = u.clear && status == GeneratorFree
		if status == GeneratorFull && *u.Share < generatorFail {
			u.addFact("limit.use.generator.reasons", "reasons", strings.Join(fact.Texts(reasons), ", "))
		}
		all = append(all, u)
	}
	met := exhausted(d, s, machines)
	if len(machines) == 1 && len(met) == 0 {
		met = tableUses(machines[0], here)
	}
	return append(all, met...)
}

// generatorUse returns the generator's use of one machine's CPU. alone is true if the generator has
// no other machine.
func generatorUse(s *steps.Working, h *hosts.Host, alone bool) usage {
	own, allowed := s.Without(*h.ClientCores), float64(h.Cores)
	used := fact.New("limit.use.generator", "used", own, "allowed", allowed)
	if h.May() < allowed {
		allowed = h.May()
		used = fact.New("limit.use.generator.quota", "used", own, "allowed", allowed, "cores", h.Cores)
	} else if s.ClientMay > 0 && alone {
		allowed = s.ClientMay
		used = fact.New("limit.use.generator.affinity", "used", own, "allowed", allowed, "cores", h.Cores)
	}
	v := h.Share(hosts.ResourceGenerator, *h.ClientCores)
	v.Mean = *h.ClientCores
	u := use(hosts.ResourceGenerator, h, v.Times(stats.Ratio(own, allowed*max(1e-9, *h.ClientCores))), used)
	u.Side = hosts.Client
	timed := s.LateP99 != nil && s.TimedStarts*Timed >= s.Done
	switch {
	case s.Burned > 0:
		u.addFact("limit.use.generator.jobs", "burned", s.BurnedOn(h))
	case timed && s.EachJob:
		u.addFact("limit.use.generator.computing", "late", *s.LateP99)
	case timed:
		u.addFact("limit.use.generator.late", "late", *s.LateP99)
	}
	return u
}

// quotaUsedUp sets the use of the CPU to the share of the quota that clients and service used
// together, if the quota was used up and not by the clients alone: the load of all cores is then
// not a measure of it.
func quotaUsedUp(h *hosts.Host, uses []usage) {
	own, both := *h.ClientCores, *h.ClientCores+basics.Value(h.ServerCores)
	if basics.Value(h.Throttled) < throttledFail || h.ServerCores == nil || own >= generatorFail*h.Quota ||
		both < boundOf(hosts.ResourceCPU).reached*h.Quota {
		return
	}
	for u := range basics.Each(uses) {
		if u.Resource == hosts.ResourceCPU && u.Host == h.Host {
			*u = use(hosts.ResourceCPU, h, hosts.Ranged{Mean: min(1, both/h.Quota)},
				fact.New("limit.use.cpu.quota", "used", both, "allowed", h.Quota, "group", h.QuotaGroup, "machine", u.Detail))
			u.own = *u.Share
		}
	}
}

// narrow sets the use of the CPU to the use of the cores on which jobs may burn, if they are fewer
// than the cores of the host: the load of all cores is then not a useful measure. Several processes
// may have more cores together than any of them reports; then the number is unknown.
func narrow(s *steps.Working, h *hosts.Host, uses []usage) {
	const several = 1.1
	share := stats.Ratio(*h.ClientCores, s.ClientMay)
	if s.Burned == 0 || share > several {
		return
	}
	for u := range basics.Each(uses) {
		if u.Resource == hosts.ResourceCPU && u.Host == h.Host && share > shareOf(u.Share) {
			*u = use(hosts.ResourceCPU, h, h.Share(hosts.ResourceGenerator, *h.ClientCores).Times(stats.Ratio(1, s.ClientMay)),
				fact.New("limit.use.cpu.affinity", "used", *h.ClientCores, "allowed", s.ClientMay, "machine", u.Detail))
			u.Side, u.own = hosts.Client, share
		}
	}
}

// tableUses returns the use of the kernel's limits of the generator: open files and ports.
func tableUses(h *hosts.Host, here surroundings) []usage {
	var all []usage
	if here.Files > 0 && h.ClientFiles > 0 {
		u := use(hosts.ResourceFiles, h, hosts.Ranged{Mean: stats.Ratio(float64(h.ClientFiles), here.Files)},
			fact.New("limit.use.files", "files", h.ClientFiles, "allowed", here.Files))
		u.Side = hosts.Client
		all = append(all, u)
	}
	if ports := here.PortHigh - here.PortLow + 1; here.PortLow > 0 && ports > 1 && h.Connections > 0 && h.Side() == hosts.Client {
		all = append(all, use(hosts.ResourcePorts, h, hosts.Ranged{Mean: stats.Ratio(h.Connections, float64(ports))},
			fact.New("limit.use.ports", "connections", h.Connections, "allowed", ports)))
	}
	return all
}

// exhausted returns the limits of the generator's machine that appear in errors. An error is
// recorded at its first occurrence; from then on the limit counts as reached.
func exhausted(d *steps.Run, s *steps.Working, hosts []*hosts.Host) []usage {
	host := ""
	if len(hosts) == 1 {
		host = hosts[0].Host
	}
	met := map[string]bool{}
	var all []usage
	for _, e := range d.Events {
		if e.Exhausted != "" && e.Step > 0 && e.Step <= s.Step && !met[e.Exhausted] && s.Errors > 0 {
			met[e.Exhausted] = true
			all = append(all, metLimit(e.Exhausted, host, e))
		}
	}
	return all
}

func metLimit(resource, host string, e *measure.Event) usage {
	one := 1.0
	u := usage{ResourceUsage: &steps.ResourceUsage{Resource: resource, Host: host, Side: hosts.Client, Share: &one, Low: &one, High: &one},
		reached: true, holds: true}
	u.addFact("limit.use.exhausted", "step", e.Step, "error", fmt.Sprintf("%.200s", strings.TrimSpace(e.Text)))
	return u
}
