package main

import (
	"errors"

	"github.com/spf13/cobra"

	"weir/report/gallery"
	"weir/run"
	"weir/run/campaign"
)

func reportCommand(s streams) *cobra.Command {
	var asJSON bool
	var on failOn
	var figures figureFlags
	c := &cobra.Command{
		Use:   "report RUN|CAMPAIGN",
		Short: "Analyze a run directory again: table, findings.json, CSV, report.html",
		Long: `Reads what a run has measured, also one that was killed, and makes again what
can be made from it: findings.json, curve.csv, intervals.csv, hosts.csv and
report.html in the run directory, and the table on standard output. Of a
campaign's folder, it compares the runs that are there again.

With --figures DIR it also draws each figure for papers and wiki pages, as SVG,
PNG and PDF under names that stay the same, with its numbers as CSV, and
captions in captions.md and captions.tex. Files of these names are replaced,
nothing is removed.`,
		Example: `  weir report runs/latest
  weir report runs/latest --json | jq .optimum
  weir report runs/latest --figures figures
  weir report runs/latest --figures figures --format pdf --size wide`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := figures.check(c); err != nil {
				return err
			}
			return reportOf(args[0], asJSON, on, &figures, s)
		},
	}
	figuresFlags(c, &figures)
	jsonFlag(c, &asJSON, jsonOfMaybe)
	failOnFlag(c, &on)
	quietFlag(c, &s.quiet)
	verboseFlag(c, &s.verbose)
	return c
}

// reportOf analyses what is in dir, draws it if a folder for figures is named,
// and says what it showed.
func reportOf(dir string, asJSON bool, on failOn, figures *figureFlags, s streams) error {
	if campaign.Is(dir) {
		c, err := campaign.Read(dir)
		if err == nil && figures.dir != "" {
			err = figures.campaign(dir, c, s)
		}
		if err != nil {
			return err
		}
		status, err := concludeCampaign(dir, c, asJSON, s)
		return errors.Join(err, on.status(status))
	}
	r, err := run.Analyze(dir, s.console())
	if err != nil {
		return err
	}
	if figures.dir != "" {
		err = figures.write(gallery.OfRun(r.Findings, r.Series, version()), s)
	}
	return errors.Join(err, show(r, asJSON, s), on.verdict(r.Findings))
}
