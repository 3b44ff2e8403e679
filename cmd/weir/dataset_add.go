package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"weir/catalog"
	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/transfer"
)

// addFlags say which files become a dataset's, and how they are known.
type addFlags struct {
	coordFlags
	site, path string
}

func datasetAddCommand(s streams, signals signalSource) *cobra.Command {
	var f addFlags
	c := &cobra.Command{
		Use:   "add DATASET --site SITE [--path PATH]",
		Short: "Add the files of a folder at a site to a dataset",
		Long: `Has the agent of a site read all files below a folder, take their checksums, and
adds them to the dataset, which is made if it is new. A file is called after the
dataset and where it is in the folder; the folders within are blocks.

The path is below the root of the site; without --path it is that of the dataset.
Files may be added again, and at other sites: the same name must have the same size
and checksum everywhere.`,
		Example: `  weir dataset add /store/run1 --site A
  weir dataset add /store/run1 --site A --path incoming/run1`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeDatasets,
		RunE: func(c *cobra.Command, args []string) error {
			name := strings.TrimSuffix(args[0], "/")
			switch {
			case !strings.HasPrefix(name, "/"):
				return exit{exitUsage, fmt.Errorf("datasets have names that begin with a slash, such as /store/run1, not %q\nSee: %s --help", name, c.CommandPath())}
			case f.site == "":
				return exit{exitUsage, fmt.Errorf("which site has the files? Name it: --site SITE\nSee: %s --help", c.CommandPath())}
			}
			if !c.Flags().Changed("path") {
				f.path = name
			}
			return f.with(func(d *desk) error { return f.scan(c.Context(), d, name, s, signals) })
		},
	}
	f.add(c, "print the dataset as JSON")
	fs := c.Flags()
	fs.StringVar(&f.site, "site", "", "the `SITE` that has the files")
	fs.StringVar(&f.path, "path", "", "`FOLDER` of the files, below the root of the site (default: as the dataset is called)")
	quietFlag(c, &s.quiet)
	_ = c.RegisterFlagCompletionFunc("site", completeSites) // the flag is there
	return c
}

// scan has the agent of the site read the files, and waits for it.
func (f *addFlags) scan(ctx context.Context, d *desk, name string, s streams, signals signalSource) error {
	state, err := d.Scan(ctx, transfer.NewScan{Dataset: name, Site: f.site, Path: strings.Trim(f.path, "/")})
	if err != nil {
		return err
	}
	ctx, cancel := untilSignal(ctx, signals, nil, false)
	defer cancel()
	state, err = followScan(ctx, d, state, s)
	if ctx.Err() != nil {
		s.tell("\nweir: no longer waiting: the agent of %s goes on, and what it finds is added\n", line(f.site))
		return exit{code: exitMissed}
	}
	if err != nil {
		return err
	}
	for _, p := range state.Problem {
		tell(s.err, "", "weir: %s: %s", f.site, p)
	}
	if state.Files == 0 {
		return errors.Join(fmt.Errorf("site %s: no file was added from %s", line(f.site), line("/"+strings.Trim(f.path, "/"))))
	}
	one, err := d.Dataset(ctx, name)
	if err != nil {
		return err
	}
	if err := f.tellAdded(s, &one, state.Files, state.Bytes); err != nil {
		return err
	}
	if len(state.Problem) > 0 {
		return exit{code: exitMissed}
	}
	return nil
}

func (f *addFlags) tellAdded(s streams, d *catalog.Dataset, files, bytes int64) error {
	if f.json {
		return writeJSON(s.out, d)
	}
	_, err := fmt.Fprintf(s.out, "%s, %s, of %s are at %s; it has %s, %s\n", say.Plural(int(files), "file"), unit.Bytes(float64(bytes)), line(d.Name), line(f.site),
		say.Plural(int(d.Files), "file"), unit.Bytes(float64(d.Bytes)))
	return err
}

// followScan shows how far a scan is until it is done.
func followScan(ctx context.Context, d *desk, state transfer.ScanState, s streams) (transfer.ScanState, error) {
	to := screen.New(s.err)
	var mu sync.Mutex
	if !s.quiet && to.Moves() {
		begun := time.Now()
		defer to.Animate(func(int) []string {
			mu.Lock()
			defer mu.Unlock()
			rate := float64(state.Bytes) / time.Since(begun).Seconds()
			return []string{fmt.Sprintf(" checksums: %s, %s, %s/s", say.Plural(int(state.Files), "file"), unit.Bytes(float64(state.Bytes)), unit.Bytes(rate))}
		})()
	}
	tick := time.NewTicker(lookEvery / 2)
	defer tick.Stop()
	for !state.Done {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return state, ctx.Err()
		}
		next, err := again(ctx, func() (transfer.ScanState, error) { return d.ScanState(ctx, state.ID) })
		if err != nil {
			return state, err
		}
		mu.Lock()
		state = next
		mu.Unlock()
	}
	return state, nil
}
