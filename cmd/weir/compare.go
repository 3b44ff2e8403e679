package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/unit"
	"weir/loadtest/analysis/campaign"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/report"
	"weir/loadtest/report/gallery"
	"weir/loadtest/results"
)

type compareFlags struct {
	metrics []string
	json    bool
	html    string
	regress float64 // negative: not requested
	failOn  failOn
	figures figureFlags
}

func compareCommand(s streams) *cobra.Command {
	f := compareFlags{regress: -1, failOn: failOnInvalid}
	c := command("compare A B [C ...] | CAMPAIGN", cobra.MinimumNArgs(1), func(c *cobra.Command, args []string) error {
		if err := f.figures.check(c); err != nil {
			return err
		}
		return f.compare(args, s)
	})
	c.PreRunE = existing("a run directory")
	f.figures.add(c)
	flagVars{
		"metric": commas{&f.metrics}, "json": &f.json, "html": &f.html, "fail-on": &f.failOn, "quiet/q": &s.quiet, "verbose": &s.verbose,
		"regress": into(&f.regress, unit.ParseFraction),
	}.add(c)
	return c
}

func (f *compareFlags) compare(args []string, s streams) error {
	for _, name := range f.metrics {
		if name != "all" && compare.MetricOf(name) == nil {
			return usagef("--metric: there is no %q: use all, or some of %s", name, strings.Join(compare.MetricNames(), ", "))
		}
	}
	if len(args) == 1 && !campaign.Is(args[0]) {
		return usagef("%s alone cannot be compared: name two or more runs, or the folder of a campaign", args[0])
	}
	defer s.working("reading runs and comparing them").Stop()
	groups, factors, left, err := campaign.Groups(args)
	if err != nil {
		return err
	}
	if f.regress >= 0 && len(left) > 0 {
		return fmt.Errorf("--regress needs all runs: %s", left[0].Text)
	}
	c, err := compare.Of(groups, compare.Options{Metrics: f.metrics, Factors: factors, LeftOut: left})
	if err != nil {
		return err
	}
	if f.json {
		err = c.JSON(s.out)
	} else {
		err = report.Comparison(s.out, c, s.look())
	}
	if f.html != "" {
		err = errors.Join(err, writePage(f.html, func(w io.Writer) error { return report.ComparisonHTML(w, c) }))
	}
	if f.figures.dir != "" {
		err = errors.Join(err, f.figures.write(gallery.OfComparison(groups, version()), s))
	}
	return errors.Join(err, f.regression(c, s))
}

// regression returns the exit code of a comparison.
func (f *compareFlags) regression(c *compare.Comparison, s streams) error {
	worse := false
	for i := 0; i < len(c.Pairs) && f.regress >= 0; i++ {
		p := &c.Pairs[i]
		is, err := p.Regressed(f.regress)
		if err != nil {
			return fmt.Errorf("--regress: %w", err)
		}
		if is {
			worse = true
			s.printErr("weir: %s is worse than %s by more than %s, beyond doubt\n", line(p.B), line(p.A), unit.Percent(f.regress))
		}
	}
	if err := f.failOn.status(c.Status); err != nil {
		return err
	}
	if worse {
		return exit{code: exitMissed}
	}
	return nil
}

// writePage writes a page as a file, whole or not at all.
func writePage(name string, page func(io.Writer) error) error {
	return results.WriteFile(filepath.Dir(name), filepath.Base(name), page)
}
