package scenario

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
)

// Portable returns the plan as it is for workers elsewhere, and which files (or
// folders) of this machine must be in their working folder, by the names that
// the plan gives them there. It is an error if something that the plan names cannot travel.
func (p *Plan) Portable() (there *Plan, files map[string]string, err error) {
	c := *p
	files = map[string]string{}
	if c.Auth.TokenVariable != "" {
		err = errors.Join(err, stays("token_variable", c.Auth.TokenVariable, "token_file"))
	}
	if c.Auth.PasswordVariable != "" {
		err = errors.Join(err, stays("password_variable", c.Auth.PasswordVariable, "password_file"))
	}
	for key, path := range paths(&c.Files, &c.Auth, nil) {
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
	return fmt.Errorf("auth.%s: the variable %s is not available to clients on other machines; name a file that holds the secret with auth.%s", key, variable, file)
}

// ValidateRemote says why workers on other machines cannot do what the plan says; nil if
// they can.
func (p *Plan) ValidateRemote() error {
	far := p.On.Batch != "" && p.On.Batch != "local"
	switch {
	case p.On.Batch == "":
		return nil
	case far && (p.Target == BuiltIn || p.BuiltIn):
		return errors.New("target: other machines cannot reach the built-in server; start one with weir serve --listen HOST:PORT --public, and name its URL")
	case far && p.Work.Job != nil && p.Work.Job.Access == "staged":
		return errors.New("workload.job.access: staged jobs copy to a disk of this machine, and the clients are on others; use direct")
	case p.On.Apart && p.On.Workers > p.MostClients():
		return fmt.Errorf("on.workers: %d workers are more than the %d clients; use fewer", p.On.Workers, p.MostClients())
	case p.Find != nil && p.On.Apart:
		return errors.New("on.apart: a search needs the combined results of all workers during the run; omit apart")
	case p.Find != nil && p.On.JobPerClient:
		return errors.New("on.job_per_client: a search chooses the length of each step itself; omit job_per_client")
	}
	return nil
}

// RemoteWarnings says what of the plan may not be the same on other machines as here: a
// sentence each.
func (p *Plan) RemoteWarnings() []string {
	if p.On.Batch == "" {
		return nil
	}
	var all []string
	u, err := url.Parse(p.Target)
	switch far := p.On.Batch != "local"; {
	case err != nil:
	case u.Scheme == "simulated":
		all = append(all, "each worker has a simulated service of its own")
	case far && u.Scheme == "file":
		all = append(all, fmt.Sprintf("%s is a folder of each worker's own machine: it is one service only if all of them share it", p.Target))
	case far && loopback(u.Hostname()):
		all = append(all, fmt.Sprintf("%s is this machine only for workers that run on it: others look for the service on their own machines", u.Hostname()))
	}
	if len(p.Command) > 0 && p.On.Batch != "local" {
		all = append(all, fmt.Sprintf("%s must be installed on the workers' machines: only weir itself travels", p.Command[0]))
	}
	return all
}

func loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == thisMachine || ip != nil && ip.IsLoopback()
}
