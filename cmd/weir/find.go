package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/unit"
	"weir/run"
)

// findFlags are the flags of weir find.
type findFlags struct {
	runFlags
	run.SearchLimits
}

func findCommand(s streams) *cobra.Command {
	f := findFlags{SearchLimits: run.SearchLimits{Time: unit.Duration(10 * time.Minute), Within: 0.1}}
	c := command("find [TARGET | SCENARIO.yaml]", func(c *cobra.Command, args []string) error {
		if err := cobra.MaximumNArgs(1)(c, args); err != nil {
			return f.watch.misplaced(args, err)
		}
		return nil
	}, func(c *cobra.Command, args []string) (err error) {
		s := f.withStream(s)
		defer func() { err = s.stream.Close(err) }()
		changed := c.Flags().Changed
		if changed("max") && f.Max < 1 {
			return usagef("--max %d: use 1 or more", f.Max)
		}
		if f.resume != "" {
			if len(args) == 1 && !isScenario(args[0]) {
				f.target, args = args[0], nil // its secrets are not in that folder
			}
			if err := f.onlyResume(c, args, "min", "duration", "on", "workers", "set", "var", "out"); err != nil {
				return err
			}
			if !changed("time") {
				f.Time = 0 // that of the run directory
			}
			if !changed("within") {
				f.Within = 0
			}
		}
		return f.interruptible(c.Context(), s, func(in run.Interrupts) error { return f.search(in, args, s) })
	})
	fs := c.Flags()
	parsedFlag(fs, "time", "10m", "search for at most this time, as in `10m`", into(&f.Time, unit.ParseDuration))
	parsedFlag(fs, "within", "10%", "narrow the position of the peak to this share, as in `10%`", into(&f.Within, unit.ParseFraction))
	fs.IntVar(&f.Min, "min", 1, "begin with `N` clients")
	fs.IntVar(&f.Max, "max", 0, "use at most `N` clients (default 10000, or what this machine allows)")
	f.short(c, "duration", "load.duration", "measurement time of each step, as in `10s`; noise and large files make it longer (default 8s)")
	f.addShared(c)
	f.addRun(c, &s, "continue the search in `DIR`; --time, --within and --max may change", jsonOfRun)
	return c
}

// search begins or continues a search.
func (f *findFlags) search(in run.Interrupts, args []string, s streams) error {
	if f.resume != "" {
		return f.measure(in, f.resume, s, func(c run.Config) error { return run.ResumeSearch(c, f.target, f.Apply) })
	}
	if len(args) == 0 || !isScenario(args[0]) {
		if len(args) == 1 {
			f.target = args[0]
		}
		hold := run.SearchDuration
		for _, short := range f.shorts {
			text, ok := strings.CutPrefix(short, "load.duration=")
			if d, err := unit.ParseDuration(text); ok && err == nil && d > 0 { // read reports a mistake
				hold = time.Duration(d)
			}
		}
		args, f.sets = nil, append(run.SearchTimes(hold), f.sets...)
	}
	sc, err := f.read(args)
	if err != nil {
		return err
	}
	plan, err := run.PlanSearch(sc, f.SearchLimits)
	if err != nil {
		return err
	}
	return f.measure(in, run.NewDir(f.out, plan.Name, time.Now()), s, func(c run.Config) error {
		c.Plan = plan
		return run.Run(c)
	})
}
