package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"weir/internal/screen"
	"weir/scenario"
)

// What --json prints, in the words of every command that has it.
const (
	jsonOfRun   = "print findings.json instead of the table"
	jsonOfMaybe = "print findings.json instead of the table; of a campaign, compare.json or repeated.json"
)

// Flags that several commands have mean the same in all of them.

func jsonFlag(c *cobra.Command, to *bool, prints string) {
	c.Flags().BoolVar(to, "json", false, prints)
}

func quietFlag(c *cobra.Command, to *bool) {
	c.Flags().BoolVarP(to, "quiet", "q", false, "no progress: only results, warnings and errors")
}

func verboseFlag(c *cobra.Command, to *bool) {
	c.Flags().BoolVar(to, "verbose", false, "print all tables, evidence and checks, not only the curve and warnings")
}

func outFlag(c *cobra.Command, to *string, usual string) {
	c.Flags().StringVarP(to, "out", "o", "", "measure into this new `DIR`ectory (default runs/"+usual+")")
}

func htmlFlag(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "html", "", "write a page with plots into `FILE`, too")
}

func setFlag(c *cobra.Command, to *[]string) {
	c.Flags().StringArrayVar(to, "set", nil, "change any key of the scenario: `KEY=VALUE`, as in workload.kind=write (repeatable)")
}

func varFlag(c *cobra.Command, to *[]string) {
	c.Flags().StringArrayVar(to, "var", nil, "give a variable of the scenario a value: `NAME=VALUE` (repeatable)")
}

// scenarioFlags say which scenario, and how it is changed.
type scenarioFlags struct {
	target, clients, hold, repeat string
	on, workers                   string
	sets, vars                    []string
}

func (f *scenarioFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.target, "target", "", "`URL` of the service: http(s), dav(s), root(s), file, simulated, or any with client (short for --set target=)")
	fs.StringVar(&f.clients, "clients", "", "virtual clients of each step, as in `1,10,100` (short for --set load.clients=)")
	fs.StringVar(&f.hold, "hold", "", "how long each step counts, as in `10s` (short for --set load.hold=)")
	fs.StringVar(&f.repeat, "repeat", "", "run everything `N` times, in blocks (short for --set repeat=)")
	onFlags(c, &f.on, &f.workers)
	setFlag(c, &f.sets)
	varFlag(c, &f.vars)
}

// onFlags say which machines the clients are on.
func onFlags(c *cobra.Command, on, workers *string) {
	c.Flags().StringVar(on, "on", "", "put the clients on other machines by `SYSTEM`: htcondor, slurm, ssh, or local for processes here (short for --set on.batch=)")
	c.Flags().StringVar(workers, "workers", "", "on `N` machines or slots (short for --set on.workers=)")
}

// runFlags are the flags of weir run, and those that weir find shares with it.
type runFlags struct {
	scenarioFlags
	apart       partFlags
	out, resume string
	processes   int
	json        bool
	watch       watchFlags
	page        *livePage // nil: none
	stream      bool
	failOn      failOn
	export      exportFlags
}

// addRun adds what is not about the scenario.
func (f *runFlags) addRun(c *cobra.Command, s *streams, resume, prints string) {
	outFlag(c, &f.out, "NAME-TIME")
	c.Flags().StringVar(&f.resume, "resume", "", resume)
	c.Flags().IntVar(&f.processes, "processes", 0, "use `N` client processes on this machine (default: as many as the open-file limit asks for)")
	jsonFlag(c, &f.json, prints)
	c.Flags().BoolVar(&f.stream, "json-stream", false, "print a line of JSON for each thing that happens: start, steps, warnings, findings")
	failOnFlag(c, &f.failOn)
	quietFlag(c, &s.quiet)
	verboseFlag(c, &s.verbose)
	c.Flags().StringVar(&f.watch.address, "watch", "", "show the run in the browser; with `=HOST:PORT`, at that address (see weir watch --help)")
	c.Flags().Lookup("watch").NoOptDefVal = watchHere
	c.Flags().StringVar(&f.watch.tokenFile, "watch-token-file", "", "the live page asks for the token in `FILE`")
	f.export.add(c, "write the numbers to this `URL` of InfluxDB, as in 'http://host:8086/write?db=weir'")
}

// withStream is s, with a stream if the flags want one.
func (f *runFlags) withStream(s streams) streams {
	if f.stream {
		s.stream = &stream{to: screen.NewQueue(s.out)}
	}
	return s
}

// onlyResume refuses arguments, and flags of these names, beside --resume.
func (f *runFlags) onlyResume(c *cobra.Command, args []string, names ...string) error {
	var not []string
	for _, name := range names {
		if c.Flags().Changed(name) {
			not = append(not, "--"+name)
		}
	}
	if not = slices.Concat(not, args); len(not) > 0 {
		return exit{exitUsage, fmt.Errorf("--resume %s: leave %s out: what is done next stands in that folder", f.resume, strings.Join(not, " "))}
	}
	return nil
}

// read returns the scenario of the given file, or weir's own one.
func (f *scenarioFlags) read(args []string) (*scenario.Scenario, error) {
	sets := append([]string(nil), f.sets...)
	for key, value := range map[string]string{"target": f.target, "load.clients": f.clients, "load.hold": f.hold, "repeat": f.repeat, "on.batch": f.on, "on.workers": f.workers} {
		if value == "" {
			continue
		}
		if key == "load.clients" && strings.Contains(value, ",") {
			value = "[" + value + "]"
		}
		sets = append(sets, key+"="+value)
	}
	vars := map[string]string{}
	for _, v := range f.vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return nil, exit{exitUsage, fmt.Errorf("--var %s: use NAME=VALUE", v)}
		}
		vars[name] = value
	}
	sc, err := f.parse(args, vars, sets)
	var mistakes scenario.Mistakes
	if errors.As(err, &mistakes) {
		return nil, exit{exitUsage, err}
	}
	return sc, err
}

// readAll returns the scenarios of the given files, or weir's own one.
func (f *scenarioFlags) readAll(args []string) ([]*scenario.Scenario, error) {
	if len(args) < 2 {
		sc, err := f.read(args)
		return []*scenario.Scenario{sc}, err
	}
	var all []*scenario.Scenario
	for _, arg := range args {
		sc, err := f.read([]string{arg})
		if err != nil {
			return nil, err
		}
		all = append(all, sc)
	}
	return all, nil
}

func (f *scenarioFlags) parse(args []string, vars map[string]string, sets []string) (*scenario.Scenario, error) {
	target := f.target
	switch {
	case len(args) == 1 && isTarget(args[0]) && target != "":
		return nil, exit{exitUsage, fmt.Errorf("%s and --target %s: name one target", line(args[0]), line(target))}
	case len(args) == 1 && isTarget(args[0]):
		target = args[0]
	case len(args) == 1:
		sc, err := scenario.Read(args[0], vars, sets)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR) {
			err = noScenario(args[0], err)
		}
		return sc, err
	}
	if len(vars) > 0 {
		return nil, exit{exitUsage, errors.New("--var: only a scenario file has variables")}
	}
	if target == "" {
		target = scenario.BuiltIn
	}
	return scenario.DefaultWith(target, sets)
}
