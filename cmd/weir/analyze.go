package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"weir/analysis"
	"weir/analysis/table"
	"weir/report"
	"weir/report/gallery"
	"weir/scenario"
)

type analyzeFlags struct {
	columns    map[table.Kind]*string
	unit       string
	separator  string
	points     string
	boundaries []string
	json       bool
	html       string
	figures    figureFlags
}

func analyzeCommand(s streams) *cobra.Command {
	f := analyzeFlags{columns: map[table.Kind]*string{}}
	c := command("analyze TABLE.csv", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
		if err := f.figures.check(c); err != nil {
			return err
		}
		return f.analyze(args[0], s)
	})
	f.figures.add(c)
	flags := c.Flags()
	for _, column := range []struct {
		kind  table.Kind
		about string
	}{
		{table.Clients, "the number of clients, jobs, users or threads"}, {table.Throughput, "the throughput of all of them"},
		{table.Rate, "operations per second"}, {table.Latency, "the mean latency, or wall clock time of a job"},
		{table.Errors, "failed operations"}, {table.ErrorRatio, "the share of failed operations"},
		{table.Done, "successful operations"}, {table.Time, "times"}, {table.Step, "the number or name of the step"},
	} {
		usage := "`COLUMN` of " + column.about + ": its name, or its number from 1"
		f.columns[column.kind] = flags.String(column.kind.String(), "", usage)
	}
	flags.StringVar(&f.unit, "unit", "", "`UNIT` of the throughput, such as Gbit/s or MB/s, where the header has none")
	flags.StringVar(&f.separator, "separator", "", "separator of cells: `comma`, semicolon, tab, blank or a character (default: detected)")
	flags.StringVar(&f.points, "points", "", "points of the curve: `rows`, steps (their two middle quarters) or subintervals (all four)")
	flags.StringArrayVar(&f.boundaries, "boundary", nil, "`CONDITION` whose range of loads is reported, "+
		"such as \"latency_mean < 600s\" (repeatable)")
	jsonFlag(c, &f.json, jsonOfRun)
	htmlFlag(c, &f.html)
	quietFlag(c, &s.quiet)
	verboseFlag(c, &s.verbose)
	return c
}

func (f *analyzeFlags) analyze(name string, s streams) error {
	options := table.Options{Unit: f.unit, Columns: map[table.Kind]string{}}
	for k, column := range f.columns {
		options.Columns[k] = *column
	}
	var err error
	if options.Separator, err = table.ParseSeparator(f.separator); err != nil {
		return usagef("--separator %w", err)
	}
	for _, b := range f.boundaries {
		if _, err := scenario.ParseBoundary(b); err != nil {
			return usagef("--boundary: %w", err)
		}
	}
	defer s.working("analyzing " + name).Stop()
	of := name
	if name == "-" {
		of = "standard input"
	}
	read, err := readTable(name, of, options, s)
	if err != nil {
		return err
	}
	found, err := analysis.AnalyzeTable(read, analysis.TableOptions{Points: f.points, Boundaries: f.boundaries})
	if err != nil {
		return err
	}
	if f.html != "" {
		if err := writePage(f.html, func(w io.Writer) error { return report.HTML(w, found, nil) }); err != nil {
			return err
		}
	}
	if f.figures.dir != "" {
		if err := f.figures.write(gallery.OfTable(found, of, version()), s); err != nil {
			return err
		}
	}
	if f.json {
		return analysis.JSON(s.out, found)
	}
	return report.Text(s.out, found, s.look())
}

func readTable(name, of string, o table.Options, s streams) (*table.Table, error) {
	if name == "-" {
		return table.Read(of, s.in, o)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder: weir report analyzes a run directory, weir analyze a table", name)
	}
	return table.Read(name, file, o)
}
