package scenario

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/internal/unit"
	"weir/workload"
)

// defaults returns the values of all keys that a scenario leaves out. It is
// the only place where they stand; complete adds those that depend on others.
func defaults() *Scenario {
	return &Scenario{
		Name: "weir",
		Work: workload.Work{
			Kind: "read", Session: "kept", Pick: "random", Verify: 0.01, Sum: "adler32", Timeout: seconds(60),
		},
		Load: Load{
			Arrivals: "constant", MaxClients: 1000,
			Ramp: seconds(2), Settle: seconds(3), Hold: seconds(10), Drain: seconds(30), ErrorPause: seconds(1),
		},
		Seed: 1, Repeat: 1,
	}
}

func seconds(s float64) unit.Duration { return unit.Duration(math.Round(s * float64(time.Second))) }

// Defaults of keys that are needed only beside others.
const (
	defaultSize = unit.Size(1 << 20) // workload.size of kinds that write, files.make.size
	defaultSkew = 1.2                // workload.skew of pick: zipf
	thisMachine = "localhost"        // hosts.[].name
)

func defaultClients() Counts { return Counts{1, 2, 4, 8, 16, 32, 64, 128, 256} }

func defaultMetadata() map[string]float64 {
	return map[string]float64{"stat": 8, "list": 1, "mkdir": 1}
}

// complete fills in the defaults that depend on other keys. It may be called
// again after a change.
func (s *Scenario) complete() {
	w, f := &s.Work, &s.Files
	s.completeOn()
	if w.Kind == "metadata" && len(w.Mix) == 0 {
		w.Mix = defaultMetadata()
	}
	if unset(w.Size) && slices.Contains(s.operations(), "write") {
		w.Size.Fixed = defaultSize
	}
	if w.Pick == "zipf" && w.Skew == 0 {
		w.Skew = defaultSkew
	}
	if w.Kind == commandJob && s.where != nil && !s.given("workload.timeout") {
		w.Timeout = programTimeout
	}
	if w.Kind == "job" {
		w.Job = completeJob(w.Job)
	}
	s.completeJobs()
	if p := w.Part; p != nil {
		p.Count = max(p.Count, 1)
		if p.Order == "" {
			p.Order = "random"
		}
	}
	if f.Make != nil && unset(f.Make.Size) {
		f.Make.Size.Fixed = defaultSize
		if w.Kind == "job" && w.Job.Events > 0 && w.Job.Event > 0 {
			f.Make.Size.Fixed = unit.Size(w.Job.Bytes())
		}
	}
	if s.needsFiles() && f.List == "" && f.Make == nil {
		f.Listing = true
	}
	if len(s.Load.Clients) == 0 && len(s.Load.Rate) == 0 {
		s.Load.Clients = defaultClients()
	}
	s.completeHosts()
}

func (s *Scenario) completeHosts() {
	for i := range s.Hosts {
		if h := &s.Hosts[i]; h.Name == "" && h.NodeExporter+h.XRootDReport == "" && !h.Backend() {
			h.Name = thisMachine
		}
		if h := &s.Hosts[i]; h.Role == "" && h.Backend() {
			h.Role = "server"
		}
	}
	if len(s.Hosts) == 0 || s.onlyBackendsHere() {
		role := "client"
		if s.near() {
			role = "both"
		}
		s.Hosts = append(s.Hosts, Host{Name: thisMachine, Role: role})
	}
}

func unset(d workload.Dist) bool { return d.Fixed == 0 && d.Uniform == nil && d.Weights == nil }

// defaultFor returns the scenario that runs without a file: reading from target
// (BuiltIn: weir's own server) with 1, 2, 4 ... 256 clients, in about half a
// minute.
func defaultFor(target string) *Scenario {
	s := defaults()
	s.Name, s.Target = "first-light", target
	s.Load.Ramp, s.Load.Settle, s.Load.Hold, s.Load.Drain = seconds(0.2), seconds(0.3), seconds(3.2), seconds(5)
	s.complete()
	return s
}

// nameOf makes a run's name of its target: the host, or the scheme. Of an IPv6 address
// the groups are joined with dashes, as in ip6-fe80--1-eth0, since colons have a meaning in
// file names of some systems and tools.
func nameOf(u *url.URL) string {
	name := cmp.Or(u.Hostname(), u.Scheme, "run")
	if strings.Contains(name, ":") {
		name = "ip6-" + strings.NewReplacer(":", "-", "%", "-").Replace(name)
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return cmp.Or(strings.TrimLeft(name[:min(len(name), 64)], "._-"), "run")
}

// DefaultWith returns defaultFor(target) with the --set of the command line. Its
// error is of type Mistakes.
func DefaultWith(target string, sets []string) (*Scenario, error) {
	s := defaultFor(target)
	if u, err := url.Parse(target); err == nil && target != BuiltIn {
		s.Name = nameOf(u)
	}
	s.Hosts = nil // may follow from another target
	s.Load.Clients = nil
	s.Files = Files{}
	t := &tree{}
	root := &node{kind: mapping}
	for _, set := range sets {
		t.apply(root, set)
	}
	return t.finish(root, nil, s)
}
