package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"weir/analysis/compare"
	"weir/internal/unit"
	"weir/report"
	"weir/report/gallery"
	"weir/results"
	"weir/run/campaign"
)

type compareFlags struct {
	metrics []string
	json    bool
	html    string
	regress string
	failOn  failOn
	figures figureFlags
}

func compareCommand(s streams) *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare A B [C ...] | CAMPAIGN",
		Short: "Compare runs and test the differences for significance",
		Long: `Compare runs and test the differences for significance.

B, C ... are compared with A, step by step and as a whole. Each is a run directory, a
folder of run directories (repetitions of the same plan), or the folder of a campaign. Of
one campaign alone, the variants are compared with the first one, and the effects of the
factors are estimated.

Only runs are counted, never the seconds of one run: with fewer than 4 runs of each there
is no test, 9 are recommended. Interleave them (A B A B), so that other changes affect both.

With --regress 5% the exit code is 3 if B (or C ...) is worse than A by more than 5% beyond
doubt: the whole 95% interval is beyond it. An interval that reaches over the limit passes;
more runs make it narrower. Too few runs for an interval are an error (1), an invalid run
among them is exit code 4 (weir help exit-codes).

With --figures DIR it draws all of them on one plot, for papers and wiki pages: throughput,
that of each client, wall clock time, CPU, and efficiency.`,
		Example: `  weir compare runs/before runs/after
  weir compare runs/before runs/after --metric p99 --regress 10%   # folders of at least 4 runs each
  weir compare runs/campaign --html campaign.html
  weir compare runs/direct runs/staged --figures figures --size wide`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.figures.check(c); err != nil {
				return err
			}
			return f.compare(args, s)
		},
	}
	f.figures.add(c)
	metrics := strings.Join(compare.MetricNames(), ", ")
	c.Flags().StringSliceVar(&f.metrics, "metric", nil, "`METRICS` to compare, the first decides: all, or some of "+metrics)
	jsonFlag(c, &f.json, "print the comparison as JSON instead of the tables")
	htmlFlag(c, &f.html)
	failOnFlag(c, &f.failOn)
	quietFlag(c, &s.quiet)
	verboseFlag(c, &s.verbose)
	c.Flags().StringVar(&f.regress, "regress", "", "exit with 3 if worse by more than this beyond doubt, as in `5%`")
	return c
}

func (f *compareFlags) compare(args []string, s streams) error {
	limit := unit.Fraction(-1)
	if f.regress != "" {
		var err error
		if limit, err = unit.ParseFraction(f.regress); err != nil {
			return usagef("--regress: %w", err)
		}
	}
	for _, name := range f.metrics {
		if name != "all" && compare.MetricOf(name) == nil {
			return usagef("--metric: there is no %q: use all, or some of %s", name, strings.Join(compare.MetricNames(), ", "))
		}
	}
	if len(args) == 1 && !campaign.Is(args[0]) {
		return usagef("%s alone cannot be compared: name two or more runs, or the folder of a campaign", args[0])
	}
	defer s.working("reading runs and comparing them").Stop()
	groups, factors, err := campaign.Groups(args)
	if err != nil {
		return err
	}
	c, err := compare.Of(groups, compare.Options{Metrics: f.metrics, Factors: factors})
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
	return errors.Join(err, f.regression(c, float64(limit), s))
}

// regression returns the exit code of a comparison.
func (f *compareFlags) regression(c *compare.Comparison, limit float64, s streams) error {
	worse := false
	for i := range c.Pairs {
		if limit < 0 {
			break // not requested
		}
		p := &c.Pairs[i]
		is, err := p.Regressed(limit)
		if err != nil {
			return fmt.Errorf("--regress: %w", err)
		}
		if is {
			worse = true
			s.printErr("weir: %s is worse than %s by more than %s, beyond doubt\n", line(p.B), line(p.A), unit.Percent(limit))
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
