package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"weir/loadtest/analysis"
	"weir/loadtest/analysis/table"
	"weir/loadtest/report"
	"weir/loadtest/report/gallery"
	"weir/loadtest/scenario"
)

type analyzeFlags struct {
	table.Options
	analysis.TableOptions
	json    bool
	html    string
	figures figureFlags
}

func analyzeCommand(s streams) *cobra.Command {
	f := analyzeFlags{Options: table.Options{Columns: map[table.Kind]string{}}}
	c := command("analyze TABLE...", cobra.MinimumNArgs(1), func(c *cobra.Command, args []string) error {
		if err := f.figures.check(c); err != nil {
			return err
		}
		return f.analyze(args, s)
	})
	c.PreRunE = existing("a table")
	f.figures.add(c)
	vars := flagVars{
		"unit": &f.Unit, "separator": into(&f.Separator, table.ParseSeparator), "points": &f.Points, "json": &f.json, "html": &f.html,
		"quiet/q": &s.quiet, "verbose": &s.verbose,
		"boundary": each(func(text string) error {
			f.Boundaries = append(f.Boundaries, text)
			_, err := scenario.ParseBoundary(text)
			return err
		}),
	}
	for k := table.Clients; k <= table.Step; k++ {
		vars[k.String()] = func(column string) error {
			f.Columns[k] = column
			return nil
		}
	}
	vars.add(c)
	return c
}

func (f *analyzeFlags) analyze(names []string, s streams) error {
	defer s.working("analyzing " + names[0]).Stop()
	var all []*table.Table
	for _, name := range names {
		t, err := readTable(name, f.Options, s)
		if err != nil {
			return err
		}
		all = append(all, t)
	}
	read, err := table.Join(all...)
	if err != nil {
		return err
	}
	found, err := analysis.AnalyzeTable(read, f.TableOptions)
	if err != nil {
		return err
	}
	if f.html != "" {
		if err := writePage(f.html, func(w io.Writer) error { return report.HTML(w, found, nil) }); err != nil {
			return err
		}
	}
	if f.figures.dir != "" {
		if err := f.figures.write(gallery.OfTable(found, read.Name, version()), s); err != nil {
			return err
		}
	}
	if f.json {
		return analysis.JSON(s.out, found)
	}
	return report.Text(s.out, found, s.look())
}

func readTable(name string, o table.Options, s streams) (*table.Table, error) {
	if name == "-" {
		return table.Read("standard input", s.in, o)
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
