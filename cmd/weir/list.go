package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"weir/internal/screen"
	"weir/loadtest/run"
)

// runsDir is the folder into which runs are measured without --out.
const runsDir = "runs"

func listRunsCommand(s streams) *cobra.Command {
	var asJSON bool
	c := command("list [FOLDER]", cobra.MaximumNArgs(1), func(_ *cobra.Command, args []string) error {
		dir := runsDir
		if len(args) == 1 {
			dir = args[0]
		}
		working := s.working("reading " + dir)
		all, err := run.List(dir)
		working.Stop()
		if errors.Is(err, fs.ErrNotExist) && len(args) == 0 {
			return fmt.Errorf("there is no folder %s here: name the folder of the runs: %w", dir, err)
		}
		switch {
		case err != nil:
			return err
		case asJSON:
			return ignoreUnread(writeJSON(s.out, map[string]any{"runs": all}))
		case len(all) == 0:
			s.say("%s has no runs\n", line(dir))
			return nil
		}
		return ignoreUnread(run.WriteListed(s.out, all, cmp.Or(min(screen.Width(s.out), 100), 80)))
	})
	flagVars{"json": &asJSON, "quiet/q": &s.quiet}.add(c)
	return c
}
