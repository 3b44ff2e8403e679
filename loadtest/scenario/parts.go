package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/document"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/link"
	"weir/monitor"
)

// Share returns part i of n of the plan (0 <= i < n), so that n runs at the
// same time do together what the plan says: its part of every step's clients,
// with client numbers that no other part has; of every rate, in proportion to
// the clients that may serve it; and of the operations and bytes after which
// to stop. A part may have steps without clients, if there are fewer than n.
//
// With links, n is a multiple of the number of sites, and part i is at site i
// modulo that number: the links' shares say how many clients that site has.
//
// A part that has clients is never left without a bound that the plan has: it
// gets at least one operation or byte, so that if Stop.Count or Stop.Bytes is
// less than n they can be exceeded by up to n-1.
func (p *Plan) Share(i, n int) *Plan {
	s := *p
	s.Steps = make([]Step, len(p.Steps))
	most := p.MostClients()
	for k, step := range p.Steps {
		whole := step.Clients
		_, step.Clients = p.part(whole, i, n)
		if step.Clients < whole {
			step.Rate *= unit.Rate(step.Clients) / unit.Rate(whole)
		}
		s.Steps[k] = step
	}
	from, mine := p.part(most, i, n)
	until := from + mine
	s.First = p.First + from
	s.Stop.Count = portion(p.Stop.Count, from, until, most)
	s.Stop.Bytes = unit.Size(portion(int64(p.Stop.Bytes), from, until, most))
	return &s
}

// part returns how many of total clients fall to part i of n, and how many to
// the parts before it.
func (p *Plan) part(total, i, n int) (from, mine int) {
	if len(p.Links) == 0 {
		return before(total, i, n), part(total, i, n)
	}
	dealt := link.Deal(total, p.Links.Sites())
	sites := len(dealt)
	for k := range i {
		from += part(dealt[k%sites], k/sites, n/sites)
	}
	return from, part(dealt[i%sites], i/sites, n/sites)
}

// part returns how many of total fall to part i of n. It never falls when
// total grows, so that client numbers of one step fit in those of a larger.
func part(total, i, n int) int {
	if i < total%n {
		return total/n + 1
	}
	return total / n
}

// before returns how many of total fall to the parts before i.
func before(total, i, n int) int { return total/n*i + min(i, total%n) }

// portion returns what falls to the clients from (and until) of most when
// total is dealt out evenly among them; at least 1 if there are any.
func portion(total int64, from, until, most int) int64 {
	if total <= 0 || until == from {
		return 0
	}
	upTo := func(k int) int64 {
		high, low := bits.Mul64(uint64(total), uint64(k))
		quotient, _ := bits.Div64(high, low, uint64(most))
		return int64(quotient)
	}
	return max(upTo(until)-upTo(from), 1)
}

// Apart returns the part of the plan with that number (from 1) of so many, for
// a machine that carries it out by itself; merged with
// all others it is the whole again. What the whole must meet is not asked of a part.
// It has workers of its own if the plan has; but with On.Apart those are the parts.
func (p *Plan) Apart(number, of int) (*Plan, error) {
	switch most := p.MostClients(); {
	case of < 1 || number < 1 || number > of:
		return nil, fmt.Errorf("part %d of %d is out of range; use 1/%d to %d/%d", number, of, max(of, 1), max(of, 1), max(of, 1))
	case p.Part != nil:
		return nil, fmt.Errorf("this plan is part %d of %d already", p.Part.Number, p.Part.Of)
	case p.Find != nil:
		return nil, errors.New("a search cannot be split into parts, because the next step depends on the combined results")
	case len(p.Links) > 0:
		return nil, errors.New("link: each part would have its own links; omit link")
	case p.BuiltIn || p.Target == BuiltIn:
		return nil, errors.New("target: each part would have its own built-in server; name a service that all machines can reach")
	case of > most:
		return nil, fmt.Errorf("%s cannot be split into %d parts; use fewer", say.Plural(most, "client"), of)
	}
	whole := *p
	s := whole.Share(number-1, of)
	s.Thresholds, s.Boundaries = nil, nil
	if s.On.Apart {
		s.On = On{}
	}
	s.Part = &Part{Number: number, Of: of, Whole: &whole}
	return s, nil
}

// ParsePart reads NUMBER/OF, as in 3/10.
func ParsePart(text string) (number, of int, err error) {
	a, b, ok := strings.Cut(text, "/")
	number, errA := strconv.Atoi(a)
	of, errB := strconv.Atoi(b)
	if !ok || errA != nil || errB != nil {
		return 0, 0, fmt.Errorf("%s; write which part of how many, as in 3/10", document.Quote(text))
	}
	return number, of, nil
}

// BeginAt puts the plan's steps on the clock, so that machines that carry out
// parts of it hold each step at the same time: the first begins at t, each other
// one when those before have had their time.
func (p *Plan) BeginAt(t time.Time) {
	p.Steps = slices.Clone(p.Steps)
	for i := range p.Steps {
		p.Steps[i].Begin = t
		t = t.Add(p.Steps[i].Time())
	}
}

// check refuses what Apart does not make.
func (part *Part) check(p *Plan) error {
	if part.Whole == nil {
		return errors.New("plan: part: the whole plan is missing")
	}
	if part.Whole.Part != nil {
		return errors.New("plan: part: the whole plan is a part itself")
	}
	if err := part.Whole.check(); err != nil {
		return fmt.Errorf("plan: part: whole: %w", err)
	}
	want, err := part.Whole.Apart(part.Number, part.Of)
	if err != nil {
		return fmt.Errorf("plan: part: %w", err)
	}
	if len(want.Steps) != len(p.Steps) || want.First != p.First {
		return fmt.Errorf("plan: this is not part %d of %d of its whole plan", part.Number, part.Of)
	}
	for i := range want.Steps {
		if want.Steps[i].Clients != p.Steps[i].Clients {
			return fmt.Errorf("plan: step %d has %d clients: part %d of %d has %d", i+1, p.Steps[i].Clients, part.Number, part.Of,
				want.Steps[i].Clients)
		}
	}
	return nil
}

// Differs names the keys in which what two plans do is not the same, sorted;
// none: runs of both can be added up. Where files lie on the machine that
// carries it out, what it watches, what the result must meet and when it begins
// does not count.
func (p *Plan) Differs(o *Plan) []string {
	a, b := p.bare(), o.bare()
	var keys []string
	for k, v := range a {
		if string(b[k]) != string(v) {
			keys = append(keys, k)
		}
	}
	for k := range b {
		if _, both := a[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// bare is what of the plan counts in Differs, by key.
func (p *Plan) bare() map[string]json.RawMessage {
	c := *p
	for _, path := range paths(&c.Files, &c.Auth, nil) {
		if *path != "" {
			*path = "a file"
		}
	}
	c.Hosts, c.Thresholds, c.Boundaries, c.Part, c.On, c.Balancer = nil, nil, nil, nil, On{}, monitor.BalancerConfig{}
	c.Steps = slices.Clone(c.Steps)
	for i := range c.Steps {
		c.Steps[i].Begin = time.Time{}
	}
	var keys map[string]json.RawMessage
	if b, err := json.Marshal(&c); err != nil || json.Unmarshal(b, &keys) != nil {
		return nil // no plan that was read or made
	}
	return keys
}
