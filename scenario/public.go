package scenario

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/redact"
)

// addresses returns the texts of the plan that may hold secrets, by their keys: URLs of
// the target and of pages, the client's command and options for the batch system.
func (p *Plan) addresses() map[string]*string {
	all := map[string]*string{"target": &p.Target, "balancer.haproxy": &p.Balancer.HAProxy, "balancer.ipvs": &p.Balancer.IPVS}
	for i := range p.Others {
		all[fmt.Sprintf("target.%d", i+1)] = &p.Others[i]
	}
	for i := range p.Command {
		all[fmt.Sprintf("client.command.%d", i)] = &p.Command[i]
	}
	for i := range p.Hosts {
		all[fmt.Sprintf("hosts.%d.node_exporter", i)] = &p.Hosts[i].NodeExporter
	}
	for i := range p.On.Submit {
		all[fmt.Sprintf("on.submit.%d", i)] = &p.On.Submit[i]
	}
	return all
}

// own returns a copy of the plan that shares none of its addresses.
func (p *Plan) own() *Plan {
	c := *p
	c.Others, c.Command, c.Hosts, c.On.Submit = slices.Clone(p.Others), slices.Clone(p.Command), slices.Clone(p.Hosts), slices.Clone(p.On.Submit)
	return &c
}

// public returns the text of a key without its secrets.
func public(key, text string) string {
	if strings.HasPrefix(key, "client.") || strings.HasPrefix(key, "on.") {
		return redact.Text(text) // words, with a URL in one or none
	}
	return redact.URL(text)
}

// Public returns the plan as it may be written, shown and kept: without the secrets in its
// addresses.
func (p *Plan) Public() *Plan {
	c := p.own()
	for key, text := range c.addresses() {
		*text = public(key, *text)
	}
	if p.Part != nil {
		part := *p.Part
		if part.Whole != nil {
			part.Whole = part.Whole.Public()
		}
		c.Part = &part
	}
	return c
}

// Secrets returns the texts of the plan that may hold secrets.
func (p *Plan) Secrets() (all []string) {
	for _, text := range p.addresses() {
		all = append(all, *text)
	}
	return all
}

// Redacted returns the keys whose secrets the plan does not have, since Public removed
// them: such a plan cannot be run.
func (p *Plan) Redacted() (keys []string) {
	for key, text := range p.addresses() {
		if redact.Has(*text) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Complete returns the plan with the secrets of its targets, which target has: a URL, or
// a list of them as a scenario has it. target is "" where nothing is known. It is an error
// if the target is another one than the plan's, if it is given and the plan lacks nothing,
// or if the plan lacks secrets then.
func (p *Plan) Complete(target string) (*Plan, error) {
	lacks := p.Redacted()
	c := p.own()
	if target != "" {
		if !slices.ContainsFunc(lacks, func(key string) bool { return key == "target" || strings.HasPrefix(key, "target.") }) {
			return nil, fmt.Errorf("--target %s; omit it: the target is known", redact.URL(p.Target))
		}
		given, err := DefaultWith(target, []string{"target=" + target})
		if err != nil {
			return nil, err
		}
		if redact.URL(given.Target) != p.Target || !slices.EqualFunc(given.Others, p.Others, func(a, b string) bool { return redact.URL(a) == b }) {
			return nil, fmt.Errorf("--target: %s is not the target of this plan, which is %s", redact.Text(target), strings.Join(p.Doors(), ", "))
		}
		c.Target, c.Others = given.Target, given.Others
		lacks = c.Redacted()
	}
	switch {
	case len(lacks) == 0:
		return c, nil
	case lacks[0] == "target" || strings.HasPrefix(lacks[0], "target."):
		return nil, fmt.Errorf("%s: the secret in %s was not kept: name the whole target again: weir run --resume DIR --target URL, weir find URL --resume DIR, or weir clean DIR --target URL", lacks[0], *c.addresses()[lacks[0]])
	}
	return nil, fmt.Errorf("%s: the secret in %s was not kept: start a new run from its scenario", lacks[0], *c.addresses()[lacks[0]])
}
