package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/internal/unit"
	"weir/run"
	"weir/run/live"
	"weir/scenario"
	"weir/storage/all"
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
	c.Flags().BoolVarP(to, "quiet", "q", false, "show no progress, only results, warnings and errors")
}

func verboseFlag(c *cobra.Command, to *bool) {
	c.Flags().BoolVar(to, "verbose", false, "print all tables, evidence and checks, not only the curve and warnings")
}

func outFlag(c *cobra.Command, to *string, usual string) {
	c.Flags().StringVarP(to, "out", "o", "", "measure into this new `DIR`ectory (default runs/"+usual+")")
}

func htmlFlag(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "html", "", "also write a page with plots into `FILE`")
}

func setFlag(c *cobra.Command, to *[]string) {
	c.Flags().StringArrayVar(to, "set", nil, "change any key of the scenario: `KEY=VALUE`, as in workload.kind=write (repeatable)")
}

// A parsed is the value of a flag that is read when it is set.
type parsed struct {
	text  string
	parse func(string) error
}

// String implements pflag.Value.
func (p *parsed) String() string { return p.text }

// Type implements pflag.Value.
func (p *parsed) Type() string { return "string" }

// Set implements pflag.Value. An empty text changes nothing.
func (p *parsed) Set(text string) error {
	if text == "" {
		return nil
	}
	p.text = text
	return p.parse(text)
}

// parsedFlag adds a flag whose value parse reads; usual is the text of its default.
func parsedFlag(fs *pflag.FlagSet, name, usual, usage string, parse func(string) error) {
	fs.Var(&parsed{usual, parse}, name, usage)
}

// into returns a parser that stores in to what parse reads.
func into[T, U ~int | ~int64 | ~float64](to *T, parse func(string) (U, error)) func(string) error {
	return func(text string) error {
		value, err := parse(text)
		if err == nil {
			*to = T(value)
		}
		return err
	}
}

// parseTime returns a parser of times of at least the given length.
func parseTime(to *time.Duration, least time.Duration) func(string) error {
	return func(text string) error {
		d, err := unit.ParseDuration(text)
		switch {
		case (err != nil || time.Duration(d) < least) && least > 1:
			return fmt.Errorf("use a time of %v or more, such as 1m", least)
		case err != nil || time.Duration(d) < least:
			return errors.New("use a time such as 12h or 3d")
		}
		*to = time.Duration(d)
		return nil
	}
}

// parseMaxFile is the parser of --max-file of servers and agents.
func parseMaxFile(text string) (unit.Size, error) {
	size, err := unit.ParseSize(text)
	if err == nil && size < 1 {
		err = errors.New("use a size above 0, or leave it out")
	}
	return size, err
}

// scenarioFlags name a scenario and change it.
type scenarioFlags struct {
	target string
	sets   []string
	shorts []string // as sets, of the flags that are short for one
	vars   map[string]string
}

func (f *scenarioFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.target, "target", "",
		"`URL` of the service: http(s), dav(s), root(s), file, simulated, or any with client (short for --set target=)")
	f.short(c, "clients", "load.clients", "virtual clients of each step, as in `1,10,100` (short for --set load.clients=)")
	f.short(c, "duration", "load.duration", "measurement time of each step, as in `10s` (short for --set load.duration=)")
	f.short(c, "repeat", "repeat", "run everything `N` times, in blocks (short for --set repeat=)")
	f.addShared(c)
}

// addShared adds the flags that weir find has as well.
func (f *scenarioFlags) addShared(c *cobra.Command) {
	f.short(c, "on", "on.batch",
		"run the clients on other machines by `SYSTEM`: htcondor, slurm, ssh, or local for processes here (short for --set on.batch=)")
	f.short(c, "workers", "on.workers", "use `N` machines or slots (short for --set on.workers=)")
	setFlag(c, &f.sets)
	f.vars = map[string]string{}
	c.Flags().Func("var", "set a variable of the scenario: `NAME=VALUE` (repeatable)", func(text string) error {
		name, value, ok := strings.Cut(text, "=")
		if f.vars[name] = value; !ok {
			return errors.New("use NAME=VALUE")
		}
		return nil
	})
}

// short adds a flag that is short for --set KEY=.
func (f *scenarioFlags) short(c *cobra.Command, name, key, usage string) {
	parsedFlag(c.Flags(), name, "", usage, func(value string) error {
		if key == "load.clients" && strings.Contains(value, ",") {
			value = "[" + value + "]"
		}
		f.shorts = append(f.shorts, key+"="+value)
		return nil
	})
}

// read returns the scenario of the given file, or the default one for a target.
func (f *scenarioFlags) read(args []string) (*scenario.Scenario, error) {
	sets := slices.Concat(f.sets, f.shorts)
	if f.target != "" {
		sets = append(sets, "target="+f.target)
	}
	sc, err := f.parse(args, sets)
	if errors.As(err, new(scenario.Mistakes)) {
		err = usage(err)
	}
	return sc, err
}

// readAll returns the scenarios of the given files, or the default one.
func (f *scenarioFlags) readAll(args []string) (all []*scenario.Scenario, err error) {
	if len(args) < 2 {
		sc, err := f.read(args)
		return []*scenario.Scenario{sc}, err
	}
	for _, arg := range args {
		sc, err := f.read([]string{arg})
		if err != nil {
			return nil, err
		}
		all = append(all, sc)
	}
	return all, nil
}

