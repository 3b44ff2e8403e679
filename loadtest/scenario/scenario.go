// Package scenario reads the description of a test: a YAML file, its variables and the --set of the
// command line become a Scenario, and a Scenario becomes a Plan, in which nothing is left to
// decide.
//
// Reading is strict: every mistake is reported with its place and the correct form, and all
// mistakes of a file are reported at once. docs/scenario.md is the reference of the format.
package scenario

import (
	"fmt"
	"path/filepath"
	"slices"

	"weir/internal/document"
	"weir/internal/tags"
	"weir/internal/unit"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// A Scenario describes a test. Its zero value is not useful: Read, Parse and Default fill in the
// defaults. Fields may be changed before Plan is called; Plan checks them again.
type Scenario struct {
	Name   string   `yaml:"name" default:"weir" doc:"Name of the scenario and its run directory: letters, digits, dots, _ and -."`
	Target string   `yaml:"target" doc:"URL of the service under test, built-in, or a list of equal endpoints."`
	Others []string `yaml:"-"` // URLs of the endpoints in target after the first, which is Target

	Server      Server                 `yaml:"server" doc:"Properties of weir's own server, with target: built-in."`
	Client      Command                `yaml:"client" enum:"xrdcp,gfal-copy,curl,globus-url-copy" doc:"External program as client: a name, or a command. Default: weir's own client."`
	Auth        storage.Auth           `yaml:"auth" doc:"Authentication of the clients. Secrets are named, never written here."`
	Origin      *Origin                `yaml:"origin" doc:"Service from which clients of kind copy have the files copied to the target."`
	Files       Files                  `yaml:"files" doc:"Files to read: a list, a listing of the target, or files made for the run."`
	Work        workload.Work          `yaml:"workload" doc:"Work of each virtual client."`
	Load        Load                   `yaml:"load" doc:"Load of each step, and its duration."`
	Populations []Population           `yaml:"populations" doc:"Groups of virtual clients with their own workloads, at the same time."`
	Links       Links                  `yaml:"link" doc:"Emulated link between the clients and the service, or several by name."`
	On          On                     `yaml:"on" doc:"Machines of the clients, if not this one. See machines.md."`
	Stop        Stop                   `yaml:"stop" doc:"Conditions that end the run before the last step."`
	Balancer    monitor.BalancerConfig `yaml:"balancer" doc:"Load balancer of several servers; its sessions are read every second."`
	Hosts       []monitor.Host         `yaml:"hosts" doc:"Machines to monitor."`
	Thresholds  []string               `yaml:"thresholds" doc:"Requirements, as in throughput > 8 Gbit/s at 2000 clients."`
	Boundaries  []string               `yaml:"boundaries" doc:"Conditions whose range of loads is sought, as in latency_mean < 10 x single."`
	Events      []Event                `yaml:"events" doc:"Commands that are run on this machine during the load, such as a fault."`
	Seed        uint64                 `yaml:"seed" default:"1" doc:"Start of all random choices. Equal seeds make equal runs."`
	Repeat      int                    `yaml:"repeat" default:"1" doc:"Number of blocks: repetitions of every combination."`
	Matrix      Matrix                 `yaml:"matrix" doc:"Keys and their values, as in {workload.session: [kept, fresh]}."` // the other fields contain the first combination
	Variables   Variables              `yaml:"variables" doc:"Names and values for ${NAME}; null: of --var or the environment."`

	file     string
	where    map[string]document.Place // positions of the keys that were given, by dotted path
	variants []Variant                 // of the matrix
}

// BuiltIn is the target that represents weir's own server, started for the run. A Plan with it
// needs the URL of the server before it can run.
const BuiltIn = "built-in"

// A Command is an external program that does the work of a client: only its name if weir can
// construct its arguments, or its arguments.
type Command struct {
	Command []string `yaml:"command" required:"true" doc:"Program and arguments, with placeholders such as {url}."`
}

func clientPrograms() []string { return tags.Words[Scenario]("client") }

// own reports whether the command is the user's own, so that weir cannot construct its arguments.
func (c Command) own() bool {
	return len(c.Command) > 1 || len(c.Command) == 1 && !slices.Contains(clientPrograms(), c.Command[0])
}

// A Load is the load of the steps and its duration.
type Load struct {
	Clients      Counts        `yaml:"clients" default:"1,2,4,8,16,32,64,128,256" when:"without rate" doc:"Closed load: virtual clients of each step."`
	Rate         Rates         `yaml:"rate" doc:"Open load: arrivals per second of each step."`
	Arrivals     string        `yaml:"arrivals" default:"constant" enum:"constant,poisson" doc:"Open load: evenly spaced, or a Poisson process."`
	MaxClients   int           `yaml:"max_clients" default:"1000" doc:"Open load: limit of busy virtual clients."`
	Jobs         int           `yaml:"jobs" doc:"Tasks after which each client leaves; 0: no limit."`
	Ramp         unit.Duration `yaml:"ramp" default:"2s" doc:"Time over which the clients of a step are started or stopped."`
	Warmup       unit.Duration `yaml:"warmup" default:"3s" doc:"Time at full load before the measurement."`
	Duration     unit.Duration `yaml:"duration" default:"10s" doc:"Time at full load that is measured."`
	Cooldown     unit.Duration `yaml:"cooldown" doc:"Time without clients between two steps. 0: steps follow each other."`
	GracefulStop unit.Duration `yaml:"graceful_stop" default:"30s" doc:"Time limit of the last operations, at the end and before each cool-down."`
	RetryAfter   string        `yaml:"retry_after" default:"obey" enum:"obey,ignore" doc:"Pauses for answers 429 and 503 with Retry-After."`
	ErrorPause   unit.Duration `yaml:"error_pause" default:"1s" doc:"Closed load: longest pause of a client after failures; 0: no pause."`
}

// Counts are the virtual clients of the steps.
type Counts []int

// Rates are the arrivals per second of the steps.
type Rates []unit.Rate

// Read reads the scenario in the file at path. vars are the --var options and sets the --set
// options of the command line. Its error is of type document.Mistakes unless the file cannot be
// read.
func Read(path string, vars map[string]string, sets []string) (*Scenario, error) {
	data, err := document.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, vars, sets)
}

