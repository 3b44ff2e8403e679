package scenario

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"weir/internal/document"
	"weir/internal/unit"
)

// counts decodes 10, "1,2,4", 1..100, [1, 2, 4] or {from: 1, to: 256, by: x2}.
func (d *decoder) counts(n *document.Node, path string) Counts {
	return series(d, n, path, progression[int]{count, "{from: 1, to: 256, by: x2} or {from: 10, to: 100, by: +10}"})
}

// rates decodes 10/s, "10/s,20/s", 10/s..80/s, [10/s, 20/s] or {from: 10/s, to: 100/s, by: x2}.
func (d *decoder) rates(n *document.Node, path string) Rates {
	return series(d, n, path, progression[unit.Rate]{
		parse: func(text string) (unit.Rate, error) {
			r, err := unit.ParseRate(text)
			if err == nil && !(r > 0) {
				err = fmt.Errorf("%s; use a rate above 0", document.Quote(text))
			}
			return r, err
		},
		example: "{from: 10/s, to: 100/s, by: x2} or {from: 10/s, to: 100/s, by: +10/s}",
	})
}

func count(text string) (int, error) {
	x, err := document.Whole(strings.TrimSpace(text))
	switch {
	case err != nil:
		return 0, err
	case x < 1:
		return 0, fmt.Errorf("%s; a step has at least one client", document.Quote(text))
	case x > maxClients:
		return 0, fmt.Errorf("%s; a step has at most %d clients", document.Quote(text), maxClients)
	}
	return int(x), nil
}

// A progression is a notation for the values of steps.
type progression[T int | unit.Rate] struct {
	parse   func(string) (T, error)
	example string
}

func series[T int | unit.Rate](d *decoder, n *document.Node, path string, p progression[T]) []T {
	var texts []*document.Node
	switch n.Kind {
	case document.Map:
		return ladder(d, n, path, p)
	case document.List:
		texts = n.Items
	default:
		for _, text := range strings.Split(n.Text, ",") {
			texts = append(texts, &document.Node{Text: strings.TrimSpace(text), At: n.At})
		}
	}
	if len(texts) == 0 || len(texts) > maxSteps {
		d.Say(n.At, "%s: %d steps; write 1 to %d", path, len(texts), maxSteps)
		return nil
	}
	out := make([]T, 0, len(texts))
	for i, item := range texts {
		name := path
		if n.Kind == document.List {
			name = path + "." + strconv.Itoa(i)
		}
		if item.Kind != document.Scalar {
			d.Say(item.At, "%s: %s; write one number", name, item.Describe())
			continue
		}
		values, err := p.span(item.Text)
		d.Wrong(item, name, err)
		out = append(out, values...)
	}
	if len(out) > maxSteps {
		d.Say(n.At, "%s: %d steps; write 1 to %d", path, len(out), maxSteps)
		return nil
	}
	return out
}

// span reads one value, or a range such as 1..100: its values are doubled, or halved if the range
// goes down, and its last value is the end of the range.
func (p progression[T]) span(text string) ([]T, error) {
	from, to, isRange := strings.Cut(text, "..")
	x, err := p.parse(strings.TrimSpace(from))
	if err != nil || !isRange {
		return []T{x}, err
	}
	last, err := p.parse(strings.TrimSpace(to))
	if err != nil {
		return nil, err
	}
	var all []T
	for down := last < x; x != last && (last < x) == down; {
		all = append(all, x)
		if down {
			x /= 2
		} else {
			x *= 2
		}
	}
	return append(all, last), nil
}

// ladder decodes {from, to, by}. It goes down if to is below from, and ends
// at the last value that is not beyond to.
func ladder[T int | unit.Rate](d *decoder, n *document.Node, path string, p progression[T]) []T {
	before := len(d.Mistakes)
	var ends [2]T
	for i, key := range []string{"from", "to"} {
		v := n.Get(key)
		if v == nil || v.Kind != document.Scalar {
			d.Say(n.At, "%s: needs %s, as in %s", path, key, p.example)
			continue
		}
		var err error
		ends[i], err = p.parse(v.Text)
		d.Wrong(v, path+"."+key, err)
	}
	for _, e := range n.Entries {
		if e.Key != "from" && e.Key != "to" && e.Key != "by" {
			d.Say(e.At, "unknown key %s%s", path+"."+e.Key, document.Meant(e.Key, []string{"from", "to", "by"}))
		}
	}
	by := n.Get("by")
	if by == nil || by.Kind != document.Scalar {
		d.Say(n.At, "%s: needs by, as in %s", path, p.example)
	}
	if len(d.Mistakes) > before {
		return nil
	}
	next, err := p.step(by.Text, ends[1] < ends[0])
	if err != nil {
		d.Wrong(by, path+".by", err)
		return nil
	}
	out := []T{}
	for x := ends[0]; len(out) <= maxSteps && x > 0 && (ends[0] <= ends[1]) == (x <= ends[1]) || x == ends[1]; {
		out = append(out, x)
		y := next(x)
		if y == x || len(out) > maxSteps {
			d.Say(by.At, "%s.by: %s makes more than %d steps, or repeats one; use another step", path, document.Quote(by.Text), maxSteps)
			return nil
		}
		x = y
	}
	return out
}

// step returns the function that computes the next value.
func (p progression[T]) step(text string, down bool) (func(T) T, error) {
	if digits, ok := strings.CutPrefix(text, "x"); ok {
		factor, err := strconv.ParseFloat(digits, 64)
		if err != nil || !(factor > 1) || factor > 1e6 {
			return nil, fmt.Errorf("%s; write a factor above 1, as in x2", document.Quote(text))
		}
		if down {
			factor = 1 / factor
		}
		return func(x T) T { return T(float64(x) * factor) }, nil
	}
	by, err := p.parse(strings.TrimPrefix(text, "+"))
	if err != nil {
		return nil, errors.New(document.Quote(text) + "; write the increment, as in " + p.example)
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
func (d *decoder) command(n *document.Node, path string, c *Command) {
	switch {
	case n.Kind == document.Map:
		d.Fields(n, path, reflect.ValueOf(c).Elem())
		if at, given := d.Where[path+".command"]; len(c.Command) == 0 && (!given || len(d.Mistakes) == 0) {
			if !given {
				at = n.At
			}
			d.Say(at, "%s: missing; name the program and its arguments, as in {command: [xrdcp, -f, \"{url}\", /dev/null]}", path)
		}
	case !d.Plain(n, path):
	case strings.TrimSpace(n.Text) == "":
		d.Say(n.At, "%s: missing; name a program, as in client: xrdcp", path)
	case strings.ContainsAny(n.Text, " \t"):
		d.Say(n.At, "%s: %s is more than a name; write {command: [%s]}", path, document.Quote(n.Text), strings.Join(strings.Fields(n.Text), ", "))
	case !slices.Contains(clientPrograms(), n.Text):
		d.Say(n.At, "%s: unknown program %s%s A program of your own is written with its arguments, as in {command: [%s, \"{url}\"]}",
			path, document.Quote(n.Text), sentence(document.Meant(n.Text, clientPrograms())), n.Text)
	default:
		c.Command = []string{n.Text}
	}
}

// sentence ends text if it does not end yet.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
