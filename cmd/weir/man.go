package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/man"
)

// manCommand is for those who make packages.
func manCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages (for those who make packages)",

		Hidden: true,
		Long: `Writes a manual page for each command into the folder DIR: weir.1, weir-run.1 and
so on. Pages of the same program are the same, to the byte: their date is that of
SOURCE_DATE_EPOCH, or of the commit that the program was built from.`,
		Example: `  weir man man1
  man -l man1/weir-run.1`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			date, err := manDate()
			if err != nil {
				return exit{exitUsage, err}
			}
			c.Root().InitDefaultCompletionCmd()
			names, err := manual(c.Root(), date).Write(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "%d pages in %s\n", len(names), filepath.Clean(args[0]))
			return err
		},
	}
}

// manDate is when the pages are of, empty if nothing says so.
func manDate() (string, error) {
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return "", fmt.Errorf("SOURCE_DATE_EPOCH=%s: use seconds since 1970", line(epoch))
		}
		return time.Unix(seconds, 0).UTC().Format(time.DateOnly), nil
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if at, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
				return at.UTC().Format(time.DateOnly), nil
			}
		}
	}
	return "", nil
}

// manual is what the pages say beside the commands' help.
func manual(root *cobra.Command, date string) *man.Manual {
	var exits []man.Item
	for _, c := range exitCodes() {
		exits = append(exits, man.Item{Name: fmt.Sprint(int(c.code)), Text: c.means})
	}
	return &man.Manual{
		Root: root, Version: "weir " + version(), Date: date,
		Exit: exits,
		Env: []man.Item{
			{Name: "NO_COLOR", Text: "If it is set, nothing is colored."},
			{Name: "TERM", Text: "If it is dumb, nothing moves and nothing is colored."},
			{Name: "LC_ALL, LC_CTYPE, LANG", Text: "Bars and curves are drawn with block characters where the locale is a UTF-8 one."},
			{Name: "X509_USER_PROXY, X509_CERT_DIR, KRB5CCNAME, KRB5_CONFIG", Text: "Where credentials and authorities are, as for other clients of grid storage; and any variable that a scenario names."},
		},
		Files: []man.Item{
			{Name: "runs/NAME-TIME/", Text: "The run directory: all that a run has measured and what was made from it. runs/latest leads to the last one."},
			{Name: "SCENARIO.yaml", Text: "What to test. weir schema prints the JSON Schema of such files."},
		},
		See: []string{"https://no-color.org"},
	}
}
