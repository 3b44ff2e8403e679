package scenario

import (
	"reflect"
	"slices"
	"strings"

	"weir/internal/unit"
	"weir/workload"
)

// Bounds of a load.
const (
	maxSteps   = 1000
	maxClients = 1_000_000
)

// command decodes xrdcp, or {command: [program, argument, ...]}.
func (d *decoder) command(n *node, path string, c *Command) {
	switch {
	case n.kind == mapping:
		d.fields(n, path, reflect.ValueOf(c).Elem())
		if at, given := d.where[path+".command"]; len(c.Command) == 0 && (!given || len(d.mistakes) == 0) {
			if !given {
				at = n.at
			}
			d.say(at, "%s: missing; name the program and its arguments, as in {command: [xrdcp, -f, \"{url}\", /dev/null]}", path)
		}
	case !d.plain(n, path):
	case strings.TrimSpace(n.text) == "":
		d.say(n.at, "%s: missing; name a program, as in client: xrdcp", path)
	case strings.ContainsAny(n.text, " \t"):
		d.say(n.at, "%s: %s is more than a name; write {command: [%s]}", path, quote(n.text), strings.Join(strings.Fields(n.text), ", "))
	case !slices.Contains(words()["client"], n.text):
		d.say(n.at, "%s: unknown program %s%s A program of your own is written with its arguments, as in {command: [%s, \"{url}\"]}",
			path, quote(n.text), sentence(meant(n.text, words()["client"])), n.text)
	default:
		c.Command = []string{n.text}
	}
}

// drawn decodes a Span or Dist: a single value is always the same, a map
// holds one of its ways to draw.
func (d *decoder) drawn(n *node, path string, v reflect.Value) {
	v.SetZero()
	fixed, _ := fieldOf(v, "fixed")
	var ways []string
	for _, name := range fieldNames(v.Type()) {
		if name != "fixed" {
			ways = append(ways, name)
		}
	}
	switch {
	case n.kind == scalar:
		before := len(d.mistakes)
		d.value(n, path, fixed)
		if _, ok := v.Addr().Interface().(*workload.Dist); ok && fixed.Int() == 0 && len(d.mistakes) == before {
			d.say(n.at, "%s: %s; a file has at least one byte", path, quote(n.text))
		}
	case n.kind == list:
		d.say(n.at, "%s: a list; write {uniform: [from, to]} to draw between two values", path)
	case len(n.entries) != 1:
		d.say(n.at, "%s: write one value, or a map with one of %s", path, strings.Join(ways, ", "))
	default:
		d.fields(n, path, v)
		d.uniform(n, path, v)
	}
	if x, ok := v.Addr().Interface().(*workload.Dist); ok && n.kind == mapping {
		d.sizes(n, path, x)
	}
}

// uniform checks that there are two values, the lower first.
func (d *decoder) uniform(n *node, path string, v reflect.Value) {
	field, _ := fieldOf(v, "uniform")
	from := n.get("uniform")
	if from == nil || from.kind != list {
		return
	}
	switch {
	case field.Len() != 2:
		d.say(from.at, "%s.uniform: write two values, the lower first, as in [1, 3] with their units", path)
	case field.Index(0).Int() > field.Index(1).Int():
		d.say(from.at, "%s.uniform: the first value is larger; write the lower value first", path)
	}
}

// sizes checks the sizes that carry weights.
func (d *decoder) sizes(n *node, path string, x *workload.Dist) {
	weights := n.get("weights")
	if weights == nil || weights.kind != mapping {
		return
	}
	sum := 0.0
	for _, e := range weights.entries {
		if _, err := unit.ParseSize(e.key); err != nil {
			d.say(e.at, "%s.weights: %v", path, err)
		}
		sum += x.Weights[e.key]
	}
	if !(sum > 0) {
		d.say(weights.at, "%s.weights: give at least one size a weight above 0, as in {1MiB: 3, 1GiB: 1}", path)
	}
}

// sentence ends text if it does not end yet.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
