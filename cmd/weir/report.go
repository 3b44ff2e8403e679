package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/report/figure/draw"
	"weir/report/gallery"
	"weir/run"
	"weir/run/campaign"
)

func reportCommand(s streams) *cobra.Command {
	var asJSON bool
	var on failOn
	var figures figureFlags
	c := command("report RUN|CAMPAIGN", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
		if err := figures.check(c); err != nil {
			return err
		}
		if campaign.Is(args[0]) {
			return reportCampaign(args[0], asJSON, on, &figures, s)
		}
		return reportRun(args[0], asJSON, on, &figures, s)
	})
	figures.add(c)
	jsonFlag(c, &asJSON, jsonOfMaybe)
	failOnFlag(c, &on)
	quietFlag(c, &s.quiet)
	verboseFlag(c, &s.verbose)
	return c
}

func reportCampaign(dir string, asJSON bool, on failOn, figures *figureFlags, s streams) error {
	c, err := campaign.Read(dir)
	if err == nil && figures.dir != "" {
		groups, gerr := campaign.FigureGroups(dir, c)
		if gerr != nil {
			return fmt.Errorf("--figures: %w", gerr)
		}
		err = figures.write(gallery.OfComparison(groups, version()), s)
	}
	if err != nil {
		return err
	}
	sum, err := run.Summarize(dir, c)
	if err != nil {
		return err
	}
	return errors.Join(showSummary(sum, asJSON, s), on.status(sum.Status))
}

// reportRun analyzes the run in dir, draws its figures if figures names a folder, and
// shows the result.
func reportRun(dir string, asJSON bool, on failOn, figures *figureFlags, s streams) error {
	r, err := run.Analyze(dir, s.console())
	if err != nil {
		return err
	}
	if figures.dir != "" {
		err = figures.write(gallery.OfRun(r.Findings, r.Series, version()), s)
	}
	return errors.Join(err, show(r, asJSON, s), on.verdict(r.Findings))
}

// figureFlags select the figures that are written, and their style.
type figureFlags struct {
	dir, size string
	formats   []string
	dpi       int
	titles    bool
}

func (f *figureFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.dir, "figures", "", "write figures for papers and wiki pages into `DIR`, with captions and numbers")
	fs.StringSliceVar(&f.formats, "format", draw.Formats(), "`FORMATS` of the figures, some of "+strings.Join(draw.Formats(), ", "))
	fs.StringVar(&f.size, "size", "column", "`SIZE` of the figures: column (one of a paper), wide (two columns), or millimeters as in 120x80")
	fs.IntVar(&f.dpi, "dpi", draw.Defaults().DPI, "`N` pixels per inch of PNG figures, from 50 to 1200")
	fs.BoolVar(&f.titles, "titles", false, "write its title above each figure; papers have captions below")
}

// check refuses flags about figures without --figures, and values that cannot be drawn.
func (f *figureFlags) check(c *cobra.Command) error {
	if c.Flags().Changed("figures") && f.dir == "" {
		return usagef("--figures: name the folder to write them into")
	}
	for _, name := range []string{"format", "size", "dpi", "titles"} {
		if f.dir == "" && c.Flags().Changed(name) {
			return usagef("--%s is about figures: name their folder with --figures DIR", name)
		}
	}
	_, err := f.options()
	return err
}

func (f *figureFlags) options() (gallery.Options, error) {
	o := gallery.Options{Options: draw.Options{DPI: f.dpi, Title: f.titles}}
	var err error
	if o.Formats, err = gallery.ParseFormats(f.formats); err != nil {
		return o, usagef("--format: %w", err)
	}
	if o.Size, err = draw.ParseSize(f.size); err != nil {
		return o, usagef("--size: %w", err)
	}
	if _, err = draw.New(o.Options); err != nil {
		return o, usagef("--dpi: %w", err)
	}
	return o, nil
}

// write draws the set. Where it is goes to standard error: standard output has the table,
// or JSON.
func (f *figureFlags) write(set gallery.Set, s streams) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	w := s.working("drawing figures")
	o.Progress = func(done, total int) { w.Advance("drawing figures", done, total) }
	names, err := gallery.Write(f.dir, set, o)
	w.Stop()
	if err != nil {
		return fmt.Errorf("--figures: %w", err)
	}
	s.say("weir: %s in %s, as %s; captions in %s\n", say.Plural(len(names), "figure"), line(f.dir),
		strings.Join(append(o.Formats, "csv"), ", "), line(filepath.Join(f.dir, gallery.CaptionsFile)))
	return nil
}
