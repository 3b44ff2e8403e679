package scenario

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"weir/internal/document"
	"weir/internal/unit"
	"weir/loadtest/workload"
	"weir/storage"
)

// Plan decides all that is left to decide. drivers are the available protocols; the target's driver
// is found by its scheme, or it is the driver named "command" if there is a client program. The
// list file, if any, is read in order to check it. Its error is of type document.Mistakes, or comes
// from the list file.
func (s *Scenario) Plan(drivers []storage.Driver) (*Plan, error) {
	s.complete()
	if err := s.check(nil).Err(); err != nil {
		return nil, err
	}
	c := &checker{Scenario: s}
	c.one()
	driver := c.driverOf(drivers)
	if err := c.found.Err(); err != nil {
		return nil, err
	}
	if s.Files.List != "" {
		if _, err := ReadList(s.Files.List, s.FilesAt()); err != nil {
			return nil, err
		}
	}
	p := &Plan{
		Version: PlanVersion, Name: s.Name, Target: s.Target, Others: slices.Clone(s.Others), Server: s.Server, Balancer: s.Balancer,
		Driver:  driver.Name,
		Command: s.inputs(), Auth: s.Auth.Discovered(), Origin: s.Origin.plan(),
		Seed: s.Seed, Files: s.Files, Work: s.Work, Populations: slices.Clone(s.Populations),
		Links: slices.Clone(s.Links), On: s.On,
		Model: ClosedModel, GracefulStop: s.Load.GracefulStop, ErrorPause: s.Load.ErrorPause, Stop: s.Stop, Hosts: slices.Clone(s.Hosts),
		Thresholds: slices.Clone(s.Thresholds),
		Boundaries: slices.Clone(s.Boundaries), Events: slices.SortedStableFunc(slices.Values(s.Events), byTime),
	}
	l := s.Load
	if l.RetryAfter == IgnoreRetryAfter {
		p.RetryAfter = l.RetryAfter
	}
	for i, n := range l.Clients {
		p.Steps = append(p.Steps, Step{Number: i + 1, Clients: n, Jobs: l.Jobs, Ramp: l.Ramp, Warmup: l.Warmup, Duration: l.Duration})
	}
	for i, r := range l.Rate {
		p.Model = OpenModel
		p.Steps = append(p.Steps, Step{
			Number: i + 1, Clients: l.MaxClients, Rate: r, Poisson: l.Arrivals == "poisson", Ramp: l.Ramp, Warmup: l.Warmup, Duration: l.Duration,
		})
	}
	for i := range p.Steps[:max(len(p.Steps), 1)-1] {
		p.Steps[i].Cooldown = l.Cooldown // no pause after the last step
	}
	return p, nil
}

// one checks that the scenario describes a single run.
func (c *checker) one() {
	key := "matrix"
	if len(c.Matrix) == 0 {
		key = "repeat"
	}
	if n := c.Repeat * c.Matrix.Variants(); n > 1 {
		c.say(key, "this is a campaign of %d runs, but the command takes one run; remove it (--set matrix=null --set repeat=1), or use weir run",
			n)
	}
}

// serverScheme is the scheme of weir's own server.
const serverScheme = "http"

// driver finds the driver of the target and checks that it can do the work.
func (c *checker) driver(drivers []storage.Driver) storage.Driver {
	scheme := c.scheme()
	find := func(d storage.Driver) bool { return slices.Contains(d.Schemes, scheme) && d.Name != storage.Command }
	key := "target"
	if len(c.Client.Command) > 0 {
		find = func(d storage.Driver) bool { return d.Name == storage.Command }
		key = "client"
	}
	i := slices.IndexFunc(drivers, find)
	if i < 0 {
		c.say(key, "%s", nobody(key, scheme, drivers))
		return storage.Driver{}
	}
	d := drivers[i]
	for _, name := range c.operations() {
		var k storage.Kind
		if err := k.UnmarshalText([]byte(name)); err != nil || slices.Contains(d.Kinds, k) {
			continue
		}
		path := "workload.kind"
		if len(c.Work.Mix) > 0 {
			path = "workload.mix." + name
		}
		c.say(path, "clients of %s cannot %s: they can %s", d.Name, name, kindList(d.Kinds))
	}
	c.ownCommand()
	return d
}

