package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/cluster"
	"weir/engine/scratch"
	"weir/internal/redact"
	"weir/internal/say"
	"weir/internal/unit"
	plays "weir/scenarios/transfer"
	"weir/transfer/trial"
)

// demoFlags say what is played, and where.
type demoFlags struct {
	scale string
	db    dbFlags
	dir   []string
	dirs  trial.Folders
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

// parseDemoDirs reads the values of --dir, each DIR or SITE=DIR. A folder must exist:
// otherwise the space of another disk would be used.
func parseDemoDirs(given []string, scenarios []*trial.Scenario) (trial.Folders, error) {
	d := trial.Folders{Default: os.TempDir(), Site: map[string]string{}}
	var sites []string
	for _, s := range scenarios {
		sites = append(sites, s.Sites...)
	}
	slices.Sort(sites)
	sites = slices.Compact(sites)
	for _, g := range given {
		name, dir, ofSite := strings.Cut(g, "=")
		if ofSite = ofSite && slices.Contains(sites, name); !ofSite {
			dir = g
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return d, fmt.Errorf("--dir %s: there is no folder %s: use DIR, or SITE=DIR for one of the sites %s", g, dir, strings.Join(sites, ", "))
		}
		dir, err := filepath.Abs(dir)
		if err != nil {
			return d, err
		}
		if ofSite {
			d.Site[name] = dir
		} else {
			d.Default = dir
		}
	}
	return d, nil
}

// disk is the file system of a folder and what is free there.
func disk(folder string) (filesystem string, free int64) {
	d := scratch.On(folder)
	return d.Number, d.Free
}

// room returns the cases to play, before anything is made. Without --what-fits there
// must be room for all of them.
func (f *demoFlags) room(all []*trial.Scenario) (fit map[*trial.Scenario][]*trial.Case, left []string, err error) {
	fit, short := f.dirs.Fit(all, f.seed(), disk)
	for _, s := range short {
		left = append(left, s.String())
	}
	if len(short) == 0 || f.fits && len(fit) > 0 {
		return fit, left, nil
	}
	cases := 0
	for _, s := range all {
		cases += len(s.Cases)
	}
	text := fmt.Sprintf("there is no room for %d of %s:\n  %s\nuse --dir DIR or --dir SITE=DIR to name folders with more room", len(left), say.Plural(cases, "case"), strings.Join(left, "\n  "))
	if len(fit) > 0 {
		text += ", or --what-fits to play the others only"
	}
	if there := f.dirs.Leftovers(); len(there) > 0 {
		text += "\nthese are of demos that run, or were killed: " + strings.Join(there, ", ")
	}
	return nil, nil, errors.New(text)
}

func (f *demoFlags) seed() bool { return f.scale == "seed" }

// run plays the scenarios one after the other.
func (f *demoFlags) run(ctx context.Context, all []*trial.Scenario, s streams) error {
	command, err := cluster.SelfCommand()
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
	rows := []trial.Row{}
	for _, scenario := range all {
		if len(fit[scenario]) == 0 {
			continue
		}
		p := trial.Play{
			Scenario: scenario, Cases: fit[scenario], Seed: f.seed(), Options: trial.Options{Program: command, DB: database},
			Weir: version(), Command: redact.Args(os.Args), Tell: func(text string) { s.say("%s\n", text) },
		}
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
		rows = append(rows, p.Rows(results)...)
	}
	if f.json {
		about := map[string]any{"cases": rows}
		if len(left) > 0 {
			about["left_out"] = left
		}
		err = writeJSON(s.out, about)
	} else {
		err = printDemo(s.out, rows, left)
	}
	if err == nil && slices.ContainsFunc(rows, func(r trial.Row) bool { return len(r.Problems) > 0 }) {
		err = exit{code: exitMissed}
	}
	return err
}

// play plays one scenario in folders of its own.
func (f *demoFlags) play(ctx context.Context, p *trial.Play) (results []trial.Result, err error) {
	remove, err := f.dirs.Make(p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return p.Run(ctx)
}

// printDemo prints one table of all cases, and below it what is not as expected.
func printDemo(w io.Writer, rows []trial.Row, left []string) error {
	t := newTable(w, "SCENARIO", "CASE", "FILES", "EXPECTED", "OUTCOME", "TOOK", "SPEED", "SPREAD", "")
	good := 0
	var below, runs []string
	for _, r := range rows {
		mark := "as expected"
		if len(r.Problems) > 0 {
			mark = "NOT AS EXPECTED"
		} else {
			good++
		}
		t.row(r.Scenario, r.Case, fmt.Sprintf("%d x %s", r.Files, unit.Bytes(float64(r.Size))), r.Expected, r.Outcome,
			unit.Seconds(r.Seconds), unit.Bytes(r.Rate)+"/s", unit.Seconds(r.Spread), mark)
		for _, problem := range r.Problems {
			below = append(below, fmt.Sprintf("%s, %s: %s\n", r.Scenario, r.Case, problem))
		}
		if r.Run != "" {
			runs = append(runs, fmt.Sprintf("run directory  %s\n", r.Run))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	below = append(below, fmt.Sprintf("\n%d of %s as expected. Each file was read again where it has arrived. Spread: from the first\nfile's arrival to the last one's.\n", good, say.Plural(len(rows), "case")))
	for _, why := range left {
		below = append(below, fmt.Sprintf("left out: %s\n", why))
	}
	_, err := io.WriteString(w, strings.Join(append(below, slices.Compact(runs)...), ""))
	return err
}