// Parse reads a scenario from data. name is the path of the file: mistakes contain it, and the
// paths of files in the scenario are relative to its folder. Its error is of type
// document.Mistakes.
func Parse(name string, data []byte, vars map[string]string, sets []string) (*Scenario, error) {
	t := newTree(name)
	root := t.Read(data)
	if root == nil {
		return nil, t.Mistakes.Err()
	}
	if root.Kind != document.Map {
		t.Say(root.At, "%s; a scenario is a map of keys, as in target: http://localhost:8080/", root.Describe())
		return nil, t.Mistakes.Err()
	}
	for _, set := range sets {
		t.apply(root, set)
	}
	return t.finish(root, vars, defaults())
}

// finish decodes root over the values of s and checks the result.
func (t *tree) finish(root *document.Node, vars map[string]string, s *Scenario) (*Scenario, error) {
	t.Fill(root, vars)
	before := len(t.Mistakes)
	switch m, at := t.matrix(root); {
	case len(t.Mistakes) > before: // the values of the factors would be missing
		t.decoder(map[string]document.Place{}).scenario(root, s)
	case m == nil:
		t.decode(root, s)
	default:
		s = t.variants(root, m, s)
		s.where["matrix"] = at
	}
	if err := t.Mistakes.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// decode decodes root over the values of s and checks the result.
func (t *tree) decode(root *document.Node, s *Scenario) {
	s.file, s.where = t.File, map[string]document.Place{}
	t.decoder(s.where).scenario(root, s)
	s.resolve()
	s.complete()
	t.Mistakes = append(t.Mistakes, s.check(t.Mistakes)...)
}

// resolve makes paths relative to the scenario's folder usable from the current folder.
func (s *Scenario) resolve() {
	for key, p := range paths(&s.Files, &s.Auth, s.Origin, s.Hosts) {
		*p = s.where[key].PathFrom(s.file, *p)
	}
}

// paths returns pointers to the paths of files on this machine, by their keys.
func paths(f *Files, a *storage.Auth, o *Origin, hosts []monitor.Host) map[string]*string {
	all := map[string]*string{"files.list": &f.List}
	for key, p := range a.Files() {
		all["auth."+key] = p
	}
	if o != nil {
		for key, p := range o.Auth.Files() {
			all["origin.auth."+key] = p
		}
	}
	for i := range hosts {
		all[fmt.Sprintf("hosts.%d.transfer_log", i)] = &hosts[i].TransferLog
	}
	return all
}

// Anywhere makes the plan's paths of files on this machine absolute, so that the plan has the same
// meaning in any folder.
func (p *Plan) Anywhere() error {
	for key, path := range paths(&p.Files, &p.Auth, p.Origin, p.Hosts) {
		if *path == "" {
			continue
		}
		whole, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		*path = whole
	}
	return nil
}
