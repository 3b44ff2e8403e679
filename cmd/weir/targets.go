package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/internal/say"
	"weir/scenario"
)

// urlScheme matches the beginning of a URL.
var urlScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// isTarget tells whether an argument is a target instead of a scenario's file: a
// URL, or the word for weir's own server, that is no file.
func isTarget(arg string) bool {
	if !urlScheme.MatchString(arg) && arg != scenario.BuiltIn {
		return false
	}
	_, err := os.Lstat(arg)
	return err != nil
}

// noScenario explains that a scenario's file is not there, if the argument looks like
// a target without its scheme.
func noScenario(arg string, err error) error {
	if like := scenario.WithScheme(arg); like != "" && !isScenario(arg) {
		return exit{exitUsage, fmt.Errorf("%w\nhint: if %s is a service, write it with its protocol: %s", err, line(arg), like)}
	}
	return err
}

// wrongFlag is err with the flag that was probably meant.
func wrongFlag(c *cobra.Command, err error) error {
	text := err.Error()
	name, ok := strings.CutPrefix(text, "unknown flag: --")
	if ok {
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
	return exit{exitUsage, fmt.Errorf("%s\nSee: %s --help", text, c.CommandPath())}
}
