package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/unit"
	"weir/run"
	"weir/scenario"
	"weir/storage/all"
)

// findFlags are the flags of weir find.
type findFlags struct {
	runFlags
	time, within string
	min, max     int
}

// findTimes are the times of a search's steps of the given hold, if no scenario
// says others.
func findTimes(hold time.Duration) []string {
	text := func(key string, d time.Duration) string {
		return fmt.Sprintf("load.%s=%v", key, unit.Duration(d.Round(time.Millisecond)))
	}
	return []string{text("ramp", hold/8), text("settle", hold/4), text("hold", hold), text("cool", max(hold/4, leastCool)), text("drain", 10*time.Second)}
}

// How long steps and rests of a search may become, as multiples.
const (
	longestHold = 6
	longestCool = 15
	usualHold   = 8 * time.Second
	leastCool   = 500 * time.Millisecond
	mostByFind  = 10_000 // clients, if nobody says how many
)

func findCommand(s streams, signals signalSource) *cobra.Command {
	var f findFlags
	c := &cobra.Command{
		Use:   "find [TARGET | SCENARIO.yaml]",
		Short: "Search for the number of clients that gives most",
		Long: `Searches by itself for the number of virtual clients with the highest throughput:
a ladder of loads (1, 2, 4 ...) until it has clearly stopped growing, then steps
around the peak, each where it narrows the peak's place most. Between steps
the service rests until it is as calm as before. It ends when that is
known closely enough, when the top is found to be flat or without a maximum, or when the
time is up. Without a target weir starts its own server.

Ctrl-C ends the search early and reports what is known (exit code 130); a second
one stops at once. --resume goes on with a search that was interrupted, or that
shall have more --time. weir help exit-codes lists the exit codes.`,
		Example: `  weir find davs://se.example.org/data --time 20m --max 2000
  weir find scenario.yaml --within 5%
  weir find --resume runs/se.example.org-20260301-120000 --time 30m
  weir find "simulated://demo?service=10ms&sigma=0.02&kappa=0.0005" --hold 2s --time 1m`,
		Args: func(c *cobra.Command, args []string) error {
			if err := cobra.MaximumNArgs(1)(c, args); err != nil {
				return f.watch.apart(args, err)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) (err error) {
			s := f.withStream(s)
			defer func() { err = s.stream.end(err) }()
			if f.resume != "" {
				if len(args) == 1 && !isScenario(args[0]) {
					f.target, args = args[0], nil // its secrets are not in that folder
				}
				if err := f.onlyResume(c, args, "min", "hold", "on", "workers", "set", "var", "out"); err != nil {
					return err
				}
			}
			return f.interruptible(c.Context(), s, signals, func(in run.Interrupts) error {
				return f.search(in, args, c.Flags().Changed, s)
			})
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.time, "time", "10m", "search for so long at most, as in `10m`")
	fs.StringVar(&f.within, "within", "10%", "how closely the place of the peak is to be known, as in `10%`")
	fs.IntVar(&f.min, "min", 1, "begin with `N` clients")
	fs.IntVar(&f.max, "max", 0, "never go beyond `N` clients (default 10000, or what this machine allows)")
	fs.StringVar(&f.hold, "hold", "", "how long each step counts, as in `10s`; noise and large files make it longer (default 8s)")
	onFlags(c, &f.on, &f.workers)
	setFlag(c, &f.sets)
	varFlag(c, &f.vars)
	f.addRun(c, &s, "go on with the search in `DIR`; --time, --within and --max may change", jsonOfRun)
	return c
}

// search does a search, or continues one. changed tells which flags were given.
func (f *findFlags) search(in run.Interrupts, args []string, changed func(string) bool, s streams) error {
	if f.resume != "" {
		return f.measure(in, f.resume, s, func(c run.Config) error {
			return run.ResumeSearch(c, f.target, func(p *scenario.Plan) error { return f.limits(p, changed) })
		})
	}
	plan, err := f.plan(args, changed)
	if err != nil {
		return err
	}
	return f.measure(in, run.NewDir(f.out, plan.Name, time.Now()), s, func(c run.Config) error {
		c.Plan = plan
		return run.Run(c)
	})
}

// plan makes the plan of a search of what the command line names. Flags have
// their defaults, but --max: what is most then depends on the machine.
func (f *findFlags) plan(args []string, changed func(string) bool) (*scenario.Plan, error) {
	sets := f.sets
	if file := len(args) == 1 && isScenario(args[0]); !file {
		if len(args) == 1 {
			f.target = args[0]
		}
		hold := usualHold
		if d, err := unit.ParseDuration(f.hold); err == nil && d > 0 { // a mistake is told below
			hold = time.Duration(d)
		}
		args, f.sets = nil, append(findTimes(hold), sets...)
	}
	sc, err := f.read(args)
	if err != nil {
		return nil, err
	}
	if len(sc.Load.Rate) > 0 {
		return nil, exit{exitUsage, errors.New("load.rate: a search is for the number of clients (load.clients): open load has none to find")}
	}
	if sc.Load.Jobs > 0 {
		return nil, exit{exitUsage, errors.New("load.jobs: a search holds each load for load.hold: leave jobs out, and clients do one job after the other")}
	}
	plan, err := sc.Plan(all.Drivers())
	if err != nil {
		return nil, exit{exitUsage, err}
	}
	l := sc.Load
	plan.Steps = []scenario.Step{}
	cool := l.Cool
	if cool == 0 {
		cool = unit.Duration(run.DefaultCool)
	}
	plan.Find = &scenario.Find{
		Min: f.min, Max: f.max, Ramp: l.Ramp, Settle: l.Settle, Hold: l.Hold, Longest: longestHold * l.Hold, Cool: cool, Calm: longestCool * cool,
	}
	if err := f.limits(plan, func(name string) bool { return name != "max" || changed(name) }); err != nil {
		return nil, err
	}
	return plan, nil
}

// isScenario tells a scenario's file from a target.
func isScenario(arg string) bool {
	if ext := filepath.Ext(arg); ext == ".yaml" || ext == ".yml" {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && info.Mode().IsRegular()
}

// limits brings the flags that were changed into the plan, and checks it
// against what is possible here.
func (f *findFlags) limits(plan *scenario.Plan, changed func(string) bool) error {
	l := plan.Find
	if changed("time") {
		d, err := unit.ParseDuration(f.time)
		if err != nil {
			return exit{exitUsage, fmt.Errorf("--time: %w", err)}
		}
		l.Time = d
	}
	if changed("within") {
		x, err := unit.ParseFraction(f.within)
		if err != nil {
			return exit{exitUsage, fmt.Errorf("--within: %w", err)}
		}
		l.Within = x
	}
	most, why := run.MostClients(plan)
	switch {
	case changed("max") && f.max > most:
		return exit{exitUsage, fmt.Errorf("--max %d: this machine can be %d clients of this target: %s", f.max, most, why)}
	case changed("max") && f.max < 1:
		return exit{exitUsage, fmt.Errorf("--max %d: use 1 or more", f.max)}
	case changed("max"):
		l.Max = f.max
	case l.Max == 0:
		l.Max = max(min(mostByFind, most), l.Min)
	}
	if err := l.Check(); err != nil {
		return exit{exitUsage, err}
	}
	return nil
}
