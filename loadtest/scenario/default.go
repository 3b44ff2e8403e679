package scenario

import (
	"cmp"
	"encoding"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"weir/internal/document"
	"weir/internal/unit"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
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
			Ramp: seconds(2), Warmup: seconds(3), Duration: seconds(10), GracefulStop: seconds(30), ErrorPause: seconds(1),
			RetryAfter: obeyRetryAfter,
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
	if len(s.Populations) > 0 {
		s.completePopulations()
	}
	w, f := &s.Work, &s.Files
	s.completeOn()
	if s.Server.PageCPU > 0 {
		s.Server.Threads = max(s.Server.Threads, 1)
	}
	if w.Kind == workload.MetadataWork && len(w.Mix) == 0 {
		w.Mix = defaultMetadata()
	}
	if unset(w.Size) && w.Kind != workload.JobWork && slices.Contains(s.operations(), "write") {
		w.Size.Fixed = defaultSize
	}
	if w.Pick == "zipf" && w.Skew == 0 {
		w.Skew = defaultSkew
	}
	if w.Kind == workload.CommandJobWork && s.where != nil && !s.given("workload.timeout") {
		w.Timeout = programTimeout
	}
	if s.Auth.Method == storage.S3Auth && s.where != nil && !s.given("workload.checksum") {
		w.Sum = "md5" // what S3 knows of each object
	}
	if w.Kind == workload.JobWork {
		w.Job = completeJob(w.Job)
	}
	s.completeJobs()
	if p := w.Part; p != nil {
		p.Count = max(p.Count, 1)
		p.Order = cmp.Or(p.Order, "random")
	}
	if f.Make != nil && unset(f.Make.Size) {
		f.Make.Size.Fixed = defaultSize
		if w.Kind == workload.JobWork && w.Job.Events > 0 && w.Job.Event > 0 {
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

// defaultFor returns the scenario that runs without a file: reading from target
// (BuiltIn: weir's own server) with 1, 2, 4 ... 256 clients, in about half a
// minute.
func defaultFor(target string) *Scenario {
	s := defaults()
	s.Name, s.Target = "first-light", target
	s.Load.Ramp, s.Load.Warmup, s.Load.Duration = seconds(0.2), seconds(0.3), seconds(3.2)
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
// error is of type document.Mistakes.
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

// defaultJob is the job of the MONARC tests of 1999: 3000 events of 40 KB, read
// one page of 8 KB at a time.
func defaultJob() workload.Job {
	return workload.Job{Access: workload.Direct, Events: 3000, Event: 40 << 10, Page: 8 << 10, Skim: 1, Slim: 1}
}

// defaultCopy is the longest that a staged job's copy may take.
const defaultCopy = unit.Duration(time.Hour)

// completeJob returns j with the defaults of what it leaves out.
func completeJob(j *workload.Job) *workload.Job {
	whole := defaultJob()
	if j == nil {
		return &whole
	}
	out := *j
	out.Access = cmp.Or(out.Access, whole.Access)
	out.Events = cmp.Or(out.Events, whole.Events)
	out.Event = cmp.Or(out.Event, whole.Event)
	out.Page = cmp.Or(out.Page, min(whole.Page, out.Event))
	out.Skim = cmp.Or(out.Skim, unit.Fraction(1))
	out.Slim = cmp.Or(out.Slim, unit.Fraction(1))
	if out.Access == workload.Staged {
		out.Copy = cmp.Or(out.Copy, defaultCopy)
	}
	return &out
}

// completeJobs fills in the defaults of a load of a number of jobs: all of each
// counts, and no job that could be done is cut off.
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

// defaultValues returns the values of keys that are left out, by their dotted
// paths: texts with units, numbers and true or false. Keys that are simply
// off are not among them.
func defaultValues() map[string]any {
	s := defaults()
	out := map[string]any{}
	flatten(out, "", reflect.ValueOf(s).Elem())
	job := defaultJob()
	job.Copy = defaultCopy
	flatten(out, "workload.job", reflect.ValueOf(job))
	out["load.clients"] = "1,2,4,8,16,32,64,128,256"
	out["workload.think"] = "0s"
	out["workload.retries"] = 0
	out["workload.skew"] = defaultSkew
	out["workload.size"], out["files.make.size"] = defaultSize.String(), defaultSize.String()
	out["workload.part.count"], out["workload.part.order"] = 1, "random"
	return out
}

func flatten(out map[string]any, path string, v reflect.Value) {
	for _, name := range document.FieldNames(v.Type()) {
		f, _ := document.FieldOf(v, name)
		full := document.Join(path, name)
		if f.IsZero() {
			continue
		}
		if m, ok := f.Interface().(encoding.TextMarshaler); ok {
			if text, err := m.MarshalText(); err == nil {
				out[full] = string(text)
			}
			continue
		}
		switch f.Kind() {
		case reflect.Struct:
			flatten(out, full, f)
		case reflect.Slice, reflect.Map, reflect.Pointer: // none has a default that is written whole
		default:
			out[full] = f.Interface()
		}
	}
}
