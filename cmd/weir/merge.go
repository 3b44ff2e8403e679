package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/results"
	"weir/results/merge"
	"weir/run"
)

func mergeCommand(s streams) *cobra.Command {
	var out string
	var asJSON bool
	var on failOn
	c := &cobra.Command{
		Use:   "merge RUN|RUN.tar.gz|FOLDER ...",
		Short: "Make one run of several that were recorded apart, at the same time",
		Long: `Adds up, second by second, what several machines recorded each by itself: parts of
one plan (weir run --part 3/10), or the same plan at the same time on each. A run
is its directory, or that packed as one file; of a folder all runs in it are taken.

Nobody compared the clocks of these machines: a step counts as held only in the
seconds in which all runs held it, by their clocks. Parts that are missing are
told, and make the result suspect or invalid; the same part, or the same run,
twice is refused, and so are runs of different plans.`,
		Example: `  weir merge runs/node1 runs/node2 runs/node3 -o runs/together
  weir merge parts/ -o runs/together`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			runs, err := runsIn(args)
			if err != nil {
				return err
			}
			dir := run.NewDir(out, "merged", time.Now())
			w := s.working("merging")
			err = run.Merge(dir, runs, version())
			w.done()
			if err != nil {
				return err
			}
			return conclude(dir, asJSON, on, s)
		},
	}
	outFlag(c, &out, "merged-TIME")
	jsonFlag(c, &asJSON, jsonOfRun)
	failOnFlag(c, &on)
	quietFlag(c, &s.quiet)
	verboseFlag(c, &s.verbose)
	return c
}

// runsIn returns the runs that args name: as they are, or in folders.
func runsIn(args []string) (all []string, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			return nil, err
		case !info.IsDir() && !strings.HasSuffix(arg, merge.Ending):
			return nil, exit{exitUsage, fmt.Errorf("%s is neither a run directory nor one that is packed (%s)", arg, merge.Ending)}
		case !info.IsDir() || results.IsRun(arg):
			all = append(all, arg)
			continue
		}
		n := len(all)
		for _, below := range []string{"*", "*/*"} {
			found, err := filepath.Glob(filepath.Join(escaped(arg), below))
			if err != nil {
				return nil, err
			}
			slices.SortFunc(found, natural)
			for _, name := range found {
				if strings.HasSuffix(name, merge.Ending) || results.IsRun(name) {
					all = append(all, name)
				}
			}
		}
		if len(all) == n {
			return nil, fmt.Errorf("%s: no run directory and no packed run is in it", arg)
		}
	}
	return all, nil
}

// escaped is a path as a pattern that only it matches.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// natural puts 2 before 10.
func natural(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
