package main

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"weir/analysis"
	"weir/internal/say"
	"weir/results"
)

// newRoot returns the command with all its subcommands.
func newRoot(s streams, signals signalSource) *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "How much does this storage carry, where does it stop growing, why, and is that true?",
		Long: `weir drives a storage service with virtual clients, step by step, watches both
sides, and says what it saw: a curve with intervals, a verdict, and whether it
can be believed. It also moves datasets between sites, and verifies each file.

weir help exit-codes lists the exit codes.`,
		Example: `  weir run                                            # the built-in server, half a minute
  weir run --target davs://se.example.org/data --clients 1,10,100 --hold 10s
  weir run scenario.yaml --set load.hold=30s
  weir find davs://se.example.org/data --time 20m     # how many clients give most?
  weir compare runs/before runs/after
  weir report runs/latest                             # analyze again`,
		SilenceErrors: true, SilenceUsage: true,
		Version: version(),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := ""
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				hint = ": did you mean " + near[0] + "?"
			}
			return fmt.Errorf("unknown command %q%s", args[0], hint)
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(wrongFlag)
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"measure", "Measure:", []*cobra.Command{runCommand(s, signals), findCommand(s, signals), planCommand(s), calibrateCommand(s, signals), cleanCommand(s, signals)}},
		{"understand", "Understand:", []*cobra.Command{watchCommand(s, signals), reportCommand(s), compareCommand(s), mergeCommand(s), analyzeCommand(s), exportCommand(s, signals)}},
		{"move", "Move data:", []*cobra.Command{transferCommand(s, signals), datasetCommand(s, signals), siteCommand(s), agentCommand(s, signals), coordinatorCommand(s, signals)}},
		{"try", "Try things on this machine:", []*cobra.Command{doctorCommand(s), serveCommand(s, signals), labCommand(s, signals)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.AddCommand(exitCodesTopic(), schemaCommand(s), versionCommand(s), manCommand(s), workerCommand(s, signals), partCommand(s, signals), keeperCommand(s, signals), moverCommand(s, signals), glanceCommand(s, signals))
	usage(root)
	complete(root)
	return root
}

// usage makes wrong arguments of c and its subcommands a usage error, with the
// place where help is.
func usage(c *cobra.Command) {
	if args := c.Args; args != nil {
		c.Args = func(cmd *cobra.Command, a []string) error {
			if err := args(cmd, a); err != nil {
				return exit{exitUsage, fmt.Errorf("%s\nSee: %s --help", plainUsage(cmd, a, err), cmd.CommandPath())}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		usage(sub)
	}
}

// cobraArguments matches what cobra says of a wrong number of arguments.
var cobraArguments = regexp.MustCompile(`^(accepts|requires) .*arg\(s\),( only)? received \d+`)

// plainUsage says what is wrong with arguments, and what would be right: cobra counts
// "arg(s)", and has suggestions for the first word only.
func plainUsage(c *cobra.Command, args []string, err error) string {
	if text := err.Error(); cobraArguments.MatchString(text) { // there may be a hint behind it
		return cobraArguments.ReplaceAllLiteralString(text, say.Plural(len(args), "argument")+" given: use it as "+c.UseLine())
	}
	if c.HasParent() && c.HasSubCommands() && len(args) > 0 {
		c.SuggestionsMinimumDistance = 2
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			return err.Error() + ": did you mean " + near[0] + "?"
		}
	}
	return err.Error()
}

func versionCommand(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print which version this is", Args: cobra.NoArgs, Example: "  weir version",
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return writeJSON(s.out, map[string]any{
					"weir": version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
					"formats": map[string]int{"run": results.FormatVersion, "findings": analysis.FindingsVersion},
				})
			}
			_, err := fmt.Fprintln(s.out, "weir", version())
			return err
		},
	}
	jsonFlag(c, &asJSON, "print it as JSON, with the formats that it writes")
	return c
}

// version tells which code this is, as far as the build knows.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := strings.TrimPrefix(info.Main.Version, "v")
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			v += " " + s.Value[:12]
		}
	}
	return v
}