// ownCommand checks that the direction of a command of the user matches the workload: with {source}
// it writes, without it reads.
func (c *checker) ownCommand() {
	if c.Work.Kind == workload.CommandJobWork || !c.Client.own() {
		return
	}
	writes := slices.ContainsFunc(c.Client.Command, func(arg string) bool { return strings.Contains(arg, "{source}") })
	for _, name := range c.operations() {
		switch {
		case name == "write" && !writes:
			c.say("client.command", "has no {source}, so it only reads; name the file to write with {source}")
		case name == "read" && writes:
			c.say("client.command", "has {source}, so it writes; use workload.kind write, or {dest} for the file that is read")
		case name != "read" && name != "write":
			c.say("client.command", "a custom command reads or writes; for workload.kind %s use one of %s", c.Work.Kind,
				strings.Join(clientPrograms(), ", "))
		}
	}
}

func nobody(key, scheme string, drivers []storage.Driver) string {
	if key == "client" {
		return "this program cannot run external programs; omit client"
	}
	var known []string
	for _, d := range drivers {
		if d.Name != storage.Command {
			known = append(known, d.Schemes...)
		}
	}
	programs := map[string]string{"ftp": "globus-url-copy", "gsiftp": "gfal-copy", "root": "xrdcp", "roots": "xrdcp", "xroot": "xrdcp",
		"srm": "gfal-copy", "s3": "gfal-copy", "s3s": "gfal-copy"}
	if program, ok := programs[scheme]; ok {
		return fmt.Sprintf("weir has no client for %s://; name a program that has, as in client: %s", scheme, program)
	}
	return fmt.Sprintf("unknown scheme %s%s", document.Quote(scheme), document.Meant(scheme, known))
}

func kindList(kinds []storage.Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.String()
	}
	return strings.Join(names, ", ")
}

// programTimeout is workload.timeout of a command-job: an analysis takes longer than a request.
const programTimeout = unit.Duration(3600e9)

// transferPlaceholder matches a placeholder of commands that read or write a file.
var transferPlaceholder = regexp.MustCompile(`\{(source|dest|offset|length)\}`)

// checkProgram checks the placeholders of the program of kind command-job.
func (c *checker) checkProgram() {
	if c.Work.Kind != workload.CommandJobWork {
		return
	}
	for _, arg := range c.Client.Command {
		name := transferPlaceholder.FindString(strings.ReplaceAll(arg, "{{", ""))
		c.refuse(name != "",
			"client.command", "%s: not available to jobs, which get {url}, {path} and {size}; use %s with kinds read and write", name, name)
	}
}

// inputs returns the client's command. The command of a command-job starts in a folder of its own,
// so arguments that name a file of the scenario are made absolute paths: an argument such as
// analysis.py, or analysis.C("{url}") up to the parenthesis.
func (s *Scenario) inputs() []string {
	command := slices.Clone(s.Client.Command)
	if s.Work.Kind != workload.CommandJobWork {
		return command
	}
	folder := ""
	if at := s.where["client.command"]; s.file != "" && at.Set == "" && !at.Outside {
		folder = filepath.Dir(s.file)
	}
	for i, arg := range command {
		if i == 0 && !strings.Contains(arg, "/") {
			continue // searched in PATH
		}
		name := arg
		if n := strings.IndexAny(arg, "+({"); n >= 0 {
			name = arg[:n]
		}
		whole, err := filepath.Abs(filepath.Join(folder, name))
		if err != nil || name == "" || filepath.IsAbs(name) {
			continue
		}
		if info, err := os.Stat(whole); err == nil && info.Mode().IsRegular() {
			command[i] = strings.NewReplacer("{", "{{", "}", "}}").Replace(whole) + arg[len(name):]
		}
	}
	return command
}

func byTime(a, b Event) int { return cmp.Compare(a.At, b.At) }
