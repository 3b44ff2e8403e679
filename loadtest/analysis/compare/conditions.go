package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/loadtest/results"
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

// details returns the properties of a run's plan and machine, by key.
func details(about results.About, plan *scenario.Plan) map[string]string {
	all := map[string]string{}
	for _, part := range []any{about, plan} {
		var v any
		b, err := json.Marshal(part)
		if err == nil && json.Unmarshal(b, &v) == nil {
			flatten(all, "", v)
		}
	}
	if plan != nil && plan.BuiltIn {
		delete(all, "target") // it has another port in each run
	}
	return all
}

// flatten adds the leaves of a JSON value; lists are leaves.
func flatten(into map[string]string, key string, v any) {
	if object, ok := v.(map[string]any); ok {
		for name, inner := range object {
			path := name
			if key != "" {
				path = key + "." + name
			}
			flatten(into, path, inner)
		}
		return
	}
	if ignored(key) {
		return
	}
	text, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			return
		}
		text = string(b)
	}
	if key == "steps" {
		text = stepsText(v)
	}
	into[key] = cut(text)
}

func cut(text string) string {
	if len(text) > mostValue {
		return strings.ToValidUTF8(text[:mostValue], "") + " ..."
	}
	return text
}

// stepsText formats the steps of a plan without the parts that all steps share.
func stepsText(v any) string {
	list, _ := v.([]any)
	var all []string
	for _, one := range list {
		step, _ := one.(map[string]any)
		if step == nil {
			continue
		}
		load := step["clients"]
		if rate, open := step["rate"]; open {
			load = rate
		}
		all = append(all, fmt.Sprintf("%v for %v", load, step["duration"]))
	}
	return strings.Join(all, ", ")
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
