// Package scenario reads what to test: a YAML file, its variables and the
// --set of the command line become a Scenario, and a Scenario becomes a Plan,
// which has nothing left to decide.
//
// Reading is strict: every mistake is named with its place and what would be
// right, all mistakes of a file at once. docs/scenario.md is the format's
// reference.
package scenario

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"weir/internal/document"
	"weir/internal/unit"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// A Scenario says what to test. Its zero value is not useful: Read, Parse and
// Default fill in the defaults. Fields may be changed before Plan is called;
// Plan checks again.
type Scenario struct {
	Name        string                 `yaml:"name"`
	Target      string                 `yaml:"target"` // URL, or BuiltIn; of several endpoints the first
	Others      []string               `yaml:"-"`      // URLs of the other endpoints, equal to Target, where target is a list
	Server      Server                 `yaml:"server"` // what BuiltIn is like
	Balancer    monitor.BalancerConfig `yaml:"balancer"`
	Client      Command                `yaml:"client"`
	Auth        storage.Auth           `yaml:"auth"`
	Files       Files                  `yaml:"files"`
	Work        workload.Work          `yaml:"workload"`
	Populations []Population           `yaml:"populations"` // of clients that work at the same time
	Load        Load                   `yaml:"load"`
	Links       Links                  `yaml:"link"`
	On          On                     `yaml:"on"`
	Stop        Stop                   `yaml:"stop"`
	Hosts       []monitor.Host         `yaml:"hosts"`
	Thresholds  []string               `yaml:"thresholds"`
	Boundaries  []string               `yaml:"boundaries"`
	Seed        uint64                 `yaml:"seed"`
	Repeat      int                    `yaml:"repeat"` // runs of each combination
	Matrix      Matrix                 `yaml:"matrix"` // its first combination is what the other fields hold

	file     string
	where    map[string]document.Place // dotted path of each key that was given
	variants []Variant                 // of the matrix
}

// BuiltIn is the target that represents weir's own server, started for the
// run. A Plan with it needs the server's URL before it can run.
const BuiltIn = "built-in"

// A Command is an external program that does the work of a client: its name
// alone for those that weir knows how to call, or its arguments.
type Command struct {
	Command []string `yaml:"command"`
}

// own reports whether the program is one that weir does not know how to call.
func (c Command) own() bool {
	return len(c.Command) > 1 || len(c.Command) == 1 && !slices.Contains(words()["client"], c.Command[0])
}

// A Load says how much is asked for, and for how long.
type Load struct {
	Clients    Counts `yaml:"clients"`     // closed model: one step each
	Rate       Rates  `yaml:"rate"`        // open model: one step each
	Arrivals   string `yaml:"arrivals"`    // open model: constant, poisson
	MaxClients int    `yaml:"max_clients"` // open model: most clients that may be busy at once
	// jobs that each client of a step does before it leaves; 0: until the measurement time is over
	Jobs         int           `yaml:"jobs"`
	Ramp         unit.Duration `yaml:"ramp"`
	Warmup       unit.Duration `yaml:"warmup"`
	Duration     unit.Duration `yaml:"duration"`
	Cooldown     unit.Duration `yaml:"cooldown"` // rest between steps; 0: they follow each other
	GracefulStop unit.Duration `yaml:"graceful_stop"`
	RetryAfter   string        `yaml:"retry_after"` // obey, ignore
	ErrorPause   unit.Duration `yaml:"error_pause"` // longest pause of a client whose tasks go on failing; 0: none
}

// Counts are the virtual clients of the steps.
type Counts []int

// Rates are the arrivals per second of the steps.
type Rates []unit.Rate

// Read reads the scenario in the file at path. vars are the --var, sets the
// --set of the command line. Its error is of type document.Mistakes unless the file
// cannot be read.
func Read(path string, vars map[string]string, sets []string) (*Scenario, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, document.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	return Parse(path, data, vars, sets)
}

// Parse reads a scenario from data. name is the file's path: it is named in
// mistakes, and the paths of files in the scenario are relative to its
// folder. Its error is of type document.Mistakes.
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

// finish decodes root over what s holds, and checks the whole.
func (t *tree) finish(root *document.Node, vars map[string]string, s *Scenario) (*Scenario, error) {
	t.fill(root, vars)
	before := len(t.Mistakes)
	switch m, at := t.matrix(root); {
	case len(t.Mistakes) > before: // what the factors were to give would be missing
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

// decode decodes root over what s holds, and checks the whole.
func (t *tree) decode(root *document.Node, s *Scenario) {
	s.file, s.where = t.File, map[string]document.Place{}
	t.decoder(s.where).scenario(root, s)
	s.resolve()
	s.complete()
	t.Mistakes = append(t.Mistakes, s.check(t.Mistakes)...)
}

// resolve makes paths relative to the scenario's folder usable from here.
// Those that came from the command line or the environment are relative to
// the current folder, as everything there.
func (s *Scenario) resolve() {
	for key, p := range paths(&s.Files, &s.Auth, s.Hosts) {
		at := s.where[key]
		if *p != "" && !filepath.IsAbs(*p) && s.file != "" && at.Set == "" && !at.Outside {
			*p = filepath.Join(filepath.Dir(s.file), *p)
		}
	}
}

// paths returns where the paths of files on this machine stand, by their keys.
func paths(f *Files, a *storage.Auth, hosts []monitor.Host) map[string]*string {
	all := map[string]*string{"files.list": &f.List}
	for key, p := range a.Files() {
		all["auth."+key] = p
	}
	for i := range hosts {
		all[fmt.Sprintf("hosts.%d.transfer_log", i)] = &hosts[i].TransferLog
	}
	return all
}

// Anywhere makes the plan's paths of files on this machine absolute, so that
// it means the same from any folder.
func (p *Plan) Anywhere() error {
	for key, path := range paths(&p.Files, &p.Auth, p.Hosts) {
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
