package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
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

// manCommand returns the command that writes the manual pages, for packagers.
func manCommand(s streams) *cobra.Command {
	return command("man DIR", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
		date, err := manDate()
		if err != nil {
			return err
		}
		if err := os.MkdirAll(args[0], 0o755); err != nil {
			return err
		}
		root := c.Root()
		root.InitDefaultCompletionCmd()
		forManual(root)
		err = doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{
			Path: args[0], CommandSeparator: "-",
			Header: &doc.GenManHeader{Section: "1", Date: &date, Source: "weir " + version(), Manual: "weir manual"},
		})
		if err != nil {
			return err
		}
		pages, err := filepath.Glob(filepath.Join(args[0], "weir*.1"))
		if err == nil {
			_, err = fmt.Fprintf(s.out, "%d pages in %s\n", len(pages), filepath.Clean(args[0]))
		}
		return err
	})
}

// manDate returns the date of the pages, the zero time if no date is known.
func manDate() (time.Time, error) {
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return time.Time{}, usagef("SOURCE_DATE_EPOCH=%s: use seconds since 1970", line(epoch))
		}
		return time.Unix(seconds, 0).UTC(), nil
	}
	_, text := built()
	at, _ := time.Parse(time.RFC3339, text) // no date gives the zero time
	return at.UTC(), nil
}

// indented matches lines of a help text that keep their shape.
var indented = regexp.MustCompile(`(?m)(^ {2}.*\n?)+`)

// forManual prepares c and its subcommands for the generator, which reads help as
// Markdown: indented lines become blocks, values of flags get their names, and the
// sections on exit codes, environment and files are added.
func forManual(c *cobra.Command) {
	c.Long = indented.ReplaceAllStringFunc(c.Long, func(block string) string {
		return "\n    " + strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", "\n    ") + "\n\n"
	})
	c.Long = cmp.Or(c.Long, c.Short+".")
	c.Long += "\n\n# EXIT STATUS\n"
	for _, e := range exitCodes() {
		c.Long += fmt.Sprintf("**%d**\n\t%s\n\n", e.code, e.means)
	}
	environment, _ := helpOf("manual environment")
	c.Long += "# " + environment + "\n\n"
	if files, _ := helpOf("manual files"); !c.HasParent() {
		c.Long += "# " + strings.TrimSpace(files) + "\n\n"
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		value, usage := pflag.UnquoteUsage(f)
		if f.Value.Type() == "bool" || value == "" {
			return
		}
		if d := f.DefValue; d != "" && d != "0" && d != "0s" && d != "[]" && !strings.Contains(usage, "(default") {
			usage += " (default " + d + ")"
		}
		f.Usage, f.DefValue = usage, value
	})
	for _, sub := range c.Commands() {
		forManual(sub)
	}
}
