package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/results/campaign"
	"weir/scenario"
)

// What weir's own server serves to a run without a target.
const builtinFiles = "1000x1MiB"

// runFlags say which scenario, and how it is changed.
type scenarioFlags struct {
	target, clients, hold, repeat string
	sets, vars                    []string
}

func (f *scenarioFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.target, "target", "", "`URL` of the service: http(s), dav(s), file, simulated, or any with client (short for --set target=)")
	fs.StringVar(&f.clients, "clients", "", "virtual clients of each step, as in `1,10,100` (short for --set load.clients=)")
	fs.StringVar(&f.hold, "hold", "", "how long each step counts, as in `10s` (short for --set load.hold=)")
	fs.StringVar(&f.repeat, "repeat", "", "run everything `N` times, in blocks (short for --set repeat=)")
	fs.StringArrayVar(&f.sets, "set", nil, "change any key of the scenario: `KEY=VALUE`, as in load.hold=30s (repeatable)")
	fs.StringArrayVar(&f.vars, "var", nil, "give a variable of the scenario a value: `NAME=VALUE` (repeatable)")
}

// read returns the scenario of the given file, or weir's own one.
func (f *scenarioFlags) read(args []string) (*scenario.Scenario, error) {
	sets := append([]string(nil), f.sets...)
	for key, value := range map[string]string{"target": f.target, "load.clients": f.clients, "load.hold": f.hold, "repeat": f.repeat} {
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
	if len(args) == 1 {
		return scenario.Read(args[0], vars, sets)
	}
	if len(vars) > 0 {
		return nil, exit{exitUsage, errors.New("--var: only a scenario file has variables")}
	}
	target := f.target
	if target == "" {
		target = scenario.BuiltIn
	}
	return scenario.DefaultWith(target, sets)
}

// runFlags are the flags of weir run.
type runFlags struct {
	scenarioFlags
	out, resume string
	processes   int
	json, quiet bool
}

func runCommand(s streams, signals signalSource) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [SCENARIO.yaml ...]",
		Short: "Drive a service with virtual clients and say what it carries",
		Long: `Steps virtual clients up (and down) against a service, watches both sides, and
writes a run directory with a report. Without a scenario the files below the
target are listed and read; without a target, too, weir starts its own server.

A scenario with repeat or matrix, or several scenarios, are a campaign: many runs,
in blocks that have each variant once, in a folder of their own, compared at the
end. --resume goes on with a run or a campaign that was broken off.

Ctrl-C ends the run early and still reports; a second one stops at once.`,
		Example: `  weir run
  weir run --target http://127.0.0.1:8080/data --clients 1,10,100 --hold 10s
  weir run --target file:///scratch --set workload.kind=write --set workload.size=1MiB --set load.clients=4
  weir run scenario.yaml --set load.hold=30s --out runs/new-disks
  weir run old.yaml new.yaml --repeat 5 --out runs/old-and-new
  weir run --resume runs/old-and-new`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if f.resume != "" {
				return resume(c, args, f, s, signals)
			}
			all, err := f.readAll(args)
			if err != nil {
				return err
			}
			in, release := interruptible(c.Context(), signals.listen(), s.err)
			defer release()
			if isCampaign(all) {
				return runCampaign(in, all, f, s)
			}
			return runScenario(in, all[0], f, s)
		},
	}
	f.add(c)
	c.Flags().StringVarP(&f.out, "out", "o", "", "run `DIR`ectory (default runs/NAME-TIME)")
	c.Flags().StringVar(&f.resume, "resume", "", "go on with the run or campaign in `DIR` where it was broken off")
	c.Flags().IntVar(&f.processes, "processes", 0, "client processes on this machine (default: as many as the open-file limit asks for)")
	c.Flags().BoolVar(&f.json, "json", false, "print findings.json instead of the table")
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "only the result, no progress")
	return c
}

// resume goes on with what was broken off. What it shall do stands in its
// folder, so that no scenario, and no flag that changes one, is taken.
func resume(c *cobra.Command, args []string, f runFlags, s streams, signals signalSource) error {
	var not []string
	for _, name := range []string{"target", "clients", "hold", "repeat", "set", "var", "out"} {
		if c.Flags().Changed(name) {
			not = append(not, "--"+name)
		}
	}
	if not = append(not, args...); len(not) > 0 {
		return exit{exitUsage, fmt.Errorf("--resume %s: leave %s out: what is done next stands in that folder", f.resume, strings.Join(not, " "))}
	}
	in, release := interruptible(c.Context(), signals.listen(), s.err)
	defer release()
	if !campaign.Is(f.resume) {
		return resumeRun(in, f.resume, f, s)
	}
	return resumeCampaign(in, f.resume, f, s)
}

// outDir returns the run directory to use, and keeps the link runs/latest.
func outDir(out, name string, now time.Time) string {
	if out != "" {
		return out
	}
	out = filepath.Join("runs", name+"-"+now.Format("20060102-150405"))
	for i := 2; ; i++ {
		if _, err := os.Lstat(out); err != nil {
			return out
		}
		out = filepath.Join("runs", fmt.Sprintf("%s-%s-%d", name, now.Format("20060102-150405"), i))
	}
}

// linkLatest points runs/latest at dir. It is a comfort: where links cannot be
// made, or another thing has that name, there is none.
func linkLatest(dir string) {
	link := filepath.Join("runs", "latest")
	if info, err := os.Lstat(link); err == nil && info.Mode()&os.ModeSymlink == 0 {
		return
	}
	if filepath.Dir(dir) == "runs" {
		_ = os.Remove(link)                      // it may not be there
		_ = os.Symlink(filepath.Base(dir), link) // comfort only
	}
}
