package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"weir/engine"
	"weir/export"
	"weir/run"
	"weir/run/campaign"
	"weir/scenario"
	"weir/storage/all"
)

func runCommand(s streams, signals signalSource) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [TARGET | SCENARIO.yaml ...]",
		Short: "Drive a service with virtual clients and say what it carries",
		Long: `Steps virtual clients up (and down) against a service, watches both sides, and
writes a run directory with a report. Without a scenario the files below the
target are listed and read; without a target weir starts its own server.

A scenario with repeat or matrix, or several scenarios, are a campaign: many runs,
in blocks that have each variant once, in a folder of their own, compared at the
end. --resume goes on with a run or a campaign that was broken off.

Ctrl-C ends the run early and still reports (exit code 130); a second one stops
at once. weir help exit-codes lists the exit codes.`,
		Example: `  weir run
  weir run http://127.0.0.1:8080/data --clients 1,10,100 --hold 10s
  weir run --target file:///scratch --set workload.kind=write --set workload.size=1MiB --set load.clients=4
  weir run scenario.yaml --set load.hold=30s --out runs/new-disks
  weir run scenario.yaml --watch                      # and look on in the browser
  weir run scenario.yaml --on htcondor --workers 50   # clients on a batch system's machines
  weir run old.yaml new.yaml --repeat 5 --out runs/old-and-new
  weir run --resume runs/old-and-new`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) (err error) {
			s := f.withStream(s)
			defer func() { err = s.stream.end(err) }()
			if f.resume != "" {
				return resume(c, args, f, s, signals)
			}
			scenarios, err := f.readAll(args)
			if err != nil {
				return f.watch.apart(args, err)
			}
			return f.interruptible(c.Context(), s, signals, func(in run.Interrupts) error {
				if isCampaign(scenarios) {
					if f.apart.part+f.apart.begin != "" {
						return exit{exitUsage, errors.New("--part and --begin are of one run, and this is a campaign: start its runs one by one")}
					}
					return runCampaign(in, scenarios, f, s)
				}
				return runScenario(in, scenarios[0], f, s)
			})
		},
	}
	f.add(c)
	f.apart.add(c)
	f.addRun(c, &s, "go on with the run or campaign in `DIR` where it was broken off", jsonOfMaybe)
	return c
}

// runScenario does one run.
func runScenario(in run.Interrupts, sc *scenario.Scenario, f runFlags, s streams) error {
	plan, err := sc.Plan(all.Drivers())
	if err != nil {
		return exit{exitUsage, err}
	}
	if plan, err = f.apart.of(plan, time.Now()); err != nil {
		return err
	}
	return f.measure(in, run.NewDir(f.out, plan.Name, time.Now()), s, func(c run.Config) error {
		c.Plan = plan
		return run.Run(c)
	})
}

// resume continues a run or a campaign. Its folder has all settings, so that
// neither a scenario nor flags that change one are taken, except the target,
// whose secrets are not kept there.
func resume(c *cobra.Command, args []string, f runFlags, s streams, signals signalSource) error {
	if err := f.onlyResume(c, args, "clients", "hold", "repeat", "on", "workers", "part", "begin", "set", "var", "out"); err != nil {
		return err
	}
	return f.interruptible(c.Context(), s, signals, func(in run.Interrupts) error {
		if campaign.Is(f.resume) {
			return resumeCampaign(in, f, s)
		}
		return f.measure(in, f.resume, s, func(c run.Config) error { return run.Resume(c, f.target) })
	})
}

// measure has do measure into dir and shows the result.
func (f *runFlags) measure(in run.Interrupts, dir string, s streams, do func(run.Config) error) error {
	f.page.show(dir)
	c := f.config(in, dir, s)
	var verdict error
	c.Report = func(r run.Result) error {
		verdict = f.failOn.verdict(r.Findings)
		return show(r, f.json, s)
	}
	if err := do(c); err != nil {
		return err
	}
	return verdict
}

// config returns the configuration of all runs of these flags.
func (f *runFlags) config(in run.Interrupts, dir string, s streams) run.Config {
	return run.Config{
		Dir: dir, Processes: f.processes, Version: version(), Console: s.console(), Interrupts: in, View: s.view(in),
		Export: func(ctx context.Context) (run.Exporter, error) {
			e, err := f.export.open(ctx, export.Written, s)
			if errors.As(err, new(exit)) {
				err = &run.UsageError{Err: err}
			}
			return e, err
		},
	}
}

// view returns what shows a run that in ends.
func (s streams) view(in run.Interrupts) func(string, *scenario.Plan, run.Series) run.View {
	return func(dir string, plan *scenario.Plan, of run.Series) run.View {
		l := newLive(in.Finish, s.progress(), plan, of)
		l.stream, l.dir, l.secrets = s.stream, dir, s.secrets
		return l
	}
}

// console returns how packages speak with people.
func (s streams) console() run.Console {
	return run.Console{Stderr: s.err, Secrets: s.secrets, Say: s.say, Warn: s.tell, Working: func(what string) (engine.Advance, func()) {
		w := s.working(what)
		return w.advance, w.done
	}}
}
