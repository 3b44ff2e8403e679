package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/campaign"
	"weir/loadtest/report/figure/draw"
	"weir/loadtest/report/gallery"
	"weir/loadtest/run"
)

// reportFlags are the flags of weir report.
type reportFlags struct {
	json    bool
	junit   string
	on      failOn
	figures figureFlags
}

func reportCommand(s streams) *cobra.Command {
	var f reportFlags
	f.on = failOnInvalid
	c := command("report RUN|CAMPAIGN", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
		if err := f.figures.check(c); err != nil {
			return err
		}
		if campaign.Is(args[0]) {
			return f.reportCampaign(args[0], s)
		}
		return f.reportRun(args[0], s)
	})
	c.PreRunE = existing("a run directory")
	f.figures.add(c)
	flagVars{"json": &f.json, "junit": &f.junit, "fail-on": &f.on, "quiet/q": &s.quiet, "verbose": &s.verbose}.add(c)
	return c
}

func (f *reportFlags) reportCampaign(dir string, s streams) error {
	c, err := campaign.Read(dir)
	if err == nil && f.figures.dir != "" {
		groups, gerr := campaign.FigureGroups(dir, c)
		if gerr != nil {
			return fmt.Errorf("--figures: %w", gerr)
		}
		err = f.figures.write(gallery.OfComparison(groups, version()), s)
	}
	if err != nil {
		return err
	}
	sum, err := run.Summarize(dir, c)
	if err != nil {
		return err
	}
	if err := errors.Join(f.junitOfCampaign(dir), showSummary(sum, f.json, s)); err != nil {
		return err
	}
	return f.on.status(sum.Status)
}

// junitOfCampaign writes the thresholds of all runs of the campaign in dir.
func (f *reportFlags) junitOfCampaign(dir string) error {
	if f.junit == "" {
		return nil
	}
	g, err := campaign.Group(dir)
	if err != nil {
		return err
	}
	var found []*analysis.Findings
	for _, r := range g.Runs {
		found = append(found, r.Found)
	}
	return writeJUnit(f.junit, f.on, found...)
}

// reportRun analyzes the run in dir, draws its figures if the flags name a folder for them, and shows
// the result.
func (f *reportFlags) reportRun(dir string, s streams) error {
	r, err := run.Analyze(dir, s.console())
	if r.Findings == nil {
		return err
	}
	if f.figures.dir != "" {
		err = errors.Join(err, f.figures.write(gallery.OfRun(r.Findings, r.Series, version()), s))
	}
	if err := errors.Join(err, writeJUnit(f.junit, f.on, r.Findings), show(r, f.json, s)); err != nil {
		return err
	}
	return f.on.verdict(r.Findings)
}

// figureFlags select the figures that are written, and their style.
type figureFlags struct {
	gallery.Options
	dir string
}

func (f *figureFlags) add(c *cobra.Command) {
	f.Options = gallery.Options{Options: draw.Defaults(), Formats: draw.Formats()}
	size := func(text string) (err error) {
		f.Size, err = draw.ParseSize(text)
		return err
	}
	flagVars{
		"figures": &f.dir, "format": commas{&f.Formats}, "size": &parsed{"column", size}, "dpi": &f.DPI, "titles": &f.Title,
	}.add(c)
}

// check returns an error for flags of figures without --figures, and for values that cannot be
// drawn.
func (f *figureFlags) check(c *cobra.Command) (err error) {
	if c.Flags().Changed("figures") && f.dir == "" {
		return usagef("--figures: name the folder to write them into")
	}
	for _, name := range []string{"format", "size", "dpi", "titles"} {
		if f.dir == "" && c.Flags().Changed(name) {
			return usagef("--%s is about figures: name their folder with --figures DIR", name)
		}
	}
	if f.Formats, err = gallery.ParseFormats(f.Formats); err != nil {
		return usagef("--format: %w", err)
	}
	if _, err = draw.New(f.Options.Options); err != nil {
		return usagef("--dpi: %w", err)
	}
	return nil
}

// write draws the set. It prints the folder to standard error, because the table or JSON goes to
// standard output.
func (f *figureFlags) write(set gallery.Set, s streams) error {
	w, o := s.working("drawing figures"), f.Options
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
