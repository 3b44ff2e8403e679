package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/fact"
)

// warnings returns the reasons why groups are hard to compare.
func warnings(groups []Group, loads []load) []fact.Fact {
	var all []fact.Fact
	for i := range groups {
		g := &groups[i]
		all = append(all, g.statuses()...)
		all = append(all, g.Lost...)
		all = append(all, g.inconsistencies()...)
		all = append(all, g.absent(loads)...)
	}
	all = append(all, few(groups)...)
	for i := range groups[1:] {
		a, b := &groups[0], &groups[i+1]
		all = append(all, order(a, b)...)
		all = append(all, twice(a, b)...)
		all = append(all, differences(a, b)...)
		all = append(all, holds(a, b, loads)...)
	}
	return append(all, skipped(groups, loads)...)
}

// statuses warns of runs that are invalid or suspect.
func (g *Group) statuses() (all []fact.Fact) {
	if names := g.with(analysis.Invalid); len(names) > 0 {
		all = append(all, fact.New("compare.status.invalid", "group", g.Name, "count", len(names), "runs", len(g.Runs), "names", some(names)))
	}
	if names := g.with(analysis.Suspect); len(names) > 0 {
		all = append(all, fact.New("compare.status.suspect", "group", g.Name, "count", len(names), "runs", len(g.Runs), "names", some(names)))
	}
	return all
}

// with returns the directories of the runs that have a status.
func (g *Group) with(status string) (dirs []string) {
	for _, r := range g.Runs {
		if r.Status == status {
			dirs = append(dirs, r.Dir)
		}
	}
	return dirs
}

// inconsistencies warns of differences among the runs of a group, which should be repetitions.
func (g *Group) inconsistencies() (all []fact.Fact) {
	for _, key := range decisive(g.Runs) {
		if values := g.property(key); len(values) > 1 && (!g.Runs[0].planned[key] || !g.variant()) {
			all = append(all, fact.New("compare.no_repetitions", "group", g.Name, "property", key, "values", some(values)))
		}
	}
	all = shortened(all, g.Name)
	seen := map[string]bool{}
	for _, r := range g.Runs {
		if seen[r.Name] {
			all = append(all, fact.New("compare.repeated_run", "run", r.Name, "group", g.Name))
		}
		seen[r.Name] = true
	}
	return all
}

// variant reports whether all runs belong to one variant of one campaign: one plan, except for the
// address of a server that was started anew for each run.
func (g *Group) variant() bool {
	first := g.Runs[0]
	return first.campaign != "" && ofOne(g, first.campaign) &&
		!slices.ContainsFunc(g.Runs, func(r *Run) bool { return !maps.Equal(r.Levels, first.Levels) })
}

// property returns the distinct values of a key in their order, "not set" for a run without the key.
func (g *Group) property(key string) []string {
	var values []string
	for _, r := range g.Runs {
		values = append(values, cmp.Or(r.details[key], "not set"))
	}
	return distinct(values)
}

// decisive returns the keys on which the results of runs depend: those of the plan, except keys that
// other warnings and the tables show, and a few keys of the program and the machine.
func decisive(runs []*Run) []string {
	keys := map[string]bool{"weir": true, "environment.hostname": true, "environment.kernel": true, "environment.cpu_model": true,
		"environment.cores_used": true}
	for _, r := range runs {
		maps.Copy(keys, r.planned)
	}
	for _, key := range []string{"load.clients", "load.rate", "load.duration"} {
		delete(keys, key)
	}
	return slices.Sorted(maps.Keys(keys))
}

// mostProperties is the largest number of different keys that warnings about a group list.
const mostProperties = 12

// shortened returns warnings about keys of a group, and the number of further keys if there are many.
func shortened(all []fact.Fact, group string) []fact.Fact {
	if len(all) <= mostProperties {
		return all
	}
	return append(all[:mostProperties:mostProperties], fact.New("compare.more_properties", "count", len(all)-mostProperties, "group", group))
}

// absent warns of runs that lack a common load.
func (g *Group) absent(loads []load) (all []fact.Fact) {
	for _, r := range g.Runs {
		by, _ := steps(r.Found)
		lacks := slices.DeleteFunc(slices.Clone(loads), func(l load) bool { return by[l] != nil })
		if len(lacks) > 0 {
			all = append(all, fact.New("compare.missing_steps", "dir", r.Dir, "missing", len(lacks), "steps", len(loads)))
		}
	}
	return all
}

