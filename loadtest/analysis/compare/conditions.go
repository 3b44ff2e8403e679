package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/loadtest/scenario"
)

// A Condition is a key of the scenario or of the machine whose values differ between groups.
type Condition struct {
	Name   string   `json:"name"`   // as in plan.json and about.json: workload.timeout, environment.kernel
	Values []string `json:"values"` // by group; if its runs differ all values, separated by semicolons; "": absent
	Meant  bool     `json:"meant"`  // it is a factor of the campaign
}

// Bounds of the conditions in a comparison.
const (
	mostConditions = 200
	mostValue      = 200 // bytes of one value
	mostValues     = 3   // of one group
)

// ignored reports whether a key differs from run to run by its nature, or is shown elsewhere.
func ignored(key string) bool {
	switch key {
	case "seed", "name", "environment.time", "environment.boot_time", "environment.process_start_time", "clock.read_seconds",
		"clock.step_seconds",
		"run", "start", "command", "version", "format", "first_client":
		return true
	}
	return false
}

// details returns the leaves of the JSON of v, by key.
func details(v any) map[string]string {
	all := map[string]string{}
	var read any
	b, err := json.Marshal(v)
	if err == nil && json.Unmarshal(b, &read) == nil {
		flatten(all, "", read)
	}
	return all
}

// planDetails returns the details of a plan. Its steps have the keys of the scenario.
func planDetails(plan *scenario.Plan) map[string]string {
	if plan == nil {
		return nil
	}
	p := *plan
	p.Steps = nil
	all := details(&p)
	delete(all, "steps")
	if plan.BuiltIn {
		delete(all, "target") // it has another port in each run
	}
	load := func(key string, of func(*scenario.Step) any) {
		var values []string
		for i := range plan.Steps {
			values = append(values, fmt.Sprint(of(&plan.Steps[i])))
		}
		if different := slices.Compact(slices.Clone(values)); len(different) == 1 {
			values = different
		}
		all["load."+key] = cut(strings.Join(values, ", "))
	}
	load("clients", func(s *scenario.Step) any { return s.Clients })
	load("rate", func(s *scenario.Step) any { return float64(s.Rate) })
	load("jobs", func(s *scenario.Step) any { return s.Jobs })
	load("ramp", func(s *scenario.Step) any { return s.Ramp })
	load("warmup", func(s *scenario.Step) any { return s.Warmup })
	load("duration", func(s *scenario.Step) any { return s.Duration })
	load("cooldown", func(s *scenario.Step) any { return s.Cooldown })
	return all
}

// flatten adds the leaves of a JSON value. The elements of a list of objects have an index, as in
// hosts[0].role; other lists are leaves.
func flatten(into map[string]string, key string, v any) {
	if ignored(key) {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			path := name
			if key != "" {
				path = key + "." + name
			}
			flatten(into, path, inner)
		}
		return
	case []any:
		if len(v) == 0 || slices.ContainsFunc(v, func(x any) bool { _, object := x.(map[string]any); return !object }) {
			break
		}
		for i := range v {
			flatten(into, fmt.Sprintf("%s[%d]", key, i), v[i])
		}
		return
	case string:
		into[key] = cut(v)
		return
	}
	if b, err := json.Marshal(v); err == nil {
		into[key] = cut(string(b))
	}
}

func cut(text string) string {
	if len(text) > mostValue {
		return strings.ToValidUTF8(text[:mostValue], "") + " ..."
	}
	return text
}

// conditions lists the keys that differ between groups, the intended differences first.
func conditions(groups []Group) []Condition {
	keys := map[string]bool{}
	for r := range eachRun(groups) {
		for key := range r.details {
			keys[key] = true
		}
	}
	all := []Condition{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		c := Condition{Name: key, Meant: meant(groups, key)}
		for i := range groups {
			c.Values = append(c.Values, groups[i].values(key))
		}
		if len(slices.Compact(slices.Clone(c.Values))) > 1 {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b Condition) int { return cmp.Compare(rank(a), rank(b)) })
	return all[:min(len(all), mostConditions)]
}

// rank returns the sort key that puts intended differences first.
func rank(c Condition) int { return map[bool]int{false: 1}[c.Meant] }

// meant reports whether a key is one of the factors by which groups were made.
func meant(groups []Group, key string) bool {
	for _, g := range groups {
		for factor := range g.Levels {
			if key == factor || strings.HasPrefix(key, factor+".") {
				return true
			}
		}
	}
	return false
}

// values formats the values of a key in the runs of a group.
func (g *Group) values(key string) string {
	var all []string
	for _, r := range g.Runs {
		all = append(all, r.details[key])
	}
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	if n := len(all); n > mostValues {
		return strings.Join(all[:mostValues], "; ") + fmt.Sprintf("; and %d more", n-mostValues)
	}
	return strings.Join(all, "; ")
}
