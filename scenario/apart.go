package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/say"
)

// Apart returns the part of the plan with that number (from 1) of so many, for
// a machine that carries it out by itself; merged with
// all others it is the whole again. What the whole must meet is not asked of a part.
// It has workers of its own if the plan has; but with On.Apart those are the parts.
func (p *Plan) Apart(number, of int) (*Plan, error) {
	switch most := p.MostClients(); {
	case of < 1 || number < 1 || number > of:
		return nil, fmt.Errorf("part %d of %d: use 1/%d to %d/%d", number, of, max(of, 1), max(of, 1), max(of, 1))
	case p.Part != nil:
		return nil, fmt.Errorf("this plan is part %d of %d already", p.Part.Number, p.Part.Of)
	case p.Find != nil:
		return nil, errors.New("a search cannot be carried out in parts: which load comes next hangs on what all together gave")
	case len(p.Links) > 0:
		return nil, errors.New("link: each part would have links of its own: leave link out")
	case p.BuiltIn || p.Target == BuiltIn:
		return nil, errors.New("target: each part would have a built-in server of its own: name a service that all machines reach")
	case of > most:
		return nil, fmt.Errorf("%s cannot be in %d parts", say.Plural(most, "client"), of)
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
		return 0, 0, fmt.Errorf("%s: write which part of how many, as in 3/10", quote(text))
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
			return fmt.Errorf("plan: step %d has %d clients: part %d of %d has %d", i+1, p.Steps[i].Clients, part.Number, part.Of, want.Steps[i].Clients)
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
	c.Hosts, c.Thresholds, c.Boundaries, c.Part, c.On, c.Balancer = nil, nil, nil, nil, On{}, Balancer{}
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
