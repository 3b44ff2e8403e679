package scenario

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/redact"
)

// Portable returns a plan for workers on other machines, and the files (or folders) of this machine
// that must be in their working folder, by their names in that plan. It returns an error if the
// plan names something that cannot be transferred.
func (p *Plan) Portable() (there *Plan, files map[string]string, err error) {
	c := *p.own()
	files = map[string]string{}
	if c.Auth.TokenVariable != "" {
		err = errors.Join(err, stays("token_variable", c.Auth.TokenVariable, "token_file"))
	}
	if c.Auth.PasswordVariable != "" {
		err = errors.Join(err, stays("password_variable", c.Auth.PasswordVariable, "password_file"))
	}
	for key, path := range paths(&c.Files, &c.Auth, c.Origin, nil) {
		if *path == "" {
			continue
		}
		name := strings.ReplaceAll(key, ".", "_")
		from, absolute := filepath.Abs(*path)
		err = errors.Join(err, absolute)
		files[name], *path = from, name
	}
	return &c, files, err
}

func stays(key, variable, file string) error {
	return fmt.Errorf("auth.%s: the variable %s is not available to clients on other machines; name a file that holds the secret with auth.%s",
		key, variable, file)
}

// ValidateRemote returns the reason why workers on other machines cannot execute the plan; nil if
// they can.
func (p *Plan) ValidateRemote() error {
	far := p.On.Batch.Elsewhere()
	switch {
	case p.On.Batch == "":
		return nil
	case far && (p.Target == BuiltIn || p.BuiltIn) && len(p.Links) == 0:
		return errors.New("target: other machines cannot reach the built-in server; start one with weir serve --listen HOST:PORT --public, " +
			"and name its URL")
	case p.On.JobPerClient && p.Work.Job != nil && p.Work.Job.Quota != 0:
		return errors.New("workload.job.scratch_quota: with on.job_per_client each client is a job of its own, whose disk the batch system " +
			"limits; omit it, or set the limit with on.submit, as in request_disk = 2GB")
	case p.Find != nil && p.On.JobPerClient:
		return errors.New("on.job_per_client: a search chooses the length of each step itself; omit job_per_client")
	}
	return nil
}

// RemoteWarnings returns the differences that may exist between other machines and this machine,
// one sentence for each.
func (p *Plan) RemoteWarnings() []string {
	if p.On.Batch == "" {
		return nil
	}
	var all []string
	u, err := url.Parse(p.Target)
	far := p.On.Batch.Elsewhere()
	switch {
	case err != nil:
	case u.Scheme == "simulated":
		all = append(all, "each worker has a simulated service of its own")
	case far && u.Scheme == "file":
		all = append(all, fmt.Sprintf("%s is a folder of each worker's own machine: it is one service only if all of them share it", p.Target))
	case far && loopback(u.Hostname()) && len(p.Links) == 0: // over links all workers reach the same hosts as this machine
		all = append(all, fmt.Sprintf("%s is this machine only for workers that run on it: others look for the service on their own machines",
			u.Hostname()))
	}
	if far && len(p.Command) > 0 {
		all = append(all, fmt.Sprintf("%s must be installed on the workers' machines: only weir itself travels", p.Command[0]))
	}
	return all
}

func loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == thisMachine || ip != nil && ip.IsLoopback()
}

// addresses returns the texts of the plan that may contain secrets, by their keys: URLs of the
// target and of pages, the client's command and options for the batch system.
func (p *Plan) addresses() map[string]*string {
	all := map[string]*string{"target": &p.Target, "balancer.haproxy": &p.Balancer.HAProxy, "balancer.ipvs": &p.Balancer.IPVS}
	if p.Origin != nil {
		all["origin.url"] = &p.Origin.URL
	}
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

// own returns a copy of the plan with its own copies of all addresses.
func (p *Plan) own() *Plan {
	c := *p
	c.Others, c.Command, c.Hosts, c.On.Submit = slices.Clone(p.Others), slices.Clone(p.Command), slices.Clone(p.Hosts),
		slices.Clone(p.On.Submit)
	if p.Origin != nil {
		c.Origin = new(*p.Origin)
	}
	return &c
}

// public returns the text of a key without its secrets.
func public(key, text string) string {
	if strings.HasPrefix(key, "client.") || strings.HasPrefix(key, "on.") {
		return redact.Text(text) // words, at most one of them with a URL
	}
	return redact.URL(text)
}

// Public returns the plan without the secrets in its addresses, so that it may be written, shown
// and kept.
func (p *Plan) Public() *Plan {
	c := p.own()
	for key, text := range c.addresses() {
		*text = public(key, *text)
	}
	return c
}

// Secrets returns the texts of the plan that may contain secrets.
func (p *Plan) Secrets() (all []string) {
	for _, text := range p.addresses() {
		all = append(all, *text)
	}
	return all
}

// Redacted returns the keys whose secrets are missing in the plan because Public removed them: such
// a plan cannot be run.
func (p *Plan) Redacted() (keys []string) {
	for key, text := range p.addresses() {
		if redact.Has(*text) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Complete returns the plan with the secrets of its targets from target: a URL, or a list of URLs
// in the form of a scenario. target is "" if it is unknown. It is an error if target differs from
// the target of the plan, if it is given although the plan has all secrets, or if the plan still
// lacks secrets afterwards.
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
		if redact.URL(given.Target) != p.Target || !slices.EqualFunc(given.Others, p.Others,
			func(a, b string) bool { return redact.URL(a) == b }) {
			return nil, fmt.Errorf("--target: %s is not the target of this plan, which is %s", redact.Text(target), strings.Join(p.Endpoints(),
				", "))
		}
		c.Target, c.Others = given.Target, given.Others
		lacks = c.Redacted()
	}
	switch {
	case len(lacks) == 0:
		return c, nil
	case lacks[0] == "target" || strings.HasPrefix(lacks[0], "target."):
		return nil, fmt.Errorf("%s: the secret in %s was not kept: name the whole target again: weir run --resume DIR --target URL, "+
			"weir find URL --resume DIR, or weir clean DIR --target URL", lacks[0], *c.addresses()[lacks[0]])
	}
	return nil, fmt.Errorf("%s: the secret in %s was not kept: start a new run from its scenario", lacks[0], *c.addresses()[lacks[0]])
}
