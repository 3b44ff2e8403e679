package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/lab"
	"weir/loadtest/analysis/campaign"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/report/figure/draw"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	plays "weir/scenarios/transfer"
	"weir/transfer"
	"weir/transfer/client"
	"weir/transfer/text"
)

// A completer returns the words that can be typed next.
type completer = func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

const (
	noFiles = cobra.ShellCompDirectiveNoFileComp
	noSpace = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
)

// complete makes c and its subcommands complete arguments and values of flags.
func complete(c *cobra.Command) {
	c.ValidArgsFunction = argumentsOf(c)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() != "bool" {
			_ = c.RegisterFlagCompletionFunc(f.Name, valuesOf(c, f)) // the flag is there
		}
	})
	for _, sub := range c.Commands() {
		complete(sub)
	}
}

// argumentsOf completes the arguments of c; nil leaves it to the shell.
func argumentsOf(c *cobra.Command) completer {
	for _, of := range []struct {
		commands  string
		completes completer
	}{
		{"run, plan", completeFiles("yaml", "yml")},
		{"find, challenge", completeFirst(completeFiles("yaml", "yml"))},
		{"report, clean, watch, export", completeFirst(completeRuns)},
		{"list", completeFirst(completeFolders)},
		{"compare, merge", completeRuns},
		{"analyze", completeFirst(completeFiles("csv", "tsv", "txt", "dat"))},
		{"calibrate", completeTargets},
		{"serve, man", completeFolders},
		{"config check", thenFiles(configCommands()...)},
		{"config schema, config example", completeFirst(completeWords(configCommands()...))},
		{"lab up", thenFiles(lab.Names()...)},
		{"site show, site remove", completeFirst(completeSites)},
		{"dataset list, dataset show, dataset files, dataset add, dataset remove, transfer submit", completeFirst(completeDatasets)},
		{"transfer approve, transfer reject", completeRequests(string(transfer.Awaiting))},
		{"transfer cancel, transfer explain", completeRequests(openRequests)},
		{"transfer retry, transfer show, transfer manifest, transfer record", completeRequests("")},
		{"transfer demo", cobra.FixedCompletions(plays.Names(), cobra.ShellCompDirectiveDefault)},
		{"coordinator backup, coordinator restore", nil},
	} {
		if slices.Contains(strings.Split(of.commands, ", "), strings.TrimPrefix(c.CommandPath(), "weir ")) {
			return of.completes
		}
	}
	return cobra.NoFileCompletions
}

// valuesOf completes the value of a flag: by the name of the command and its own, by its name, or by the name of its value.
func valuesOf(c *cobra.Command, f *pflag.Flag) completer {
	known := map[string]completer{
		"set": completeKeys, "up set": completeDirectives, "challenge set": cobra.NoFileCompletions,
		"var": completeVariables, "target": completeTargets, "resume": completeRuns,
		"to": completeSites, "from": completeSites, "site": completeSites, "agent site": cobra.NoFileCompletions,
		"move-db to": completeAny, "move-db from": completeAny, "dataset": completeDatasets, "html": completeFiles("html"),
		"metric": completeLists(append(compare.MetricNames(), "all")...), "format": completeLists(draw.Formats()...),
		"role": completeLists("read", "submit", "approve", "admin"), "calibrate size": cobra.NoFileCompletions,
	}
	for name, words := range map[string][]string{
		"on": scenario.Batches(), "points": {"rows", "steps", "subintervals"}, "separator": {"comma", "semicolon", "tab", "blank"},
		"calibrate client": {"xrdcp", "curl", "gfal-copy"}, "kind": {"read", "write"}, "size": {"column", "wide"}, "auth": lab.XRootDAuths(),
		"version": lab.XRootDVersions(), "fail-on": {"suspect", "invalid", "never"}, "mode": textsOf(transfer.Modes()),
		"show state": textsOf(text.States()), "status": textsOf(text.Statuses()), "scale": {"small", "seed"},
	} {
		known[name] = completeWords(words...)
	}
	for _, name := range []string{c.Name() + " " + f.Name, f.Name} {
		if known[name] != nil {
			return known[name]
		}
	}
	switch value, _ := pflag.UnquoteUsage(f); {
	case strings.Contains(value, "DIR"):
		return completeFolders
	case strings.Contains(value, "FILE"):
		return completeAny
	}
	return cobra.NoFileCompletions
}

// textsOf returns the texts of constants.
func textsOf[T ~string](all []T) (texts []string) {
	for _, one := range all {
		texts = append(texts, string(one))
	}
	return texts
}

