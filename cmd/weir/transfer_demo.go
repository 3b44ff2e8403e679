package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"weir/internal/redact"
	"weir/internal/say"
	"weir/loadtest/cluster"
	"weir/loadtest/engine/scratch"
	"weir/loadtest/run"
	"weir/transfer/trial"
)

// demoFlags are the flags of weir transfer demo.
type demoFlags struct {
	scale string
	db    dbFlags
	dir   []string
	fits  bool
	out   string
	json  bool
}

func demoCommand(s streams) *cobra.Command {
	f := demoFlags{scale: "small"}
	c := command("demo [NAME|FILE]...", nil, func(c *cobra.Command, args []string) error {
		if f.scale != "small" && f.scale != "seed" {
			return usagef("--scale %s: use small (megabytes) or seed (gigabytes)", f.scale)
		}
		all, err := trial.ReadScenarios(args)
		if err != nil {
			return usage(err)
		}
		dirs, err := trial.ParseFolders(f.dir, all)
		if err != nil {
			return usagef("--dir %w", err)
		}
		ctx, cancel := s.untilSignal(c.Context(), false)
		defer cancel()
		return f.run(ctx, all, dirs, s)
	})
	f.db.add(c, "db", "")
	flagVars{"scale": &f.scale, "dir": &f.dir, "what-fits": &f.fits, "out/o": &f.out, "json": &f.json, "quiet/q": &s.quiet}.add(c)
	return c
}

// run plays the scenarios one after the other.
func (f *demoFlags) run(ctx context.Context, all []*trial.Scenario, dirs trial.Folders, s streams) error {
	command, err := cluster.SelfCommand()
	if err != nil {
		return err
	}
	database, err := f.db.find(s)
	if err != nil {
		return err
	}
	p := trial.Play{
		Seed: f.scale == "seed", Options: trial.Options{Program: command, DB: database}, Out: f.out, Weir: version(),
		Command: redact.Args(os.Args), Progress: func(text string) { s.say("%s\n", text) },
	}
	rows, left, err := p.All(ctx, all, dirs, f.fits, func(folder string) (filesystem string, free int64) {
		d := scratch.On(folder)
		return d.Number, d.Free
	})
	if err != nil {
		return err
	}
	verdicts, err := demoVerdicts(rows, s)
	if err != nil {
		return err
	}
	if f.json {
		about := map[string]any{"cases": rows, "verdicts": verdicts}
		if len(left) > 0 {
			about["left_out"] = left
		}
		err = writeJSON(s.out, about)
	} else {
		err = trial.WriteRows(s.out, rows, left)
		for _, v := range verdicts {
			_, unread := fmt.Fprintf(s.out, "\n%s: %s\nrun directory  %s\n", v.Status, v.Verdict, v.Run)
			err = errors.Join(err, ignoreUnread(unread))
		}
	}
	if err == nil && slices.ContainsFunc(rows, func(r trial.Row) bool { return len(r.Problems) > 0 }) {
		err = exit{code: exitMissed}
	}
	return err
}

// A demoVerdict is the validity and the verdict of the record of a scenario.
type demoVerdict struct {
	Run     string `json:"run"`
	Status  string `json:"status"`
	Verdict string `json:"verdict"` // the headline
}

// demoVerdicts analyzes the run directories of the scenarios and writes their reports.
func demoVerdicts(rows []trial.Row, s streams) ([]demoVerdict, error) {
	all := []demoVerdict{}
	for _, r := range rows {
		if r.Run == "" || slices.ContainsFunc(all, func(v demoVerdict) bool { return v.Run == r.Run }) {
			continue
		}
		result, err := run.Analyze(r.Run, s.console())
		if err != nil {
			return nil, err
		}
		all = append(all, demoVerdict{r.Run, result.Findings.Validity.Status, say.Plain(result.Findings.Headline)})
	}
	return all, nil
}
