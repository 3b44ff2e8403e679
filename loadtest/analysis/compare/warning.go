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
)

// warnings says what makes groups hard to compare.
func warnings(groups []Group, loads []load) []string {
	all := []string{}
	for i := range groups {
		g := &groups[i]
		all = append(all, g.statuses()...)
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

// statuses says which runs cannot be believed, or not quite.
func (g *Group) statuses() []string {
	var all []string
	for _, status := range []string{analysis.Invalid, analysis.Suspect} {
		var names []string
		for _, r := range g.Runs {
			if r.Status == status {
				names = append(names, r.Dir)
			}
		}
		if len(names) == 0 {
			continue
		}
		means := "see their checks"
		if status == analysis.Invalid {
			means = "the comparison uses results that are invalid"
		}
		all = append(all, fmt.Sprintf("%d of %s of %s %s %s (%s): %s", len(names), say.Plural(len(g.Runs), "run"), g.Name,
			say.Either(len(names), "is", "are"), status, some(names), means))
	}
	for _, lost := range g.Lost {
		all = append(all, fmt.Sprintf("%s: %s", g.Name, lost))
	}
	return all
}

// inconsistencies describes what differs among the runs of a group, which should be repetitions.
func (g *Group) inconsistencies() []string {
	var all []string
	for i, f := range g.Runs[0].facts {
		values := g.fact(i)
		if len(values) > 1 && (!f.planned() || !g.variant()) {
			all = append(all, fmt.Sprintf("the runs of %s are not repetitions: their %s differs (%s)", g.Name, f.name, some(values)))
		}
	}
	seen := map[string]bool{}
	for _, r := range g.Runs {
		if seen[r.Name] {
			all = append(all, fmt.Sprintf("run %s is in %s twice: it counts twice, which makes all intervals too narrow", r.Name, g.Name))
		}
		seen[r.Name] = true
	}
	return all
}

// planned says whether a fact follows from the plan.
func (f fact) planned() bool {
	return !strings.HasPrefix(f.name, "version") && !strings.HasPrefix(f.name, "host")
}

// variant says whether all runs are of one variant of one campaign: one plan, but for the address of a server that
// was started anew for each run.
func (g *Group) variant() bool {
	first := g.Runs[0]
	return first.campaign != "" && ofOne(g, first.campaign) &&
		!slices.ContainsFunc(g.Runs, func(r *Run) bool { return !maps.Equal(r.Levels, first.Levels) })
}

// fact returns the distinct values of the i-th fact in their order.
func (g *Group) fact(i int) []string {
	var values []string
	for _, r := range g.Runs {
		if i < len(r.facts) {
			values = append(values, r.facts[i].value)
		}
	}
	return distinct(values)
}

// absent says which runs lack a common load.
func (g *Group) absent(loads []load) []string {
	var all []string
	for _, r := range g.Runs {
		by, _ := steps(r.Found)
		lacks := slices.DeleteFunc(slices.Clone(loads), func(l load) bool { return by[l] != nil })
		if len(lacks) > 0 {
			all = append(all, fmt.Sprintf("%s lacks %d of %d common steps: it is excluded from the overall figure", r.Dir, len(lacks), len(loads)))
		}
	}
	return all
}

// few says how little so few runs can show, of the pair that has the fewest.
func few(groups []Group) []string {
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
		return nil // single runs have a sentence of their own
	}
	return []string{fmt.Sprintf("%d runs of %s against %d of %s: the smallest possible p is %s; %d of each are recommended", len(a.Runs),
		a.Name, len(b.Runs), b.Name, PText(min(1, 2/arrangements(len(a.Runs), len(b.Runs)))), advisedFor)}
}

// order says so if one group was done before the other began.
func order(a, b *Group) []string {
	if len(a.Runs) < 2 || len(b.Runs) < 2 || len(blocks(a, b)) > 0 {
		return nil
	}
	left, right := inTime(a), inTime(b)
	if left[len(left)-1].Start.Before(right[0].Start) || right[len(right)-1].Start.Before(left[0].Start) {
		return []string{fmt.Sprintf("all runs of one of %s and %s were done before the first of the other: any other change in the meantime "+
			"counts as a difference; interleave them (A B A B)", a.Name, b.Name)}
	}
	return nil
}

func twice(a, b *Group) []string {
	for _, r := range a.Runs {
		if slices.ContainsFunc(b.Runs, func(s *Run) bool { return s.Name == r.Name }) {
			return []string{fmt.Sprintf("run %s is in both %s and %s", r.Name, a.Name, b.Name)}
		}
	}
	return nil
}

// differences says what differs between groups besides what was to be compared. Variants of one campaign differ on
// purpose.
func differences(a, b *Group) []string {
	var all []string
	campaign := a.Runs[0].campaign
	for i, f := range a.Runs[0].facts {
		if campaign != "" && campaign == b.Runs[0].campaign && f.planned() {
			continue
		}
		x, y := a.fact(i), b.fact(i)
		if len(x) == 1 && len(y) == 1 && x[0] != y[0] {
			all = append(all, fmt.Sprintf("the %s differs: %s in %s, %s in %s", f.name, quote(x[0]), a.Name, quote(y[0]), b.Name))
		}
	}
	return all
}

func quote(s string) string { return cmp.Or(s, "none") }

// holds says so if the same load was held longer in one group.
func holds(a, b *Group, loads []load) []string {
	for _, l := range loads {
		x, y := hold(a, l), hold(b, l)
		if math.Abs(x-y) > 0.2*max(x, y) {
			return []string{fmt.Sprintf("steps were measured for %s in %s and for %s in %s", unit.Seconds(x), a.Name, unit.Seconds(y), b.Name)}
		}
	}
	return nil
}

// hold is how long the first run of g that has it held a load.
func hold(g *Group, l load) float64 {
	for _, r := range g.Runs {
		if s := r.at(l); s != nil {
			return s.Duration
		}
	}
	return 0
}

// skipped says which loads are not compared.
func skipped(groups []Group, loads []load) []string {
	names := heldLoads(groups, loadName(groups), func(l load) bool { return !slices.Contains(loads, l) })
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("only steps that all groups have are compared; excluded: %s", some(names))}
}

// heldLoads names the wanted loads of all runs.
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

// text names a load for people; of is what loads count.
func (l load) text(of string) string {
	text := say.Plural(l.clients, strings.TrimSuffix(of, "s"))
	if l.rate > 0 {
		text = unit.Count(l.rate) + "/s"
	}
	if l.again > 1 {
		text += fmt.Sprintf(" (%d)", l.again)
	}
	return text
}

// some joins names, and says how many more there are.
func some(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
}

// held says which loads each group held.
func held(groups []Group) string {
	var all []string
	for i, g := range groups {
		names := heldLoads(groups[i:i+1], loadName(groups), func(load) bool { return true })
		all = append(all, fmt.Sprintf("%s has %s", g.Name, cmp.Or(some(names), "nothing")))
	}
	return strings.Join(all, "; ")
}
