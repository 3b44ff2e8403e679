package main

import (
	"time"

	"github.com/spf13/cobra"

	"weir/internal/unit"
	"weir/loadtest/run"
)

// findFlags are the flags of weir find.
type findFlags struct {
	runFlags
	run.SearchLimits
	duration time.Duration // of a step
}

func findCommand(s streams) *cobra.Command {
	f := findFlags{SearchLimits: run.SearchLimits{Time: unit.Duration(10 * time.Minute), Within: 0.1, Min: 1}, duration: run.SearchDuration}
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
			if len(args) == 1 && !run.IsScenario(args[0]) {
				f.Target, args = args[0], nil // its secrets are not in that folder
			}
			if err := f.onlyResume(c, args, "min", "duration", "on", "workers", "include", "exclude", "sample", "threshold", "set", "var",
				"out"); err != nil {
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
	duration := func(text string) error {
		f.shorts = append(f.shorts, "load.duration="+text)
		return into(&f.duration, unit.ParseDuration)(text)
	}
	flagVars{
		"time": &parsed{"10m", into(&f.Time, unit.ParseDuration)}, "within": &parsed{"10%", into(&f.Within, unit.ParseFraction)},
		"min": &f.Min, "max": &f.Max, "duration/d": duration,
	}.add(c)
	f.addShared(c)
	f.addRun(c, &s)
	return c
}

// search begins or continues a search.
func (f *findFlags) search(in run.Interrupts, args []string, s streams) error {
	if f.resume != "" {
		return f.measure(in, f.resume, s, func(c run.Config) error { return run.ResumeSearch(c, f.Target, f.Apply) })
	}
	if len(args) == 0 || !run.IsScenario(args[0]) {
		if len(args) == 1 {
			f.Target = args[0]
		}
		args, f.Sets = nil, append(run.SearchTimes(f.duration), f.Sets...)
	}
	if isChallenge(args) {
		return usagef("%s is a data challenge, which has no number of clients to find: use weir challenge", args[0])
	}
	sc, err := f.selection().Read(args)
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
