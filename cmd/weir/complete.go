package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/analysis/compare"
	"weir/report/figure/draw"
	"weir/results"
	"weir/run/campaign"
	"weir/scenario"
)

// A completer offers what can be typed next.
type completer = func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// completeRuns offers run directories and campaigns, and the folders that lead
// to them: as many arguments as most, or any number if that is 0.
func completeRuns(most int) completer {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var runs, folders []string
		for _, dir := range foldersLike(typed) {
			switch {
			case results.IsRun(dir) || campaign.Is(dir):
				if !slices.Contains(args, dir) {
					runs = append(runs, dir)
				}
			case holdsRuns(dir):
				folders = append(folders, dir+"/")
			}
		}
		if len(folders) > 0 {
			return append(runs, folders...), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return runs, cobra.ShellCompDirectiveNoFileComp
	}
}

// foldersLike returns the folders whose path begins with typed, and those in
// runs where nothing was typed.
func foldersLike(typed string) []string {
	var dirs []string
	base := typed[:strings.LastIndexByte(typed, '/')+1] // as it was typed
	for _, parent := range slices.Compact([]string{base, "runs/"}) {
		entries, err := os.ReadDir(filepath.Clean(parent)) // . where it is empty
		if err != nil || parent != base && typed != "" {
			continue
		}
		for _, e := range entries {
			name := parent + e.Name()
			if !strings.HasPrefix(name, typed) || strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(typed, parent+".") {
				continue
			}
			if info, err := os.Stat(name); err == nil && info.IsDir() {
				dirs = append(dirs, name)
			}
		}
	}
	return dirs
}

// holdsRuns tells whether a run or a campaign is in dir, or one folder below.
func holdsRuns(dir string) bool {
	for _, pattern := range []string{"*", "*/*"} {
		below, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return false // a folder with a name that is a broken pattern
		}
		for _, d := range below[:min(len(below), 1000)] {
			if results.IsRun(d) || campaign.Is(d) {
				return true
			}
		}
	}
	return false
}

// completeFiles offers files with these endings.
func completeFiles(most int, endings ...string) completer {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}

// completeWords offers these words; with several, any number of them between commas.
func completeWords(several bool, words ...string) completer {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := ""
		if several {
			before = typed[:strings.LastIndexByte(typed, ',')+1]
		}
		var offers []string
		for _, w := range words {
			if !slices.Contains(strings.Split(before, ","), w) {
				offers = append(offers, before+w)
			}
		}
		if several {
			return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeTargets offers the beginnings of URLs.
func completeTargets(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	offers, _ := completeWords(false,
		"built-in", "http://", "https://", "dav://", "davs://", "root://", "roots://", "xroot://", "xroots://", "ftp://", "file:///", "simulated://")(c, args, typed)
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeVariables offers the variables of the scenarios that are named.
func completeVariables(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var offers []string
	for _, file := range args {
		var sc struct {
			Variables map[string]any `yaml:"variables"`
		}
		text, err := os.ReadFile(file)
		if err != nil || yaml.Unmarshal(text, &sc) != nil {
			continue // not whole yet: nothing is known of it
		}
		for name := range sc.Variables {
			offers = append(offers, name+"=")
		}
	}
	slices.Sort(offers)
	return slices.Compact(offers), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeKeys offers the keys of a scenario with their descriptions, and after the =
// of a key its values.
func completeKeys(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	keys := scenario.SettableKeys()
	key, _, hasValue := strings.Cut(typed, "=")
	var offers []string
	for _, k := range keys {
		switch {
		case hasValue && k.Path == key:
			for _, v := range k.Values {
				offers = append(offers, key+"="+v)
			}
		case !hasValue && strings.HasPrefix(k.Path, typed):
			offers = append(offers, k.Path+"=\t"+k.About)
		}
	}
	slices.Sort(offers)
	offers = slices.Compact(offers)
	if hasValue {
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

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
		return completeWords(true, draw.Formats()...)
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
