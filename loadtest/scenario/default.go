package scenario

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/internal/document"
	"weir/internal/unit"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// defaults returns a scenario with the default values of all keys, which are in the tags of its
// fields. complete adds the defaults that depend on other keys.
func defaults() *Scenario {
	s := &Scenario{}
	format().SetDefaults(s)
	return s
}

func seconds(s float64) unit.Duration { return unit.Duration(math.Round(s * float64(time.Second))) }

// thisMachine is the default of hosts.[].name.
const thisMachine = "localhost"

// complete fills in the defaults that depend on other keys. It may be called again after a change.
func (s *Scenario) complete() {
	if len(s.Populations) > 0 {
		s.completePopulations()
	}
	w, f, set := &s.Work, &s.Files, format().SetDefault
	s.completeOn()
	if s.Server.PageCPU > 0 {
		set(&s.Server, "threads")
	}
	if w.Kind == workload.MetadataWork {
		set(w, "mix")
	}
	if w.Kind != workload.JobWork && slices.Contains(s.operations(), "write") {
		set(w, "size")
	}
	if w.Pick == "zipf" {
		set(w, "skew")
	}
	if w.Kind == workload.CommandJobWork && s.where != nil && !s.given("workload.timeout") {
		w.Timeout = programTimeout
	}
	if s.Auth.Method == storage.S3Auth && s.where != nil && !s.given("workload.checksum") {
		w.Sum = "md5" // the checksum that S3 has for each object
	}
	if w.Kind == workload.JobWork {
		w.Job = completeJob(w.Job)
	}
	s.completeJobs()
	if w.Part != nil {
		format().SetDefaults(w.Part)
	}
	if s.Origin != nil {
		format().SetDefaults(s.Origin)
	}
	if f.Make != nil {
		if w.Kind == workload.JobWork && w.Job.Events > 0 && w.Job.Event > 0 && unset(f.Make.Size) {
			f.Make.Size.Fixed = unit.Size(w.Job.Bytes())
		}
		format().SetDefaults(f.Make)
	}
	if s.needsFiles() && f.List == "" && f.Make == nil {
		f.Listing = true
	}
	if len(s.Load.Rate) == 0 {
		set(&s.Load, "clients")
	}
	s.completeHosts()
}

func (s *Scenario) completeHosts() {
	for i := range s.Hosts {
		if h := &s.Hosts[i]; h.Name == "" && h.NodeExporter+h.XRootDReport == "" && !h.Backend() {
			h.Name = thisMachine
		}
		if h := &s.Hosts[i]; h.Role == "" && h.Backend() {
			h.Role = monitor.RoleServer
		}
	}
	if len(s.Hosts) == 0 || s.onlyBackendsHere() {
		role := monitor.RoleClient
		if s.near() {
			role = monitor.RoleBoth
		}
		s.Hosts = append(s.Hosts, monitor.Host{Name: thisMachine, Role: role})
	}
}

func unset(d workload.Dist) bool { return d.Fixed == 0 && d.Uniform == nil && d.Weights == nil }

// defaultFor returns the scenario of a run without a file: reading from target (BuiltIn: weir's own
// server) with 1, 2, 4 ... 256 clients, in about half a minute.
func defaultFor(target string) *Scenario {
	s := defaults()
	s.Name, s.Target = "first-light", target
	s.Load.Ramp, s.Load.Warmup, s.Load.Duration = seconds(0.2), seconds(0.3), seconds(3.2)
	s.complete()
	return s
}

// nameOf derives the name of a run from its target: the host, or the scheme. The groups of an IPv6
// address are joined with dashes, as in ip6-fe80--1-eth0, since colons have a meaning in file names
// of some systems and tools.
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

// DefaultWith returns defaultFor(target) with the --set options of the command line. Its error is
// of type document.Mistakes.
func DefaultWith(target string, sets []string) (*Scenario, error) {
	s := defaultFor(target)
	if u, err := url.Parse(target); err == nil && target != BuiltIn {
		s.Name = nameOf(u)
	}
	s.Hosts = nil // may follow from another target
	s.Load.Clients = nil
	s.Files = Files{}
	t := newTree("")
	root := &document.Node{Kind: document.Map}
	for _, set := range sets {
		t.apply(root, set)
	}
	return t.finish(root, nil, s)
}

// completeJob returns j with the defaults of the missing keys: the job of the MONARC tests of 1999,
// 3000 events of 40 KB, read one page of 8 KB at a time.
func completeJob(j *workload.Job) *workload.Job {
	out := workload.Job{}
	if j != nil {
		out = *j
	}
	whole := out.Page == 0
	format().SetDefaults(&out)
	if whole {
		out.Page = min(out.Page, out.Event)
	}
	if out.Access == workload.Staged {
		format().SetDefault(&out, "copy_timeout")
	}
	return &out
}

// completeJobs fills in the defaults of a load with a number of jobs: the whole duration of each
// job counts, and no job that could be completed is cut off.
func (s *Scenario) completeJobs() {
	l, usual := &s.Load, defaults().Load
	if l.Jobs <= 0 {
		return
	}
	l.Cooldown = cmp.Or(l.Cooldown, defaultCooldown)
	for _, k := range []struct {
		key      string
		at       *unit.Duration
		usual, d unit.Duration
	}{{"ramp", &l.Ramp, usual.Ramp, 0}, {"warmup", &l.Warmup, usual.Warmup, 0},
		{"duration", &l.Duration, usual.Duration, defaultJobsDuration}} {
		if !s.given("load."+k.key) && *k.at == k.usual {
			*k.at = k.d
		}
	}
}

// Defaults of a load of a number of jobs.
const (
	defaultCooldown     = unit.Duration(time.Second)
	defaultJobsDuration = unit.Duration(time.Hour)
)
