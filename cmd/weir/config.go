package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/document"
	"weir/internal/flagfile"
)

//go:embed config/*.yaml
var configExamples embed.FS

// configCommands are the commands that take a configuration file.
func configCommands() []string { return []string{"coordinator", "agent", "serve"} }

// configOf returns a command that only reads a configuration file, with its file and the check of
// its flags.
func configOf(name string) (c *cobra.Command, file *flagfile.File, check func() error, err error) {
	c = &cobra.Command{Use: name}
	group("weir", c)
	switch name {
	case "coordinator":
		var f coordinatorFlags
		f.add(c)
		file, check = &f.file, f.check
	case "agent":
		var f agentFlags
		f.addAll(c)
		file, check = &f.file, f.check
	case "serve":
		var f serveFlags
		f.add(c)
		file, check = &f.file, f.check
	default:
		err = usagef("%s takes no configuration file: use one of %s", line(name), strings.Join(configCommands(), ", "))
	}
	describe(c)
	return c, file, check, err
}

func configCommand(s streams) *cobra.Command {
	return group("config", configCheckCommand(s), configSchemaCommand(s), configExampleCommand(s))
}

func configCheckCommand(s streams) *cobra.Command {
	return command("check COMMAND FILE", cobra.ExactArgs(2), func(_ *cobra.Command, args []string) error {
		c, file, check, err := configOf(args[0])
		if err != nil {
			return err
		}
		file.Path = args[1]
		if err := loadConfig(c, file, check); err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.out, "%s is a valid configuration of weir %s\n", line(args[1]), args[0])
		return err
	})
}

func configSchemaCommand(s streams) *cobra.Command {
	return printCommand(s, "schema COMMAND", cobra.ExactArgs(1), func(args []string) ([]byte, error) {
		c, file, _, err := configOf(args[0])
		if err != nil {
			return nil, err
		}
		return file.Schema(c.Flags(), configFormat(args[0]))
	})
}

func configExampleCommand(s streams) *cobra.Command {
	return printCommand(s, "example COMMAND", cobra.ExactArgs(1), func(args []string) ([]byte, error) {
		if _, _, _, err := configOf(args[0]); err != nil {
			return nil, err
		}
		return configExamples.ReadFile("config/" + args[0] + ".yaml")
	})
}

// serveKeys are the keys of a server's file that are not flags.
type serveKeys struct {
	Dir string `yaml:"dir" doc:"Folder that is served."`
}

// configFormat is the format of the file of a command.
func configFormat(name string) document.Format {
	return document.Format{
		Noun: "configuration", Title: "weir " + name + " configuration",
		About: "Settings of weir " + name + ": its flags, with _ for -. Paths are relative to the folder of the file.",
	}
}

// loadConfig reads the file of --config, if there is one, and calls check. Its errors are usage errors.
func loadConfig(c *cobra.Command, f *flagfile.File, check func() error) error {
	if f.Path != "" {
		return usage(f.Load(c.Flags(), configFormat(c.Name()), check))
	}
	if err := check(); err != nil {
		return usageError(c, err)
	}
	return nil
}
