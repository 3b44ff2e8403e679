package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/internal/unit"
	"weir/loadtest/run"
	"weir/loadtest/run/live"
)

// flagVars are the variables of flags by the flags' names, with a short name as in "out/o": *string, *bool, *int, *uint64, *time.Duration,
// *[]int, *[]string for a flag that can be repeated, commas, func(string) error to read a text, each, or pflag.Value. Their values are
// the defaults. The texts of flags are in help.txt.
type flagVars map[string]any

// commas is the variable of a flag that takes values between commas.
type commas struct{ to *[]string }

// each reads one value of a flag that can be repeated.
type each func(string) error

// add adds the flags to c.
func (vars flagVars) add(c *cobra.Command) {
	fs := c.Flags()
	for name, to := range vars {
		name, short, _ := strings.Cut(name, "/")
		switch to := to.(type) {
		case *string:
			fs.StringVarP(to, name, short, *to, "")
		case *bool:
			fs.BoolVarP(to, name, short, *to, "")
		case *int:
			fs.IntVarP(to, name, short, *to, "")
		case *uint64:
			fs.Uint64VarP(to, name, short, *to, "")
		case *time.Duration:
			fs.VarP((*duration)(to), name, short, "")
		case *[]int:
			fs.IntSliceVarP(to, name, short, *to, "")
		case *[]string:
			fs.StringArrayVarP(to, name, short, *to, "")
		case commas:
			fs.StringSliceVarP(to.to, name, short, *to.to, "")
		case each:
			fs.FuncP(name, short, "", to)
		case func(string) error:
			fs.VarP(&parsed{parse: to}, name, short, "")
		case pflag.Value:
			fs.VarP(to, name, short, "")
		default:
			panic(fmt.Sprintf("flag %s: %T cannot be read", name, to))
		}
	}
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

// A duration is the value of a flag, as 90m or 2d.
type duration time.Duration

// String implements pflag.Value. It returns "" for 0, so that the help prints no default.
func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return unit.Duration(*d).String()
}

// Type implements pflag.Value.
func (*duration) Type() string { return "duration" }

// Set implements pflag.Value.
func (d *duration) Set(text string) error {
	value, err := unit.ParseDuration(text)
	if err == nil {
		*d = duration(value)
	}
	return err
}

// into returns a parser that stores the result of parse in to.
func into[T, U ~int | ~int32 | ~int64 | ~float64](to *T, parse func(string) (U, error)) func(string) error {
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
			return fmt.Errorf("use a time of %v or more, such as %v", unit.Duration(least), unit.Duration(max(2*least, time.Minute)))
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
	run.Selection
	shorts           []string // Sets from the flags that abbreviate --set
	include, exclude []string
	thresholds       []string
}

func (f *scenarioFlags) add(c *cobra.Command) {
	flagVars{
		"target": &f.Target, "clients/c": f.short("load.clients"), "duration/d": f.short("load.duration"), "repeat": f.short("repeat"),
	}.add(c)
	f.addShared(c)
}

// addShared adds the flags that weir run and weir find share.
func (f *scenarioFlags) addShared(c *cobra.Command) {
	flagVars{
		"on": f.short("on.batch"), "workers": f.short("on.workers"), "set": &f.Sets, "var": f.setVar(),
		"include": &f.include, "exclude": &f.exclude, "sample": f.short("files.sample"), "threshold": &f.thresholds,
	}.add(c)
}

// setVar returns the parser of --var.
func (f *scenarioFlags) setVar() each {
	f.Vars = map[string]string{}
	return func(text string) error {
		name, value, ok := strings.Cut(text, "=")
		if f.Vars[name] = value; !ok {
			return errors.New("use NAME=VALUE")
		}
		return nil
	}
}

// short returns a parser of a flag that abbreviates --set KEY=.
func (f *scenarioFlags) short(key string) func(string) error {
	return func(value string) error {
		if key == "load.clients" && strings.Contains(value, ",") {
			value = "[" + value + "]"
		}
		f.shorts = append(f.shorts, key+"="+value)
		return nil
	}
}

// selection returns the selection that all flags make.
func (f *scenarioFlags) selection() run.Selection {
	s := f.Selection
	s.Sets = slices.Concat(f.Sets, f.shorts, listOf("files.include", f.include), listOf("files.exclude", f.exclude),
		listOf("thresholds", f.thresholds))
	return s
}

// listOf returns the text of --set KEY= with a list of texts, nil if there are no texts.
func listOf(key string, texts []string) []string {
	if len(texts) == 0 {
		return nil
	}
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return []string{key + "=[" + strings.Join(quoted, ", ") + "]"}
}

// runFlags are the flags of weir run, most of which weir find shares.
type runFlags struct {
	scenarioFlags
	out, resume string
	processes   int
	json        bool
	watch       watchFlags
	page        *livePage // nil: no page
	stream      bool
	failOn      failOn
	export      exportFlags
	junit       string
	effects     run.Effects // of signals
}

// addRun adds the flags that do not change the scenario.
func (f *runFlags) addRun(c *cobra.Command, s *streams) {
	f.failOn, f.effects = failOnInvalid, run.LoadTestEffects()
	flagVars{
		"out/o": &f.out, "resume": &f.resume, "processes": &f.processes, "json": &f.json, "json-stream": &f.stream, "fail-on": &f.failOn,
		"quiet/q": &s.quiet, "verbose": &s.verbose, "watch": &f.watch.address, "watch-token-file": &f.watch.tokenFile,
		"junit": &f.junit,
	}.add(c)
	c.Flags().Lookup("watch").NoOptDefVal = watchHere
	f.export.add(c)
}

// withStream returns s, with a stream if the flags request it.
func (f *runFlags) withStream(s streams) streams {
	if f.stream {
		s.stream = live.NewStream(s.out)
	}
	return s
}

// onlyResume returns an error if arguments, or flags of these names, are given with --resume.
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
	if _, err := os.Stat(f.resume); err != nil {
		return usagef("--resume %s is not a run directory: %w", line(f.resume), err)
	}
	return nil
}
