package main

import (
	"cmp"
	_ "embed"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/lab"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/report/figure/draw"
	plays "weir/scenarios/transfer"
)

// helpText has the help of all commands: below "# weir run: Run a load test" the explanation, the
// examples and the flags of weir run --help. Flags that have no text in the section of their
// command have a text below "# flags: ".
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

// printCommand returns a command that prints a text.
func printCommand(s streams, use string, args cobra.PositionalArgs, text func(args []string) ([]byte, error)) *cobra.Command {
	return command(use, args, func(_ *cobra.Command, args []string) error {
		b, err := text(args)
		if err == nil {
			_, err = s.out.Write(b)
		}
		return err
	})
}

// helpOf returns a section of help.txt, and the texts of its flags by their names.
func helpOf(name string) (about string, flags map[string]string) {
	_, about, _ = strings.Cut("\n"+helpText, "\n# "+name+": ")
	about, _, _ = strings.Cut(about, "\n# ")
	list := func(names []string) string { return strings.Join(names, ", ") }
	about, lines, _ := strings.Cut(strings.NewReplacer("{SCENARIOS}", list(plays.Names()), "{AUTHS}", list(lab.XRootDAuths()),
		"{METRICS}", list(compare.MetricNames()), "{FORMATS}", list(draw.Formats())).Replace(about), "\nFlags:\n")
	flags = map[string]string{}
	for line := range strings.Lines(lines) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		flags[name] = text
	}
	return about, flags
}

// describe gives c, its flags and its subcommands their help.
func describe(c *cobra.Command) {
	about, flags := helpOf(c.CommandPath())
	_, common := helpOf("flags")
	if about != "" {
		c.Short, about, _ = strings.Cut(about, "\n")
		c.Long, c.Example, _ = strings.Cut(about, "\nExamples:\n")
		c.Long, c.Example = strings.TrimSpace(c.Long), strings.TrimRight(c.Example, "\n")
	}
	c.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = cmp.Or(flags[f.Name], common[f.Name], f.Usage) })
	for _, sub := range c.Commands() {
		describe(sub)
	}
}