func (f *scenarioFlags) parse(args, sets []string) (*scenario.Scenario, error) {
	target := f.target
	switch {
	case len(args) == 1 && isTarget(args[0]) && target != "":
		return nil, usagef("%s and --target %s: name one target", line(args[0]), line(target))
	case len(args) == 1 && isTarget(args[0]):
		target = args[0]
	case len(args) == 1:
		sc, err := scenario.Read(args[0], f.vars, sets)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR) {
			if like := scenario.WithScheme(args[0]); like != "" && !isScenario(args[0]) {
				err = usagef("%w\nhint: if %s is a service, write it with its protocol: %s", err, line(args[0]), like)
			}
		}
		return sc, err
	}
	if len(f.vars) > 0 {
		return nil, usagef("--var: only a scenario file has variables")
	}
	if target == "" {
		target = scenario.BuiltIn
	}
	return scenario.DefaultWith(target, sets)
}

// planOf returns the plan of a scenario. Its errors are usage errors.
func planOf(sc *scenario.Scenario) (*scenario.Plan, error) {
	p, err := sc.Plan(all.Drivers())
	return p, usage(err)
}

var urlScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// isTarget tells a target from a scenario's file: it is a URL, or "built-in", and no file.
func isTarget(arg string) bool {
	if !urlScheme.MatchString(arg) && arg != scenario.BuiltIn {
		return false
	}
	_, err := os.Lstat(arg)
	return err != nil
}

// isScenario tells a scenario's file from a target.
func isScenario(arg string) bool {
	if ext := filepath.Ext(arg); ext == ".yaml" || ext == ".yml" {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && info.Mode().IsRegular()
}

// partFlags choose the part of a plan that this machine carries out.
type partFlags struct{ part, begin string }

func (f *partFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.part, "part", "", "run only part `NUMBER/OF` of the clients, as in 3/10: other machines run the rest, "+
		"and weir merge combines them")
	c.Flags().StringVar(&f.begin, "begin", "", "begin at `TIME` (14:30, 14:30:15, or 2026-03-01T14:30:00Z), so that several machines begin "+
		"each step together")
}

// of returns the plan that the flags select.
func (f *partFlags) of(p *scenario.Plan, now time.Time) (*scenario.Plan, error) {
	if f.begin != "" {
		at, err := run.ParseBegin(f.begin, now)
		if err != nil {
			return nil, usagef("--begin %s: %w", f.begin, err)
		}
		whole := *p
		whole.BeginAt(at)
		p = &whole
	}
	if f.part == "" {
		return p, nil
	}
	if p.On.Apart {
		return nil, usagef("--part cannot be combined with on.apart: with it each worker has a part already")
	}
	number, of, err := scenario.ParsePart(f.part)
	if err == nil {
		p, err = p.Apart(number, of)
	}
	if err != nil {
		return nil, usagef("--part: %w", err)
	}
	return p, nil
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

// addRun adds the flags that do not change the scenario.
func (f *runFlags) addRun(c *cobra.Command, s *streams, resume, prints string) {
	outFlag(c, &f.out, "NAME-TIME")
	c.Flags().StringVar(&f.resume, "resume", "", resume)
	c.Flags().IntVar(&f.processes, "processes", 0, "use `N` client processes on this machine (default: "+
		"as many as the open-file limit requires)")
	jsonFlag(c, &f.json, prints)
	c.Flags().BoolVar(&f.stream, "json-stream", false, "print a line of JSON for each event: start, steps, warnings, findings")
	failOnFlag(c, &f.failOn)
	quietFlag(c, &s.quiet)
	verboseFlag(c, &s.verbose)
	c.Flags().StringVar(&f.watch.address, "watch", "", "show the run in the browser; with `=HOST:PORT`, "+
		"at that address (see weir watch --help)")
	c.Flags().Lookup("watch").NoOptDefVal = watchHere
	c.Flags().StringVar(&f.watch.tokenFile, "watch-token-file", "", "ask browsers for the token in `FILE`")
	f.export.add(c, "write the measurements to this `URL` of InfluxDB, as in 'http://host:8086/write?db=weir'")
}

// withStream returns s with a stream if the flags ask for one.
func (f *runFlags) withStream(s streams) streams {
	if f.stream {
		s.stream = live.NewStream(s.out)
	}
	return s
}

// onlyResume refuses arguments, and flags of these names, beside --resume.
func (f *runFlags) onlyResume(c *cobra.Command, args []string, names ...string) error {
	var refused []string
	for _, name := range names {
		if c.Flags().Changed(name) {
			refused = append(refused, "--"+name)
		}
	}
	if refused = slices.Concat(refused, args); len(refused) > 0 {
		return usagef("--resume %s: leave %s out: settings come from the run directory", f.resume, strings.Join(refused, " "))
	}
	return nil
}

// currentFlag returns today's name of a flag: --hold of earlier versions is --duration.
func currentFlag(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "hold" {
		name = "duration"
	}
	return pflag.NormalizedName(name)
}
