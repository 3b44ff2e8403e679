package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"weir/internal/unit"
)

// counts decodes 10, "1,2,4", [1, 2, 4] or {from: 1, to: 256, by: x2}.
func (d *decoder) counts(n *node, path string) Counts {
	return series(d, n, path, progression[int]{
		parse: count, again: func(x, by int) int { return x + by }, back: func(x, by int) int { return x - by },
		scaled: func(x int, f float64) int { return int(float64(x) * f) }, example: "{from: 1, to: 256, by: x2} or {from: 10, to: 100, by: +10}",
	})
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
		again: func(x, by unit.Rate) unit.Rate { return x + by }, back: func(x, by unit.Rate) unit.Rate { return x - by },
		scaled:  func(x unit.Rate, f float64) unit.Rate { return x * unit.Rate(f) },
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

// A progression is how the values of steps are read and go on.
type progression[T int | unit.Rate] struct {
	parse       func(string) (T, error)
	again, back func(x, by T) T
	scaled      func(x T, factor float64) T
	example     string
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
		return func(x T) T { return p.scaled(x, factor) }, nil
	}
	by, err := p.parse(strings.TrimPrefix(text, "+"))
	if err != nil {
		return nil, errors.New(quote(text) + "; write the increment, as in " + p.example)
	}
	if down {
		return func(x T) T { return p.back(x, by) }, nil
	}
	return func(x T) T { return p.again(x, by) }, nil
}
