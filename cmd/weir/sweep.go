package main

import (
	"context"
	"fmt"
	"time"

	"weir/engine"
	"weir/results"
	"weir/scenario"
)

// longestSweep is how long removing what a run has made may take.
const longestSweep = 10 * time.Minute

// keep says whether what a run makes shall stay.
func keep(p *scenario.Plan) bool {
	return p.Work.Keep || p.Files.Make != nil && p.Files.Make.Keep
}

// runFolder is where a run makes files, below its target.
func runFolder(a results.About) string { return "weir-" + a.Run }

// leftovers are the paths that the manifest names and that were not removed.
func leftovers(m *results.Manifest) ([]string, error) {
	made, err := m.Left()
	paths := make([]string, len(made))
	for i, f := range made {
		paths[i] = f.Path
	}
	return paths, err
}

// sweep removes what the manifest of the run in dir names; who made it, is for
// the text of left, which says what could not be removed. err says why even
// that is not known.
func sweep(in interrupts, c engine.Config, m *results.Manifest, who, dir string, advance engine.Advance) (left, err error) {
	paths, err := leftovers(m)
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(in.cleaning(), longestSweep)
	defer cancel()
	if failed, first := engine.Clean(ctx, c, paths, advance); failed > 0 {
		left = fmt.Errorf("%d of %d files and folders that %s made could not be removed (weir clean %s tries again): %w", failed, len(paths), who, dir, first)
	}
	return left, nil
}
