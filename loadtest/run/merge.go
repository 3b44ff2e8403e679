package run

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/loadtest/results"
	"weir/loadtest/results/merge"
	"weir/monitor"
)

// Merge makes the run directory dir of runs of the same plan on several machines. version is the
// version of this program.
func Merge(dir string, runs []string, version string) error {
	if _, _, err := monitor.RaiseOpenFiles(); err != nil { // two of each run
		return err
	}
	a, err := About(version, false)
	if err != nil {
		return err
	}
	return merge.Runs(dir, runs, a)
}

// FindRuns returns the run directories of args: each is a run directory, or a folder with run
// directories.
func FindRuns(args []string) (all []string, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			return nil, err
		case results.IsRun(arg):
			all = append(all, arg)
			continue
		case !info.IsDir():
			return nil, usage(fmt.Errorf("%s is not a run directory: unpack packed runs first", arg))
		}
		n := len(all)
		for _, below := range []string{"*", "*/*"} {
			pattern := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(arg)
			found, err := filepath.Glob(filepath.Join(pattern, below))
			if err != nil {
				return nil, err
			}
			slices.SortFunc(found, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }) // 2 before 10
			all = append(all, slices.DeleteFunc(found, func(name string) bool { return !results.IsRun(name) })...)
		}
		if len(all) == n {
			return nil, fmt.Errorf("%s: it has no run directory", arg)
		}
	}
	return all, nil
}
