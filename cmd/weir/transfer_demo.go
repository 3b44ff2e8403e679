package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/cluster"
	"weir/engine/scratch"
	"weir/internal/redact"
	plays "weir/scenarios/transfer"
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
	var f demoFlags
	c := &cobra.Command{
		Use:   "demo [NAME|FILE]...",
		Short: "Play scenarios of transfers on sites of this machine",
		Long: `Play scenarios of transfers on sites of this machine: the tests of Transfer2Go.

A coordinator and sites are started as processes on this machine's loopback interface, files
are made and transferred as the scenarios say, each one is read again at its destination,
and the expected and actual results are printed. All processes and files are removed at the
end. Nothing begins if there is no room for the files. A scenario is one of weir's own
(` + strings.Join(plays.Names(), ", ") + `)
or a YAML file; without one all of weir's own are played, in about three minutes. Those with
emulated links need root, and are left out otherwise.

With --out DIR each scenario leaves a run directory, DIR/NAME, for weir report.`,
		Example: `  weir transfer demo
  weir transfer demo throughput --out runs/demo
  weir transfer demo growing --scale seed --dir A=/disk1/trial --dir C=/disk2/trial
  weir transfer demo mine.yaml --db postgres://weir@localhost/weir`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return slices.DeleteFunc(plays.Names(), func(name string) bool { return slices.Contains(args, name) }), cobra.ShellCompDirectiveDefault
		},
		RunE: func(c *cobra.Command, args []string) error {
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
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.scale, "scale", "small", "`SCALE` of the files: small (megabytes) or seed (1 to 15 GB)")
	f.db.add(fs, "db", "", "have the coordinator use this database: a `FILE`, or postgres://USER@HOST/NAME (default: a new file)")
	fs.StringArrayVar(&f.dir, "dir", nil,
		"make the sites' folders below this existing `DIR` (default: that of temporary files); SITE=DIR: that of one site, "+
			"as on a disk of its own")
	fs.BoolVar(&f.fits, "what-fits", false, "leave out cases for whose files there is no room")
	fs.StringVarP(&f.out, "out", "o", "", "leave a run directory of each scenario in this `DIR`ectory")
	jsonFlag(c, &f.json, "print the results as JSON")
	quietFlag(c, &s.quiet)
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
	seed := f.scale == "seed"
	all, impossible := trial.Possible(ctx, all)
	if len(all) == 0 {
		return fmt.Errorf("nothing can be played: %s", strings.Join(impossible, "; "))
	}
	fit, left, err := dirs.Choose(all, seed, f.fits, func(folder string) (filesystem string, free int64) {
		d := scratch.On(folder)
		return d.Number, d.Free
	})
	if err != nil {
		return err
	}
	left = append(impossible, left...)
	rows := []trial.Row{}
	for _, scenario := range all {
		if len(fit[scenario]) == 0 {
			continue
		}
		p := trial.Play{
			Scenario: scenario, Cases: fit[scenario], Seed: seed, Options: trial.Options{Program: command, DB: database},
			Weir: version(), Command: redact.Args(os.Args), Progress: func(text string) { s.say("%s\n", text) },
		}
		if database != "" {
			p.Prefix = "/store/demo-" + time.Now().UTC().Format("20060102-150405.000")
		}
		if f.out != "" {
			p.Out = filepath.Join(f.out, scenario.Name)
		}
		results, err := play(ctx, dirs, &p)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted while %s was played: all processes and files are removed", scenario.Name)
		}
		if err != nil {
			return err
		}
		rows = append(rows, p.Rows(results)...)
	}
	if f.json {
		about := map[string]any{"cases": rows}
		if len(left) > 0 {
			about["left_out"] = left
		}
		err = writeJSON(s.out, about)
	} else {
		err = trial.WriteRows(s.out, rows, left)
	}
	if err == nil && slices.ContainsFunc(rows, func(r trial.Row) bool { return len(r.Problems) > 0 }) {
		err = exit{code: exitMissed}
	}
	return err
}

// play plays one scenario in folders of its own.
func play(ctx context.Context, dirs trial.Folders, p *trial.Play) (results []trial.Result, err error) {
	remove, err := dirs.Make(p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return p.Run(ctx)
}
