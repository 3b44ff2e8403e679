package scenario

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/internal/document"
	"weir/link"
	"weir/loadtest/workload"
	"weir/storage"
)

// A Population is a group of virtual clients with a workload of its own. All populations of a run
// work at the same time.
type Population struct {
	Name    string        `json:"name" doc:"Name of the population."`
	Clients Counts        `json:"clients" doc:"Virtual clients: of each step, or one number for all steps."`
	Work    workload.Work `json:"workload" doc:"Work of its clients; missing keys are those of workload."`
}

// maxPopulations is the largest number of populations of a run.
const maxPopulations = 16

// populationName matches the name of a population, which is a label of metrics and a part of file
// names.
var populationName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$`)

// populations decodes the list of populations. Keys of workload that a population leaves out have
// the values of the scenario's own workload.
func (d *decoder) populations(n *document.Node, s *Scenario) {
	const path = "populations"
	d.Where[path] = n.At
	if n.Kind != document.List || len(n.Items) < 2 || len(n.Items) > maxPopulations {
		d.Say(n.At, "%s: write a list of 2 to %d, as in [{name: writers, clients: 10, workload: {kind: write}}, {name: readers, clients: 20}]",
			path, maxPopulations)
		return
	}
	s.Populations = make([]Population, len(n.Items))
	for i, item := range n.Items {
		p := &s.Populations[i]
		p.Work = s.Work
		d.Value(item, fmt.Sprintf("%s.%d", path, i), reflect.ValueOf(p).Elem())
		if !workload.Writes(p.Work) && !s.given(fmt.Sprintf("%s.%d.workload.size", path, i)) {
			p.Work.Size = workload.Dist{} // applies to populations that write
		}
	}
}

// population returns the scenario with population i alone.
func (s *Scenario) population(i int) *Scenario {
	p := &s.Populations[i]
	one := *s
	one.Populations, one.Work, one.Load.Clients = nil, p.Work, p.Clients
	if s.where != nil {
		one.where = map[string]document.Place{}
		prefix := fmt.Sprintf("populations.%d.", i)
		for path, at := range s.where {
			if !strings.HasPrefix(path, "workload.") { // the key may apply to the other populations
				one.where[path] = at
			}
		}
		for path, at := range s.where {
			if own, ok := strings.CutPrefix(path, prefix); ok {
				one.where[own] = at // the position is stored under the key of workload
			}
		}
	}
	if !one.needsFiles() {
		one.Files = Files{}
	}
	return &one
}

// completePopulations fills in the defaults of each population, and the load of all of them
// together.
func (s *Scenario) completePopulations() {
	steps := 0
	for i := range s.Populations {
		if len(s.Populations[i].Clients) == 0 {
			s.Populations[i].Clients = Counts{1}
		}
		steps = max(steps, len(s.Populations[i].Clients))
	}
	total := make(Counts, steps)
	for i := range s.Populations {
		p := &s.Populations[i]
		if len(p.Clients) == 1 {
			p.Clients = slices.Repeat(p.Clients, steps)
		}
		one := s.population(i)
		one.complete()
		p.Work = one.Work
		if one.needsFiles() {
			s.Files = one.Files
		}
		for k := range min(steps, len(p.Clients)) {
			total[k] += p.Clients[k]
		}
	}
	s.Work, s.Load.Clients = s.Populations[0].Work, total
}

// checkPopulations reports the keys that cannot be combined with several populations.
func (c *checker) checkPopulations() {
	names := map[string]bool{}
	for i := range c.Populations {
		p := &c.Populations[i]
		path := fmt.Sprintf("populations.%d", i)
		c.refuse(!populationName.MatchString(p.Name), path+".name", "%s is not a name; use up to 32 letters, digits, dots, _ and -",
			document.Quote(p.Name))
		c.refuse(names[p.Name], path+".name", "%s is the name of an earlier one; give each its own", document.Quote(p.Name))
		names[p.Name] = true
		c.refuse(len(p.Clients) != len(c.Load.Clients), path+".clients", "%d steps, but another population has %d; write as many, "+
			"or one number for all steps", len(p.Clients), len(c.Load.Clients))
		c.refuse(p.Work.Kind == workload.CommandJobWork || p.Work.Kind == workload.JobWork, path+".workload.kind",
			"jobs are a run of their own; use another kind")
	}
	for _, key := range []string{"load.clients", "load.rate", "load.jobs"} {
		c.refuse(c.given(key), key, "cannot be combined with populations, each of which has its clients; omit it")
	}
	c.refuse(slices.ContainsFunc(c.Populations, func(p Population) bool {
		return workload.Writes(p.Work) && p.Work.Keep != c.Populations[0].Work.Keep
	}), "populations", "workload.keep is true in some and false in others; give it once, in workload")
	c.refuse(c.given("link"), "link", "cannot be combined with populations yet; omit it")
	c.refuse(len(c.Client.Command) > 0, "client", "external programs cannot be combined with populations; omit client")
	c.refuse(c.On.JobPerClient, "on", "job_per_client cannot be combined with populations; omit it")
	if c.On.Batch != "" {
		c.refuse(c.On.Workers < len(c.Populations), "on.workers", "%d: each of the %d populations needs a worker of its own at least",
			c.On.Workers, len(c.Populations))
	}
}

// each calls do with the checker of each population's scenario, or with c itself if the scenario
// has no populations.
func (c *checker) each(do func(*checker)) {
	if len(c.Populations) == 0 {
		do(c)
		return
	}
	for i := range c.Populations {
		one := &checker{Scenario: c.population(i), known: slices.Concat(c.known, c.found)}
		do(one)
		for _, m := range one.found {
			if !slices.ContainsFunc(c.found, func(f *document.Mistake) bool { return *f == *m }) {
				c.found = append(c.found, m)
			}
		}
	}
}

// Of returns the plan of worker i. If the plan has populations, it is the plan of the population of
// the worker. If i is negative, Of returns the plan unchanged, and each worker selects its own
// part.
func (p *Plan) Of(i int) *Plan {
	if len(p.Populations) == 0 || i < 0 {
		return p
	}
	own := *p
	mine := p.Populations[i%len(p.Populations)]
	own.Population, own.Work, own.Populations = mine.Name, mine.Work, nil
	return &own
}

// Dealt returns the distribution of the n clients of the step at a position in the plan (from 0)
// over the sites of the links, or over populations; without links and populations, it is one
// number. A position beyond the plan's steps stands for the largest number of clients of each
// population.
func (p *Plan) Dealt(n, place int) []int {
	if len(p.Populations) == 0 {
		if len(p.Links) == 0 {
			return []int{n}
		}
		return link.Deal(n, p.Links.Sites())
	}
	out := make([]int, len(p.Populations))
	for i := range p.Populations {
		if clients := p.Populations[i].Clients; place < len(clients) {
			out[i] = clients[place]
		} else {
			out[i] = slices.Max(clients)
		}
	}
	return out
}

// populationTexts describes the workload of each population and its number of clients in each step.
func (p *Plan) populationTexts() []string {
	var all []string
	for i := range p.Populations {
		clients := make([]string, len(p.Populations[i].Clients))
		for k, n := range p.Populations[i].Clients {
			clients[k] = strconv.Itoa(n)
		}
		all = append(all, fmt.Sprintf("%s (clients %s): %s", p.Populations[i].Name, strings.Join(slices.Compact(clients), ", "),
			p.Of(i).WorkText()))
	}
	return all
}

func total(all []int) (n int) {
	for _, x := range all {
		n += x
	}
	return n
}

// Works returns the workloads of the clients of the plan: a single workload, or the workload of
// each population.
func (p *Plan) Works() []workload.Work {
	if len(p.Populations) == 0 {
		return []workload.Work{p.Work}
	}
	all := make([]workload.Work, len(p.Populations))
	for i := range p.Populations {
		all[i] = p.Populations[i].Work
	}
	return all
}

// Writes reports whether clients of the plan write files.
func (p *Plan) Writes() bool { return slices.ContainsFunc(p.Works(), workload.Writes) }

// Keeps reports whether files that clients write stay after the run.
func (p *Plan) Keeps() bool {
	return slices.ContainsFunc(p.Works(), func(w workload.Work) bool { return w.Keep })
}

// InFlight returns the largest number of concurrent requests of a client; 0 lets the driver choose.
func (p *Plan) InFlight() (most int) {
	for _, w := range p.Works() {
		most = max(most, w.InFlight)
	}
	return most
}

// driverOf finds the driver of the target, for all populations.
func (c *checker) driverOf(drivers []storage.Driver) (d storage.Driver) {
	c.each(func(one *checker) { d = one.driver(drivers) })
	return d
}
