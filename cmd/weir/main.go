// Command weir measures a storage service's throughput limit and explains it, and
// transfers datasets between sites. `weir help` describes its use.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	_ "golang.org/x/crypto/x509roots/fallback" // Mozilla's authorities, used if the system has no authorities, as in a container

	"weir/internal/redact"
	"weir/internal/say"
	"weir/internal/screen"
	"weir/loadtest/analysis"
	"weir/loadtest/results"
	"weir/loadtest/run/live"
)

func main() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ) // a file that would exceed ulimit -f is an error, not the end
	signals := func() <-chan os.Signal {
		c := make(chan os.Signal, 4)
		signal.Notify(c, os.Interrupt, syscall.SIGTERM)
		return c
	}
	os.Exit(int(execute(context.Background(), os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, signals)))
}

// A signalSource begins to catch the signals that end a program. They end a command that does not
// call it. A nil source returns no signals.
type signalSource func() <-chan os.Signal

func (s signalSource) listen() <-chan os.Signal {
	if s == nil {
		return nil
	}
	return s()
}

// streams are the input, the outputs and the signals of a command. execute makes err a
// *screen.Screen, so that permanent lines do not disturb rows that move.
type streams struct {
	in       io.Reader
	out, err io.Writer
	quiet    bool           // no progress is shown
	verbose  bool           // results are printed in full
	stream   *live.Stream   // --json-stream; nil: no stream
	secrets  *redact.Values // removed from all errors; nil: no known secrets
	signals  signalSource
}

// execute runs the command and returns its exit code.
func execute(ctx context.Context, args []string, s streams, signals signalSource) exitCode {
	to := screen.New(s.err)
	s.err, s.out, s.secrets, s.signals = to, to.Beside(s.out), new(redact.Values), signals
	s.secrets.Learn(args...)
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitFine
	}
	text, code := outcome(err)
	if text != "" {
		s.printErr("weir: %s\n", plain(s.secrets.Text(text)))
	}
	return code
}

