package main

import (
	"embed"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed config/*.yaml
var configExamples embed.FS

// configCommands are the commands that take a configuration file.
func configCommands() []string { return []string{"coordinator", "agent", "serve"} }

// configOf returns a command that takes a configuration file, only to read one: its file and the
// check of its flags.
func configOf(name string) (c *cobra.Command, file *configFile, check func() error, err error) {
	c = &cobra.Command{Use: name}
	switch name {
	case "coordinator":
		var f coordinatorFlags
		f.add(c)
		return c, &f.file, f.check, nil
	case "agent":
		var f agentFlags
		f.addAll(c)
		return c, &f.file, f.check, nil
	case "serve":
		var f serveFlags
		f.add(c)
		return c, &f.file, f.check, nil
	}
	return nil, nil, nil, usagef("%s takes no configuration file: use one of %s", line(name), strings.Join(configCommands(), ", "))
}

func configCommand(s streams) *cobra.Command {
	return group(&cobra.Command{
		Use:   "config",
		Short: "Check and describe configuration files of coordinator, agent and serve",
		Long: `Check and describe the configuration files that weir coordinator, weir agent and weir serve
take with --config FILE.

The keys of a file are the flags of the command, with _ for -, and repeated flags are lists.
Flags on the command line override the file. Paths are relative to the folder of the file.
A coordinator's file also has sites, tokens and notifications. A file never contains a
secret: it names the file or the environment variable that does.`,
		Example: `  weir config example coordinator > coordinator.yaml
  weir config check coordinator coordinator.yaml
  weir coordinator --config coordinator.yaml`,
	}, configCheckCommand(s), configSchemaCommand(s), configExampleCommand(s))
}

func configCheckCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "check COMMAND FILE",
		Short: "Check a configuration file without starting anything",
		Long: `Check a configuration file without starting anything. Each mistake is printed with its file,
line and column and what would be right. The exit code is 2 if there is any.`,
		Example: "  weir config check coordinator /etc/weir/coordinator.yaml",
		Args:    cobra.ExactArgs(2), ValidArgsFunction: completeCommandAndFile,
		RunE: func(_ *cobra.Command, args []string) error {
			c, file, check, err := configOf(args[0])
			if err != nil {
				return err
			}
			file.path = args[1]
			if err := file.load(c, check); err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "%s is a valid configuration of weir %s\n", line(args[1]), args[0])
			return err
		},
	}
}

func configSchemaCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema COMMAND",
		Short: "Print the JSON Schema of a command's configuration files, for editors",
		Example: `  weir config schema coordinator > coordinator.schema.json
  # then, as the first line of a configuration file:
  # yaml-language-server: $schema=coordinator.schema.json`,
		Args: cobra.ExactArgs(1), ValidArgs: configCommands(),
		RunE: func(_ *cobra.Command, args []string) error {
			c, file, _, err := configOf(args[0])
			if err != nil {
				return err
			}
			text, err := configFormat(args[0]).Schema(reflect.New(file.structOf(c.Flags())).Interface())
			if err != nil {
				return err
			}
			_, err = s.out.Write(text)
			return err
		},
	}
}

func configExampleCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "example COMMAND",
		Short:   "Print a commented configuration file of a command",
		Example: "  weir config example agent > agent.yaml",
		Args:    cobra.ExactArgs(1), ValidArgs: configCommands(),
		RunE: func(_ *cobra.Command, args []string) error {
			if _, _, _, err := configOf(args[0]); err != nil {
				return err
			}
			text, err := configExamples.ReadFile("config/" + args[0] + ".yaml")
			if err != nil {
				return err
			}
			_, err = s.out.Write(text)
			return err
		},
	}
}

// completeCommandAndFile completes the arguments of weir config check.
func completeCommandAndFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return configCommands(), noFiles
	case 1:
		return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	}
	return nil, noFiles
}
