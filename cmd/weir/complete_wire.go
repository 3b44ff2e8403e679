package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/analysis/compare"
	"weir/figure/paper"
	"weir/scenario"
)

// complete makes c and its subcommands complete what users type. A command's
// own completion of a flag stays.
func complete(c *cobra.Command) {
	if f := argumentsOf(c); f != nil && c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 {
		c.ValidArgsFunction = f
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() != "bool" {
			_ = c.RegisterFlagCompletionFunc(f.Name, valuesOf(c, f)) // fails where there is one already
		}
	})
	for _, sub := range c.Commands() {
		complete(sub)
	}
}

// argumentsOf completes what c works on, nil where the shell does that well.
func argumentsOf(c *cobra.Command) completer {
	switch c.Name() {
	case "run", "plan":
		return completeFiles(0, "yaml", "yml")
	case "find":
		return completeFiles(1, "yaml", "yml")
	case "report", "clean", "watch", "export":
		return completeRuns(1)
	case "compare", "merge":
		return completeRuns(0)
	case "analyze":
		return completeFiles(1, "csv", "tsv", "txt", "dat")
	case "calibrate":
		return completeTargets
	case "serve", "man":
		return completeFolders
	case "doctor", "schema", "version", "list":
		return cobra.NoFileCompletions
	}
	return nil
}

// valuesOf completes the value of a flag of c: by its name, or by what its help
// calls the value.
func valuesOf(c *cobra.Command, f *pflag.Flag) completer {
	switch f.Name {
	case "set":
		return completeKeys
	case "var":
		return completeVariables
	case "target":
		return completeTargets
	case "on":
		return completeWords(false, scenario.Batches()...)
	case "resume":
		return completeRuns(0)
	case "metric":
		return completeWords(true, append(compare.MetricNames(), "all")...)
	case "points":
		return completeWords(false, "rows", "steps", "subintervals")
	case "separator":
		return completeWords(false, "comma", "semicolon", "tab", "blank")
	case "client":
		return completeWords(false, "xrdcp", "curl", "gfal-copy")
	case "format":
		return completeWords(true, paper.Formats()...)
	case "size":
		if c.Name() != "calibrate" { // there it is one of files
			return completeWords(false, "column", "wide")
		}
	case "html":
		return completeFiles(0, "html")
	}
	if f.Name == "kind" && c.Name() == "calibrate" {
		return completeWords(false, "read", "write")
	}
	switch value, _ := pflag.UnquoteUsage(f); {
	case strings.Contains(value, "DIR"):
		return completeFolders
	case strings.Contains(value, "FILE"):
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		}
	}
	return cobra.NoFileCompletions
}

// completeFolders offers folders.
func completeFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}
