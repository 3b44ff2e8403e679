package scenario

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"weir/internal/unit"
	"weir/workload"
)

// counts decodes 10, "1,2,4", [1, 2, 4] or {from: 1, to: 256, by: x2}.
func (d *decoder) counts(n *node, path string) Counts {
	return series(d, n, path, progression[int]{count, "{from: 1, to: 256, by: x2} or {from: 10, to: 100, by: +10}"})
}

// rates decodes 10/s, "10/s,20/s", [10/s, 20/s] or {from: 10/s, to: 100/s, by: x2}.
func (d *decoder) rates(n *node, path string) Rates {
	return series(d, n, path, progression[unit.Rate]{
		parse: func(text string) (unit.Rate, error) {
			r, err := unit.ParseRate(text)
			if err == nil && !(r > 0) {
				err = fmt.Errorf("%s; use a rate above 0", quote(text))
			}
			return r, err
		},
		example: "{from: 10/s, to: 100/s, by: x2} or {from: 10/s, to: 100/s, by: +10/s}",
	})
}

func count(text string) (int, error) {
	x, err := whole(strings.TrimSpace(text))
	switch {
	case err != nil:
		return 0, err
	case x < 1:
		return 0, fmt.Errorf("%s; a step has at least one client", quote(text))
	case x > maxClients:
		return 0, fmt.Errorf("%s; a step has at most %d clients", quote(text), maxClients)
	}
	return int(x), nil
}

// A progression is how the values of steps are written.
type progression[T int | unit.Rate] struct {
	parse   func(string) (T, error)
	example string
}

func series[T int | unit.Rate](d *decoder, n *node, path string, p progression[T]) []T {
	var texts []*node
	switch n.kind {
	case mapping:
		return ladder(d, n, path, p)
	case list:
		texts = n.items
	default:
		for _, text := range strings.Split(n.text, ",") {
			texts = append(texts, &node{text: strings.TrimSpace(text), at: n.at})
		}
	}
	if len(texts) == 0 || len(texts) > maxSteps {
		d.say(n.at, "%s: %d steps; write 1 to %d", path, len(texts), maxSteps)
		return nil
	}
	out := make([]T, 0, len(texts))
	for i, item := range texts {
		name := path
		if n.kind == list {
			name = path + "." + strconv.Itoa(i)
		}
		if item.kind != scalar {
			d.say(item.at, "%s: %s; write one number", name, item.what())
			continue
		}
		x, err := p.parse(item.text)
		d.wrong(item, name, err)
		out = append(out, x)
	}
	return out
}

// ladder decodes {from, to, by}. It goes down if to is below from, and ends
// at the last value that is not beyond to.
func ladder[T int | unit.Rate](d *decoder, n *node, path string, p progression[T]) []T {
	before := len(d.mistakes)
	var ends [2]T
	for i, key := range []string{"from", "to"} {
		v := n.get(key)
		if v == nil || v.kind != scalar {
			d.say(n.at, "%s: needs %s, as in %s", path, key, p.example)
			continue
		}
		var err error
		ends[i], err = p.parse(v.text)
		d.wrong(v, path+"."+key, err)
	}
	for _, e := range n.entries {
		if e.key != "from" && e.key != "to" && e.key != "by" {
			d.say(e.at, "unknown key %s%s", path+"."+e.key, meant(e.key, []string{"from", "to", "by"}))
		}
	}
	by := n.get("by")
	if by == nil || by.kind != scalar {
		d.say(n.at, "%s: needs by, as in %s", path, p.example)
	}
	if len(d.mistakes) > before {
		return nil
	}
	next, err := p.step(by.text, ends[1] < ends[0])
	if err != nil {
		d.wrong(by, path+".by", err)
		return nil
	}
	out := []T{}
	for x := ends[0]; len(out) <= maxSteps && x > 0 && (ends[0] <= ends[1]) == (x <= ends[1]) || x == ends[1]; {
		out = append(out, x)
		y := next(x)
		if y == x || len(out) > maxSteps {
			d.say(by.at, "%s.by: %s makes more than %d steps, or repeats one; use another step", path, quote(by.text), maxSteps)
			return nil
		}
		x = y
	}
	return out
}

// step returns what goes from one value to the next.
func (p progression[T]) step(text string, down bool) (func(T) T, error) {
	if digits, ok := strings.CutPrefix(text, "x"); ok {
		factor, err := strconv.ParseFloat(digits, 64)
		if err != nil || !(factor > 1) || factor > 1e6 {
			return nil, fmt.Errorf("%s; write a factor above 1, as in x2", quote(text))
		}
		if down {
			factor = 1 / factor
		}
		return func(x T) T { return T(float64(x) * factor) }, nil
	}
	by, err := p.parse(strings.TrimPrefix(text, "+"))
	if err != nil {
		return nil, errors.New(quote(text) + "; write the increment, as in " + p.example)
	}
	if down {
		by = -by
	}
	return func(x T) T { return x + by }, nil
}

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