// completeAny offers all files.
func completeAny(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

func completeFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeFiles offers files with these endings.
func completeFiles(endings ...string) completer {
	return cobra.FixedCompletions(endings, cobra.ShellCompDirectiveFilterFileExt)
}

func completeWords(words ...string) completer { return cobra.FixedCompletions(words, noFiles) }

// completeLists offers any number of words between commas.
func completeLists(words ...string) completer {
	return func(_ *cobra.Command, _ []string, typed string) (offers []string, _ cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		for _, w := range words {
			if !slices.Contains(strings.Split(before, ","), w) {
				offers = append(offers, before+w)
			}
		}
		return offers, noSpace
	}
}

// completeTargets offers the beginnings of URLs.
func completeTargets(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{
		"built-in", "http://", "https://", "dav://", "davs://", "root://", "roots://", "xroot://", "xroots://", "ftp://", "file:///",
		"simulated://",
	}, noSpace
}

// completeVariables offers the variables of the named scenarios.
func completeVariables(_ *cobra.Command, args []string, _ string) (offers []string, _ cobra.ShellCompDirective) {
	for _, file := range args {
		var sc struct {
			Variables map[string]any `yaml:"variables"`
		}
		text, err := os.ReadFile(file)
		if err != nil || yaml.Unmarshal(text, &sc) != nil {
			continue // not complete yet
		}
		for name := range sc.Variables {
			offers = append(offers, name+"=")
		}
	}
	slices.Sort(offers)
	return slices.Compact(offers), noSpace
}

// completeKeys offers the keys of a scenario with their descriptions, and behind the = of
// a key its values.
func completeKeys(_ *cobra.Command, _ []string, typed string) (offers []string, _ cobra.ShellCompDirective) {
	keys := scenario.SettableKeys()
	key, _, hasValue := strings.Cut(typed, "=")
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
	if offers = slices.Compact(offers); hasValue {
		return offers, noFiles
	}
	return offers, noSpace
}

// completeRuns offers run directories and campaigns, and the folders that lead to them.
func completeRuns(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var runs, folders []string
	for _, dir := range foldersLike(typed) {
		switch {
		case isRunOrCampaign(dir):
			if !slices.Contains(args, dir) {
				runs = append(runs, dir)
			}
		case hasRuns(dir):
			folders = append(folders, dir+"/")
		}
	}
	if len(folders) > 0 {
		return append(runs, folders...), noSpace
	}
	return runs, noFiles
}

func isRunOrCampaign(dir string) bool { return results.IsRun(dir) || campaign.Is(dir) }

// foldersLike returns the folders whose path begins with typed, and the folders in runs if nothing
// was typed.
func foldersLike(typed string) (dirs []string) {
	base := typed[:strings.LastIndexByte(typed, '/')+1] // as typed
	for _, parent := range slices.Compact([]string{base, "runs/"}) {
		entries, err := os.ReadDir(filepath.Clean(parent)) // . if it is empty
		if err != nil || parent != base && typed != "" {
			continue
		}
		for _, e := range entries {
			name := parent + e.Name()
			hidden := strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(typed, parent+".")
			if info, err := os.Stat(name); err == nil && info.IsDir() && strings.HasPrefix(name, typed) && !hidden {
				dirs = append(dirs, name)
			}
		}
	}
	return dirs
}

// hasRuns reports whether a run or a campaign is in dir, or one folder below.
func hasRuns(dir string) bool {
	for _, pattern := range []string{"*", "*/*"} {
		below, err := filepath.Glob(filepath.Join(dir, pattern))
		if err == nil && slices.ContainsFunc(below[:min(len(below), 1000)], isRunOrCampaign) {
			return true
		}
	}
	return false
}

// offered returns the words that query gets from the coordinator: no words if it does not respond
// within 2 seconds.
func offered(c *cobra.Command, query func(context.Context, *client.Client) ([]string, error)) (all []string, _ cobra.ShellCompDirective) {
	value := func(name string) string {
		if f := c.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	f := clientFlags{
		address: value("coordinator"), tokenFile: value("token-file"), ca: value("coordinator-ca"), cert: value("client-cert"),
		key: value("client-key"),
	}
	ctx, cancel := context.WithTimeout(c.Context(), 2*time.Second)
	defer cancel()
	_ = f.call(func(co *client.Client) (err error) {
		all, err = query(ctx, co)
		return err
	})
	return all, noFiles
}

// completeDirectives offers the directives of XRootD that can be set.
func completeDirectives(*cobra.Command, []string, string) (all []string, _ cobra.ShellCompDirective) {
	for _, name := range lab.XRootDDirectives() {
		all = append(all, name+"=")
	}
	return all, noSpace
}

// completeSites offers the names of sites, also in a list.
func completeSites(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	return offered(c, func(ctx context.Context, co *client.Client) (names []string, _ error) {
		sites, err := co.Sites(ctx)
		for _, s := range sites {
			names = append(names, before+s.Name+"\t"+string(s.Kind)+" "+line(s.URL))
		}
		return names, err
	})
}

// thenFiles offers words for the first argument, and leaves the others to the shell.
func thenFiles(words ...string) completer {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return words, noFiles
	}
}

// completeFirst completes the first argument only.
func completeFirst(f completer) completer {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, noFiles
		}
		return f(c, args, typed)
	}
}

func completeDatasets(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return offered(c, func(ctx context.Context, co *client.Client) (names []string, _ error) {
		all, err := co.Datasets(ctx, typed[:max(len(typed)-1, 0)], 1000) // all names with this prefix sort after the shorter text
		for _, one := range all {
			if strings.HasPrefix(one.Name, typed) {
				names = append(names, fmt.Sprintf("%s\t%d files", one.Name, one.Files))
			}
		}
		return names, err
	})
}

// openRequests stands, among statuses, for all requests that have not ended.
const openRequests = "open"

// completeRequests offers the numbers of requests of a status, or ("") of all.
func completeRequests(status string) completer {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		want := transfer.Filter{Limit: 100, Open: status == openRequests}
		if !want.Open {
			want.Status = transfer.Status(status)
		}
		return offered(c, func(ctx context.Context, co *client.Client) (ids []string, _ error) {
			all, err := co.Requests(ctx, want)
			for _, r := range all {
				if id := strconv.FormatInt(r.ID, 10); !slices.Contains(args, id) {
					ids = append(ids, fmt.Sprintf("%s\t%s to %s: %s", id, line(r.Dataset), line(r.To), r.Status))
				}
			}
			return ids, err
		})
	}
}