// few warns of the least p that the pair with the fewest runs can have.
func few(groups []Group) []fact.Fact {
	if len(groups) < 2 {
		return nil
	}
	a, b := &groups[0], &groups[1]
	for i := range groups[2:] {
		if g := &groups[i+2]; len(g.Runs) < len(b.Runs) {
			b = g
		}
	}
	least := min(len(a.Runs), len(b.Runs))
	if len(a.Runs)+len(b.Runs) == 2 || least >= fewRuns {
		return nil // there is a separate sentence for single runs
	}
	return []fact.Fact{fact.New("compare.few_runs", "runs_a", len(a.Runs), "a", a.Name, "runs_b", len(b.Runs), "b", b.Name,
		"p", leastP(len(a.Runs), len(b.Runs)), "advised", advisedFor)}
}

// order warns if all runs of one group were done before the runs of the other group began.
func order(a, b *Group) []fact.Fact {
	if len(a.Runs) < 2 || len(b.Runs) < 2 || len(blocks(a, b)) > 0 {
		return nil
	}
	left, right := inTime(a), inTime(b)
	if left[len(left)-1].Start.Before(right[0].Start) || right[len(right)-1].Start.Before(left[0].Start) {
		return []fact.Fact{fact.New("compare.order", "a", a.Name, "b", b.Name)}
	}
	return nil
}

// twice warns of a run that belongs to both groups.
func twice(a, b *Group) []fact.Fact {
	for _, r := range a.Runs {
		if slices.ContainsFunc(b.Runs, func(s *Run) bool { return s.Name == r.Name }) {
			return []fact.Fact{fact.New("compare.shared_run", "run", r.Name, "a", a.Name, "b", b.Name)}
		}
	}
	return nil
}

// differences warns of keys whose values differ between the two groups. The plans of variants of one
// campaign differ on purpose.
func differences(a, b *Group) (all []fact.Fact) {
	campaign := a.Runs[0].campaign
	same := campaign != "" && campaign == b.Runs[0].campaign
	for _, key := range decisive(slices.Concat(a.Runs, b.Runs)) {
		if same && (a.Runs[0].planned[key] || b.Runs[0].planned[key]) {
			continue
		}
		x, y := a.property(key), b.property(key)
		if len(x) == 1 && len(y) == 1 && x[0] != y[0] {
			all = append(all, fact.New("compare.property", "property", key, "value_a", x[0], "a", a.Name, "value_b", y[0], "b", b.Name))
		}
	}
	return shortened(all, b.Name)
}

// holds warns if the same load was held longer in one group.
func holds(a, b *Group, loads []load) []fact.Fact {
	for _, l := range loads {
		x, y := hold(a, l), hold(b, l)
		if math.Abs(x-y) > 0.2*max(x, y) {
			return []fact.Fact{fact.New("compare.duration", "seconds_a", x, "a", a.Name, "seconds_b", y, "b", b.Name)}
		}
	}
	return nil
}

// hold returns the seconds for which the first run of g with a load held it.
func hold(g *Group, l load) float64 {
	for _, r := range g.Runs {
		if s := r.at(l); s != nil {
			return s.Duration
		}
	}
	return 0
}

// skipped warns of loads that are not compared.
func skipped(groups []Group, loads []load) []fact.Fact {
	names := heldLoads(groups, loadName(groups), func(l load) bool { return !slices.Contains(loads, l) })
	if len(names) == 0 {
		return nil
	}
	return []fact.Fact{fact.New("compare.excluded_loads", "loads", some(names))}
}

// heldLoads returns the names of the wanted loads of all runs.
func heldLoads(groups []Group, of string, want func(load) bool) (names []string) {
	for r := range eachRun(groups) {
		_, order := steps(r.Found)
		for _, l := range order {
			if want(l) {
				names = append(names, l.text(of))
			}
		}
	}
	return distinct(names)
}

// text returns the name of a load for people; of is the unit of loads.
func (l load) text(of string) string {
	if of == analysis.Stages { // of the same load
		return fmt.Sprintf("stage %d", l.again)
	}
	text := say.Plural(l.clients, strings.TrimSuffix(of, "s"))
	if l.rate > 0 {
		text = unit.Count(l.rate) + "/s"
	}
	if l.again > 1 {
		text += fmt.Sprintf(" (%d)", l.again)
	}
	return text
}

// some returns names for facts; the text has only the first few of them.
func some(names []string) fact.Shown {
	const most = 4
	if len(names) <= most {
		return fact.As(names, strings.Join(names, ", "))
	}
	return fact.As(names, strings.Join(names[:most], ", ")+fmt.Sprintf(" and %d more", len(names)-most))
}

// held returns the loads of each group in words.
func held(groups []Group) string {
	var all []string
	for i, g := range groups {
		names := heldLoads(groups[i:i+1], loadName(groups), func(load) bool { return true })
		all = append(all, fmt.Sprintf("%s has %s", g.Name, cmp.Or(some(names).Text, "nothing")))
	}
	return strings.Join(all, "; ")
}
