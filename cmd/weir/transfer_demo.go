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

	"weir/internal/redact"
	plays "weir/scenarios/transfer"
	"weir/transfer/trial"
)

// demoFlags say what is played, and where.
type demoFlags struct {
	scale string
	db    dbFlags
	dir   []string
	dirs  demoDirs
	fits  bool
	out   string
	json  bool
}

func demoCommand(s streams, signals signalSource) *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use:   "demo [NAME|FILE]...",
		Short: "Play the tests of Transfer2Go on sites of this machine",
		Long: `Starts a coordinator and sites as processes on this machine's loopback interface,
makes files, moves them as the scenarios say, reads each one again where it has
arrived, and prints what was expected and what came out. All is ended and removed at
the end. If there is no room for the files nothing begins. A scenario is one of weir's own (` + strings.Join(plays.Names(), ", ") + `)
or a YAML file; without one all of weir's own are played, in about a minute.

With --out DIR each scenario leaves an ordinary run directory, DIR/NAME, of which weir
report makes tables and plots: of each file and of both ends.`,
		Example: `  weir transfer demo
  weir transfer demo throughput --out runs/demo
  weir transfer demo growing --scale seed --dir A=/disk1/trial --dir C=/disk2/trial
  weir transfer demo mine.yaml --db postgres://weir@localhost/weir`,
		ValidArgsFunction: completeDemos,
		RunE: func(c *cobra.Command, args []string) error {
			if f.scale != "small" && f.scale != "seed" {
				return exit{exitUsage, fmt.Errorf("--scale %s: use small (megabytes) or seed (gigabytes)", f.scale)}
			}
			all, err := demos(args)
			if err != nil {
				return exit{exitUsage, err}
			}
			if f.dirs, err = parseDemoDirs(f.dir, all); err != nil {
				return exit{exitUsage, err}
			}
			ctx, cancel := untilSignal(c.Context(), signals, nil, false)
			defer cancel()
			return f.run(ctx, all, s)
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.scale, "scale", "small", "files of small (megabytes) or of the `SCALE` of seed (1 to 15 GB)")
	f.db.add(fs, "db", "", "have the coordinator use this database: a `FILE`, or postgres://USER@HOST/NAME (default: a new file)")
	fs.StringArrayVar(&f.dir, "dir", nil, "make the sites' folders below this existing `DIR` (default: that of temporary files); SITE=DIR: that of one site, as on a disk of its own")
	fs.BoolVar(&f.fits, "what-fits", false, "leave out cases for whose files there is no room")
	fs.StringVarP(&f.out, "out", "o", "", "leave a run directory of each scenario in this `DIR`ectory")
	jsonFlag(c, &f.json, "print what came out as JSON")
	quietFlag(c, &s.quiet)
	_ = c.RegisterFlagCompletionFunc("scale", completeWords(false, "small", "seed")) // the flag is there
	return c
}

// completeDemos offers the scenarios' names, and YAML files.
func completeDemos(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return slices.DeleteFunc(plays.Names(), func(name string) bool { return slices.Contains(args, name) }), cobra.ShellCompDirectiveDefault
}

// demos reads the scenarios of the given names and files, all of weir's own if there
// are none.
func demos(args []string) ([]*trial.Scenario, error) {
	if len(args) == 0 {
		args = plays.Names()
	}
	var all []*trial.Scenario
	for _, arg := range args {
		text, own := plays.Read(arg)
		if !own {
			var err error
			if text, err = os.ReadFile(arg); err != nil {
				return nil, fmt.Errorf("%s is neither a file that can be read nor one of %s: %w", arg, strings.Join(plays.Names(), ", "), err)
			}
		}
		scenario, err := trial.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", arg, err)
		}
		if slices.ContainsFunc(all, func(s *trial.Scenario) bool { return s.Name == scenario.Name }) {
			return nil, fmt.Errorf("%s: another scenario has the name %s, too", arg, scenario.Name)
		}
		all = append(all, scenario)
	}
	return all, nil
}

// run plays the scenarios one after the other.
func (f *demoFlags) run(ctx context.Context, all []*trial.Scenario, s streams) error {
	command, err := selfCommand()
	if err != nil {
		return err
	}
	database, err := f.db.find(s)
	if err != nil {
		return err
	}
	fit, left, err := f.room(all)
	if err != nil {
		return err
	}
	var played []demoPlayed
	for _, scenario := range all {
		if len(fit[scenario]) == 0 {
			continue
		}
		p := trial.Play{Scenario: scenario, Cases: fit[scenario], Seed: f.scale == "seed", Options: trial.Options{Program: command, DB: database}, Weir: version(), Command: redact.Args(os.Args), Tell: func(text string) { s.say("%s\n", text) }}
		if database != "" {
			p.Prefix = "/store/demo-" + time.Now().UTC().Format("20060102-150405.000")
		}
		if f.out != "" {
			p.Out = filepath.Join(f.out, scenario.Name)
		}
		results, err := f.play(ctx, &p)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted while %s was played: all is ended and removed", scenario.Name)
		}
		if err != nil {
			return err
		}
		played = append(played, demoPlayed{scenario, results, p.Out})
	}
	if f.json {
		err = writeJSON(s.out, demoJSON(played, left))
	} else {
		err = tellDemo(s.out, played, left)
	}
	if err == nil && demoProblems(played) > 0 {
		err = exit{code: exitMissed}
	}
	return err
}

// play plays one scenario in folders of its own.
func (f *demoFlags) play(ctx context.Context, p *trial.Play) (results []trial.Result, err error) {
	remove, err := f.dirs.make(p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return p.Run(ctx)
}
