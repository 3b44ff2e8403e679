package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"weir/results/campaign"
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
			case isRun(dir) || campaign.Is(dir):
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
			if isRun(d) || campaign.Is(d) {
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

// completeKeys offers the keys of a scenario with what they mean, and behind
// a key the values that it may have.
func completeKeys(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	const more = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	text, err := scenario.Schema()
	var root schemaNode
	if err != nil || json.Unmarshal(text, &root) != nil {
		return nil, more
	}
	key, _, hasValue := strings.Cut(typed, "=")
	var offers []string
	root.walk("", func(path string, n *schemaNode) {
		switch {
		case hasValue && path == key:
			for _, v := range n.values() {
				offers = append(offers, key+"="+v)
			}
		case !hasValue && strings.HasPrefix(path, typed):
			about, _, _ := strings.Cut(n.Description, "\n")
			offers = append(offers, path+"=\t"+about)
		}
	})
	slices.Sort(offers)
	offers = slices.Compact(offers) // a key may be written in several ways
	if hasValue {
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
	return offers, more
}

// A schemaNode is what completion needs of a JSON Schema.
type schemaNode struct {
	Properties  map[string]*schemaNode `json:"properties"`
	AnyOf       []*schemaNode          `json:"anyOf"`
	OneOf       []*schemaNode          `json:"oneOf"`
	Enum        []any                  `json:"enum"`
	Const       any                    `json:"const"`
	Type        any                    `json:"type"`
	Description string                 `json:"description"`
	Ref         string                 `json:"$ref"`
}

// walk calls f with each key below n that can be set, and its path.
func (n *schemaNode) walk(path string, f func(string, *schemaNode)) {
	for name, below := range n.Properties {
		full := strings.TrimPrefix(path+"."+name, ".")
		f(full, below)
		below.walk(full, f)
	}
	for _, one := range slices.Concat(n.AnyOf, n.OneOf) {
		one.walk(path, f)
	}
}

// values are the words that n may be.
func (n *schemaNode) values() []string {
	var all []string
	for _, v := range n.Enum {
		if text, ok := v.(string); ok {
			all = append(all, text)
		}
	}
	if text, ok := n.Const.(string); ok {
		all = append(all, text)
	}
	if n.Type == "boolean" {
		all = append(all, "false", "true")
	}
	for _, one := range slices.Concat(n.AnyOf, n.OneOf) {
		all = append(all, one.values()...)
	}
	return all
}
