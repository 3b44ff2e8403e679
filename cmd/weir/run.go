package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/screen"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/campaign"
	"weir/loadtest/export"
	"weir/loadtest/report"
	"weir/loadtest/run"
	"weir/loadtest/run/live"
	"weir/loadtest/scenario"
)

func runCommand(s streams) *cobra.Command {
	var f runFlags
	c := command("run [TARGET | SCENARIO.yaml ...]", cobra.ArbitraryArgs, func(c *cobra.Command, args []string) (err error) {
		s := f.withStream(s)
		defer func() { err = s.stream.Close(err) }()
		switch {
		case f.resume != "" && isChallengeRun(f.resume):
			return f.resumeAsChallenge(c, args, s)
		case f.resume != "":
			return f.resumeRun(c, args, s)
		case isChallenge(args):
			return f.runChallenge(c, args[0], s)
		}
		scenarios, err := f.selection().ReadAll(args)
		if err != nil {
			return f.watch.misplaced(args, err)
		}
		return f.interruptible(c.Context(), s, func(in run.Interrupts) error {
			if !campaign.Needed(scenarios) {
				return runScenario(in, scenarios[0], f, s)
			}
			p, plans, err := run.PlanCampaign(scenarios)
			if err != nil {
				return err
			}
			return f.campaign(in, run.NewDir(f.out, p.Name, time.Now()), len(p.Runs), s, func(c run.CampaignConfig) error {
				return run.Campaign(c, &p.Campaign, plans)
			})
		})
	})
	f.add(c)
	f.addRun(c, &s)
	return c
}

// runScenario makes the plan of a scenario and runs it.
func runScenario(in run.Interrupts, sc *scenario.Scenario, f runFlags, s streams) error {
	plan, err := run.Plan(sc)
	if err != nil {
		return err
	}
	return f.measure(in, run.NewDir(f.out, plan.Name, time.Now()), s, func(c run.Config) error {
		c.Plan = plan
		return run.Run(c)
	})
}

// resumeRun continues a run or a campaign. All settings come from its folder, except the
// target, whose secrets are not kept there.
func (f *runFlags) resumeRun(c *cobra.Command, args []string, s streams) error {
	if err := f.onlyResume(c, args, "clients", "duration", "repeat", "on", "workers", "include", "exclude", "sample", "threshold", "set",
		"var", "out"); err != nil {
		return err
	}
	return f.interruptible(c.Context(), s, func(in run.Interrupts) error {
		if !campaign.Is(f.resume) {
			return f.measure(in, f.resume, s, func(c run.Config) error { return run.Resume(c, f.Target) })
		}
		c, err := campaign.Read(f.resume)
		if err != nil {
			return err
		}
		return f.campaign(in, f.resume, len(c.Runs), s, func(c run.CampaignConfig) error { return run.ResumeCampaign(c, f.Target) })
	})
}

// measure calls do, which measures into dir, and shows the result.
func (f *runFlags) measure(in run.Interrupts, dir string, s streams, do func(run.Config) error) error {
	f.page.show(dir)
	c := f.config(in, dir, s)
	var verdict error
	c.Report = func(r run.Result) error {
		verdict = f.failOn.verdict(r.Findings)
		return errors.Join(writeJUnit(f.junit, f.failOn, r.Findings), show(r, f.json, s))
	}
	if err := do(c); err != nil {
		return err
	}
	return verdict
}

// campaign calls do, which measures into dir, and returns the worst exit code of its runs.
func (f *runFlags) campaign(in run.Interrupts, dir string, runs int, s streams, do func(run.CampaignConfig) error) error {
	f.page.show(dir)
	worst := exitFine
	var found []*analysis.Findings
	c := run.CampaignConfig{Config: f.config(in, dir, s)}
	c.Judge = func(number int, r run.Result, again bool) {
		if !again {
			screen.Paragraph(s.progress(), "", "run %d of %d: %s", number, runs, report.Final(r.Findings))
			s.say("\n")
			s.stream.Write(live.Line{Event: "findings", Run: r.Dir, Findings: r.Findings})
		}
		found = append(found, r.Findings)
		if code := (exit{}); errors.As(f.failOn.verdict(r.Findings), &code) {
			worst = worst.worse(code.code)
		}
	}
	c.Conclude = func(c *campaign.Campaign, left int, failed bool) error {
		if failed {
			worst = worst.worse(exitError)
		}
		if left == len(c.Runs) {
			return nil // nothing to compare
		}
		unwritten := writeJUnit(f.junit, f.failOn, found...)
		sum, err := run.Summarize(dir, c)
		if err != nil {
			s.printErr("weir: the runs cannot be compared: %s\n", line(s.secrets.Text(err.Error())))
			return unwritten
		}
		return errors.Join(unwritten, ignoreUnread(showSummary(sum, f.json, s)))
	}
	if err := do(c); err != nil {
		return err
	}
	if worst != exitFine {
		return exit{code: worst}
	}
	return nil
}

// config returns the configuration of all runs of these flags.
func (f *runFlags) config(in run.Interrupts, dir string, s streams) run.Config {
	return run.Config{
		Dir: dir, Processes: f.processes, Version: version(), Console: s.console(), Interrupts: in, View: s.view(in),
		Watched: f.page != nil,
		Export: func(ctx context.Context) (run.Exporter, error) {
			return f.export.open(ctx, export.Written, s.progress(), s.err)
		},
	}
}

// writeJUnit writes the thresholds of runs into the file path, if it is not empty.
func writeJUnit(path string, on failOn, runs ...*analysis.Findings) error {
	if path == "" {
		return nil
	}
	return writePage(path, func(w io.Writer) error {
		return report.JUnit(w, runs, func(f *analysis.Findings) bool { return on.status(f.Validity.Status) != nil })
	})
}

// show prints a result for programs or for people.
func show(r run.Result, asJSON bool, s streams) error {
	if s.stream != nil {
		s.stream.Write(live.Line{Event: "findings", Run: r.Dir, Findings: r.Findings})
		return nil
	}
	if asJSON {
		return ignoreUnread(analysis.JSON(s.out, r.Findings))
	}
	if err := report.Text(s.out, r.Findings, s.look()); err != nil {
		return ignoreUnread(err)
	}
	if r.Search != "" {
		screen.Paragraph(s.out, "search         ", "%s", r.Search)
	}
	text := fmt.Sprintf("run directory  %s\n", r.Dir)
	if r.Page != "" {
		text += fmt.Sprintf("report         %s\n", r.Page)
	}
	_, err := io.WriteString(s.out, text)
	return ignoreUnread(err)
}

// showSummary prints the common result of a campaign's runs.
func showSummary(sum *run.Summary, asJSON bool, s streams) error {
	if s.stream != nil {
		l := live.Line{Event: "comparison", Run: sum.Dir, Comparison: sum.JSON}
		if sum.Repeated {
			l = live.Line{Event: "repetitions", Run: sum.Dir, Repetitions: sum.JSON}
		}
		s.stream.Write(l)
		return nil
	}
	if asJSON {
		_, err := s.out.Write(sum.JSON)
		return err
	}
	return sum.WriteText(s.out, s.look())
}
