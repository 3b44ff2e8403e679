package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/unit"
	"weir/run"
	"weir/scenario"
)

// findFlags are the flags of weir find.
type findFlags struct {
	runFlags
	time, within string
	min, max     int
}

func findCommand(s streams) *cobra.Command {
	var f findFlags
	c := &cobra.Command{
		Use:   "find [TARGET | SCENARIO.yaml]",
		Short: "Find the number of clients with the highest throughput",
		Long: `Find the number of clients with the highest throughput.

The search doubles the number of clients (1, 2, 4 ...) until throughput has clearly
stopped growing. It then measures steps around the peak, each where it narrows the
position of the peak most. Between steps it waits until the service is as idle as before.
It ends when the position is known closely enough, when the top is flat, when there is no
maximum, or when the time is up. Without a target weir starts its own server.

Ctrl-C ends the search early and reports what is known (exit code 130); a second one
stops at once. --resume continues a search that was interrupted, or that gets more --time.
weir help exit-codes lists the exit codes.`,
		Example: `  weir find davs://se.example.org/data --time 20m --max 2000
  weir find scenario.yaml --within 5%
  weir find --resume runs/se.example.org-20260301-120000 --time 30m
  weir find "simulated://demo?service=10ms&sigma=0.02&kappa=0.0005" --duration 2s --time 1m`,
		Args: func(c *cobra.Command, args []string) error {
			if err := cobra.MaximumNArgs(1)(c, args); err != nil {
				return f.watch.misplaced(args, err)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) (err error) {
			s := f.withStream(s)
			defer func() { err = s.stream.Close(err) }()
			if f.resume != "" {
				if len(args) == 1 && !isScenario(args[0]) {
					f.target, args = args[0], nil // its secrets are not in that folder
				}
				if err := f.onlyResume(c, args, "min", "duration", "on", "workers", "set", "var", "out"); err != nil {
					return err
				}
			}
			return f.interruptible(c.Context(), s, func(in run.Interrupts) error { return f.search(in, args, c.Flags().Changed, s) })
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.time, "time", "10m", "search for at most this time, as in `10m`")
	fs.StringVar(&f.within, "within", "10%", "narrow the position of the peak to this share, as in `10%`")
	fs.IntVar(&f.min, "min", 1, "begin with `N` clients")
	fs.IntVar(&f.max, "max", 0, "use at most `N` clients (default 10000, or what this machine allows)")
	fs.StringVar(&f.hold, "duration", "", "measurement time of each step, as in `10s`; noise and large files make it longer (default 8s)")
	onFlags(c, &f.on, &f.workers)
	setFlag(c, &f.sets)
	varFlag(c, &f.vars)
	f.addRun(c, &s, "continue the search in `DIR`; --time, --within and --max may change", jsonOfRun)
	return c
}

// search begins or continues a search. changed reports which flags were given.
func (f *findFlags) search(in run.Interrupts, args []string, changed func(string) bool, s streams) error {
	if f.resume != "" {
		return f.measure(in, f.resume, s, func(c run.Config) error {
			return run.ResumeSearch(c, f.target, func(p *scenario.Plan) error {
				l, err := f.limits(changed)
				if err != nil {
					return err
				}
				return l.Apply(p)
			})
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

// plan returns the plan of a search. Flags have their defaults, except --max, whose
// default depends on the machine.
func (f *findFlags) plan(args []string, changed func(string) bool) (*scenario.Plan, error) {
	if len(args) == 0 || !isScenario(args[0]) {
		if len(args) == 1 {
			f.target = args[0]
		}
		hold := run.SearchDuration
		if d, err := unit.ParseDuration(f.hold); err == nil && d > 0 { // read reports a mistake
			hold = time.Duration(d)
		}
		args, f.sets = nil, append(run.SearchTimes(hold), f.sets...)
	}
	sc, err := f.read(args)
	if err != nil {
		return nil, err
	}
	limits, err := f.limits(func(name string) bool { return name != "max" || changed(name) })
	if err != nil {
		return nil, err
	}
	limits.Min = f.min
	return run.PlanSearch(sc, limits)
}

// limits returns the limits that were given.
func (f *findFlags) limits(changed func(string) bool) (l run.SearchLimits, err error) {
	if changed("time") {
		if l.Time, err = unit.ParseDuration(f.time); err != nil {
			return l, usagef("--time: %w", err)
		}
	}
	if changed("within") {
		if l.Within, err = unit.ParseFraction(f.within); err != nil {
			return l, usagef("--within: %w", err)
		}
	}
	if changed("max") {
		if l.Max = f.max; f.max < 1 {
			return l, exit{exitUsage, fmt.Errorf("--max %d: use 1 or more", f.max)}
		}
	}
	return l, nil
}
