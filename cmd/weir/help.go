package main

import (
	_ "embed"
	"strings"

	"github.com/spf13/cobra"

	plays "weir/scenarios/transfer"
)

// helpText has the help of all commands: below "# weir run: Run a load test" what weir run --help explains, then its examples.
//
//go:embed help.txt
var helpText string

// command returns a command. Its help is in help.txt.
func command(use string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Args: args, RunE: run}
}

// group returns a command that only has subcommands.
func group(use string, subcommands ...*cobra.Command) *cobra.Command {
	c := command(use, cobra.NoArgs, func(c *cobra.Command, _ []string) error { return c.Help() })
	c.AddCommand(subcommands...)
	return c
}

// describe gives root and its subcommands their help.
func describe(root *cobra.Command) {
	sections := map[string]string{}
	text := strings.ReplaceAll("\n"+helpText, "{SCENARIOS}", strings.Join(plays.Names(), ", "))
	for section := range strings.SplitSeq(text, "\n# ") {
		name, about, _ := strings.Cut(section, ": ")
		sections[name] = about
	}
	var each func(*cobra.Command)
	each = func(c *cobra.Command) {
		if about, ok := sections[c.CommandPath()]; ok {
			c.Short, about, _ = strings.Cut(about, "\n")
			c.Long, c.Example, _ = strings.Cut(about, "\nExamples:\n")
			c.Long, c.Example = strings.TrimSpace(c.Long), strings.TrimRight(c.Example, "\n")
		}
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each(root)
}
