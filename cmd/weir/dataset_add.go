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
	name, site, path         string
	local, csv, list, secret string
	sums                     bool
}

func datasetAddCommand(s streams, signals signalSource) *cobra.Command {
	var f addFlags
	c := &cobra.Command{
		Use:   "add DATASET --site SITE [--path PATH]",
		Short: "Add the files of a folder at a site to a dataset",
		Long: `Has the agent of a site read all files below a folder, take their checksums, and
adds them to the dataset, which is made if it is new. A file is called after the
dataset and where it is in the folder; the first folder on the way is its block.

The path is below the root of the site; without --path it is that of the dataset.
Files may be added again, and at other sites: the same name must have the same size
and checksum everywhere.

Where a site has no agent the files are read by this command, with --local, or
told by a table (--csv) or by the storage service itself (--list). A table has a
line of column names first: name and size, and if they are known adler32, block,
path and checksums.`,
		Example: `  weir dataset add /store/run1 --site A
  weir dataset add /store/run1 --site A --path incoming/run1
  weir dataset add /store/run1 --site cern --local /eos/data
  weir dataset add /store/run1 --site cern --csv files.csv
  weir dataset add /store/run1 --site cern --list davs://eos.example.org:8444/eos/data --list-token-file cern.token`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeDatasets,
		RunE: func(c *cobra.Command, args []string) error {
			f.name = strings.TrimSuffix(args[0], "/")
			if err := f.check(c.Flags().Changed("path")); err != nil {
				return exit{exitUsage, fmt.Errorf("%w\nSee: %s --help", err, c.CommandPath())}
			}
			return f.with(func(d *desk) error { return f.run(c.Context(), d, s, signals) })
		},
	}
	f.add(c, "print the dataset as JSON")
	fs := c.Flags()
	fs.StringVar(&f.site, "site", "", "the `SITE` that has the files")
	fs.StringVar(&f.path, "path", "", "`FOLDER` of the files, below the root of the site (default: as the dataset is called)")
	fs.StringVar(&f.local, "local", "", "read the files here: `DIR` is the root of the site on this machine")
	fs.StringVar(&f.csv, "csv", "", "take the files from the table in `FILE`")
	fs.StringVar(&f.list, "list", "", "take the files from what the storage service at this `URL`, the root of the site, lists")
	fs.StringVar(&f.secret, "list-token-file", "", "show the token in `FILE` to the service of --list")
	fs.BoolVar(&f.sums, "sums", true, "ask the service of --list for checksums")
	quietFlag(c, &s.quiet)
	_ = c.RegisterFlagCompletionFunc("site", completeSites) // the flag is there
	return c
}

func (f *addFlags) check(hasPath bool) error {
	ways := 0
	for _, way := range []string{f.local, f.csv, f.list} {
		if way != "" {
			ways++
		}
	}
	switch {
	case !strings.HasPrefix(f.name, "/"):
		return fmt.Errorf("datasets have names that begin with a slash, such as /store/run1, not %q", f.name)
	case f.site == "":
		return errors.New("which site has the files? Name it: --site SITE")
	case ways > 1:
		return errors.New("--local, --csv and --list: choose one")
	case f.csv != "" && hasPath:
		return errors.New("--csv: leave --path out: the table has names, and may have paths")
	case f.secret != "" && f.list == "":
		return errors.New("--list-token-file is for --list")
	}
	if !hasPath {
		f.path = f.name
	}
	f.path = strings.Trim(f.path, "/")
	return nil
}

// A found is how many files were added, and what was left out.
type found struct {
	files, bytes int64
	problems     []string
}

func (f *addFlags) run(ctx context.Context, d *desk, s streams, signals signalSource) error {
	ctx, cancel := untilSignal(ctx, signals, nil, false)
	defer cancel()
	how := f.bring
	if f.local+f.csv+f.list == "" {
		how = f.scan
	}
	var n found
	var mu sync.Mutex
	stop := f.show(s, func() found { mu.Lock(); defer mu.Unlock(); return n })
	all, err := how(ctx, d, func(now found) { mu.Lock(); n = now; mu.Unlock() })
	stop()
	for _, p := range all.problems {
		tell(s.err, "", "weir: %s: %s", f.site, p)
	}
	switch {
	case ctx.Err() != nil:
		rest := "the same command adds the others"
		if f.local+f.csv+f.list == "" {
			rest = "the agent adds the others, and the same command waits for it again"
		}
		s.tell("\nweir: no longer waiting; %s were added so far: %s\n", say.Plural(int(all.files), "file"), rest)
		return afterSignal(ctx, nil)
	case err != nil:
		return err
	case all.files == 0:
		return fmt.Errorf("no file was added: site %s has none in %s", line(f.site), line("/"+f.path))
	}
	one, err := d.Dataset(ctx, f.name)
	if err != nil {
		return err
	}
	if err := f.tellAdded(s, &one, all); err != nil {
		return err
	}
	if len(all.problems) > 0 {
		return exit{code: exitMissed}
	}
	return nil
}

func (f *addFlags) tellAdded(s streams, d *catalog.Dataset, n found) error {
	if f.json {
		return writeJSON(s.out, d)
	}
	_, err := fmt.Fprintf(s.out, "%s, %s, of %s are at %s; it has %s, %s\n", say.Plural(int(n.files), "file"), unit.Bytes(float64(n.bytes)), line(d.Name), line(f.site),
		say.Plural(int(d.Files), "file"), unit.Bytes(float64(d.Bytes)))
	return err
}

// show shows how many files were found, where rows can move, until stop is called.
func (f *addFlags) show(s streams, now func() found) (stop func()) {
	to := screen.New(s.err)
	if s.quiet || !to.Moves() {
		return func() {}
	}
	begun := time.Now()
	return to.Animate(func(int) []string {
		n := now()
		rate := float64(n.bytes) / time.Since(begun).Seconds()
		return []string{fmt.Sprintf(" %s, %s, %s/s", say.Plural(int(n.files), "file"), unit.Bytes(float64(n.bytes)), unit.Bytes(rate))}
	})
}

// scan has the agent of the site read the files.
func (f *addFlags) scan(ctx context.Context, d *desk, note func(found)) (n found, err error) {
	state, err := d.Scan(ctx, transfer.NewScan{Dataset: f.name, Site: f.site, Path: f.path})
	tick := time.NewTicker(lookEvery / 4)
	defer tick.Stop()
	for err == nil && !state.Done {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return n, ctx.Err()
		}
		state, err = again(ctx, true, func() (transfer.ScanState, error) { return d.ScanState(ctx, state.ID) })
		n = found{files: state.Files, bytes: state.Bytes}
		note(n)
	}
	n = found{state.Files, state.Bytes, state.Problem}
	return n, err
}