// newRoot returns the command with all its subcommands.
func newRoot(s streams) *cobra.Command {
	root := group("weir")
	root.SilenceErrors, root.SilenceUsage, root.DisableAutoGenTag, root.Version = true, true, true, version()
	root.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return fmt.Errorf("unknown command %q%s", args[0], suggestion(c, args[0]))
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(wrongFlag)
	root.SetHelpFunc(printHelp)
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Measure:", []*cobra.Command{runCommand(s), findCommand(s), challengeCommand(s), planCommand(s), calibrateCommand(s), cleanCommand(s)}},
		{"Find causes:", []*cobra.Command{diagnoseCommand(s)}},
		{"Analyze:", []*cobra.Command{
			listRunsCommand(s), watchCommand(s), reportCommand(s), compareCommand(s), mergeCommand(s), analyzeCommand(s), exportCommand(s),
		}},
		{"Transfer data:", []*cobra.Command{
			transferCommand(s), datasetCommand(s), siteCommand(s), agentCommand(s), coordinatorCommand(s),
		}},
		{"Prepare this machine:", []*cobra.Command{doctorCommand(s), serveCommand(s), labCommand(s), configCommand(s)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(exitCodesTopic(), schemaCommand(s), versionCommand(s))
	for _, c := range []*cobra.Command{manCommand(s), workerCommand(s), podCommand(s), keeperCommand(s), moverCommand(s),
		glanceCommand(s)} {
		c.Hidden = true
		root.AddCommand(c)
	}
	describe(root)
	checkUsage(root)
	complete(root)
	return root
}

func versionCommand(s streams) *cobra.Command {
	var asJSON bool
	c := command("version", cobra.NoArgs, func(*cobra.Command, []string) error {
		commit, at := built()
		if asJSON {
			return writeJSON(s.out, map[string]any{
				"weir": version(), "commit": commit, "date": at, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				"formats": map[string]int{"run": results.FormatVersion, "findings": analysis.FindingsVersion},
			})
		}
		text := "weir " + version()
		if release != "" && commit != "" {
			text += ", commit " + commit + " of " + at
		}
		_, err := fmt.Fprintln(s.out, text)
		return err
	})
	flagVars{"json": &asJSON}.add(c)
	return c
}

// release is VERSION/COMMIT/TIME of a release, as in 1.2.3/17c4e37.../2026-01-31T12:00:00Z, which
// the linker sets in `make release`.
var release string //nolint:gochecknoglobals // the linker sets variables only

// version returns the version of the release or, if the program is not a release, the version that
// the build recorded.
func version() string {
	if v, _, ok := strings.Cut(release, "/"); ok {
		return v
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := strings.TrimPrefix(info.Main.Version, "v")
	if commit, _ := built(); len(commit) >= 12 {
		v += " " + commit[:12]
	}
	return v
}

// built returns the commit that the program was built from and its time, as in 2026-01-31T12:00:00Z; "" if the build did not record them.
func built() (commit, at string) {
	if parts := strings.Split(release, "/"); len(parts) == 3 {
		return parts[1], parts[2]
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.time":
			at = s.Value
		}
	}
	return commit, at
}

// checkUsage turns errors in the arguments of c and its subcommands into usage errors that name the
// help to read.
func checkUsage(c *cobra.Command) {
	if args := c.Args; args != nil {
		c.Args = func(cmd *cobra.Command, a []string) error {
			if err := args(cmd, a); err != nil {
				return usageError(cmd, argumentError(cmd, a, err))
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		checkUsage(sub)
	}
}

// existing returns a PreRunE that refuses arguments that are no files or folders of this machine, nor - for standard input. what
// describes them in errors.
func existing(what string) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, paths []string) error {
		for _, path := range paths {
			if _, err := os.Stat(path); err != nil && path != "-" {
				return usageError(c, fmt.Errorf("%s is not %s: %w", line(path), what, err))
			}
		}
		return nil
	}
}

// cobraArguments matches cobra's text for a wrong number of arguments.
var cobraArguments = regexp.MustCompile(`^(accepts|requires) .*arg\(s\),( only)? received \d+`)

// argumentError replaces cobra's "arg(s)" by the use of the command, and suggests
// subcommands below the first level.
func argumentError(c *cobra.Command, args []string, err error) error {
	text := err.Error()
	if cobraArguments.MatchString(text) {
		text = cobraArguments.ReplaceAllLiteralString(text, say.Plural(len(args), "argument")+" given: use it as "+c.UseLine())
	} else if c.HasParent() && c.HasSubCommands() && len(args) > 0 {
		text += suggestion(c, args[0])
	}
	return exit{exitUsage, fmt.Errorf("%s", text)}
}

func suggestion(c *cobra.Command, word string) string {
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(word); len(near) > 0 {
		return ": did you mean " + near[0] + "?"
	}
	return ""
}

// wrongFlag returns err with the flag that was probably meant.
func wrongFlag(c *cobra.Command, err error) error {
	text := err.Error()
	if invalid := new(pflag.InvalidValueError); errors.As(err, &invalid) {
		if _, ok := invalid.GetFlag().Value.(*parsed); ok || invalid.GetFlag().Value.Type() == "func" {
			text = fmt.Sprintf("--%s: %v", invalid.GetFlag().Name, invalid.Unwrap())
		}
	}
	if name, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		if near := say.Nearest(name, known); near != "" {
			text += ": did you mean --" + near + "?"
		}
	}
	return usageError(c, fmt.Errorf("%s", text))
}

// usageError returns err as a mistake in the call of c, with the help to read.
func usageError(c *cobra.Command, err error) error {
	return exit{exitUsage, fmt.Errorf("%w\nSee: %s --help", err, c.CommandPath())}
}

// usagef returns an error in the call of a command.
func usagef(format string, args ...any) error { return exit{exitUsage, fmt.Errorf(format, args...)} }
