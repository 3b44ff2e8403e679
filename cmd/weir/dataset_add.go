package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/storage"
	"weir/storage/all"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/catalog/importer"
	"weir/transfer/client"
)

// addFlags say which files become a dataset's, and how they are known.
type addFlags struct {
	clientFlags
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
				return usageError(c, err)
			}
			return f.call(func(co *client.Client) error { return f.run(c.Context(), co, s, signals) })
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

// A count is how many files were added, and which were left out.
type count struct {
	files, bytes int64
	problems     []string
}

// leaveOut notes a file that was left out; of many the first hundred.
func (n *count) leaveOut(path string, err error) {
	if len(n.problems) < 100 {
		n.problems = append(n.problems, fmt.Sprintf("%s: %v", path, err))
	}
}

func (f *addFlags) run(ctx context.Context, co *client.Client, s streams, signals signalSource) error {
	ctx, cancel := untilSignal(ctx, signals, nil, false)
	defer cancel()
	var files, bytes atomic.Int64
	update := func(nowFiles, nowBytes int64) { files.Store(nowFiles); bytes.Store(nowBytes) }
	stop := f.animate(s, func() (int64, int64) { return files.Load(), bytes.Load() })
	add, rest := f.addHere, "the same command adds the others"
	if f.local+f.csv+f.list == "" {
		add, rest = f.addThere, "the agent adds the others, and the same command waits for it again"
	}
	n, err := add(ctx, co, update)
	stop()
	for _, p := range n.problems {
		tell(s.err, "", "weir: %s: %s", f.site, p)
	}
	switch {
	case ctx.Err() != nil:
		s.tell("\nweir: no longer waiting; %s were added so far: %s\n", say.Plural(int(files.Load()), "file"), rest)
		return afterSignal(ctx, nil)
	case err != nil:
		return err
	case n.files == 0:
		return fmt.Errorf("no file was added: site %s has none in %s", line(f.site), line("/"+f.path))
	}
	d, err := co.Dataset(ctx, f.name)
	if err != nil {
		return err
	}
	if f.json {
		err = writeJSON(s.out, d)
	} else {
		_, err = fmt.Fprintf(s.out, "%s, %s, of %s are at %s; it has %s, %s\n", say.Plural(int(n.files), "file"), unit.Bytes(float64(n.bytes)), line(d.Name), line(f.site),
			say.Plural(int(d.Files), "file"), unit.Bytes(float64(d.Bytes)))
	}
	if err == nil && len(n.problems) > 0 {
		err = exit{code: exitMissed}
	}
	return err
}

// animate shows on a terminal how many files were added, until stop is called.
func (f *addFlags) animate(s streams, now func() (files, bytes int64)) (stop func()) {
	to := screen.New(s.err)
	if s.quiet || !to.Moves() {
		return func() {}
	}
	begun := time.Now()
	return to.Animate(func(int) []string {
		files, bytes := now()
		rate := float64(bytes) / time.Since(begun).Seconds()
		return []string{fmt.Sprintf(" %s, %s, %s/s", say.Plural(int(files), "file"), unit.Bytes(float64(bytes)), unit.Bytes(rate))}
	})
}

// addThere has the agent of the site read and add the files.
func (f *addFlags) addThere(ctx context.Context, co *client.Client, update func(files, bytes int64)) (count, error) {
	state, err := co.FollowScan(ctx, transfer.NewScan{Dataset: f.name, Site: f.site, Path: f.path},
		func(s transfer.ScanState) { update(s.Files, s.Bytes) })
	return count{state.Files, state.Bytes, state.Problem}, err
}

// addHere adds the files that this command finds itself.
func (f *addFlags) addHere(ctx context.Context, co *client.Client, update func(files, bytes int64)) (n count, err error) {
	entries, release, err := f.entries(ctx, importer.Options{Dataset: f.name, Wrong: n.leaveOut})
	if err != nil {
		return n, err
	}
	defer release()
	to := transfer.NewFiles{Dataset: f.name, Site: f.site}
	if f.local != "" {
		host, _ := os.Hostname() // without a name it is said without one
		to.By = "weir dataset add on " + host
	}
	err = co.AddEntries(ctx, to, entries, func(files, bytes int64) {
		n.files, n.bytes = files, bytes
		update(files, bytes)
	})
	return n, err
}

// entries opens the list of files. The caller calls release.
func (f *addFlags) entries(ctx context.Context, o importer.Options) (all iter.Seq2[catalog.Entry, error], release func(), err error) {
	switch {
	case f.local != "":
		root, err := os.OpenRoot(f.local)
		if err != nil {
			return nil, nil, fmt.Errorf("--local: %w", err)
		}
		return importer.Folder(ctx, root, f.path, o), func() { _ = root.Close() }, nil // only read
	case f.csv != "":
		table, err := os.Open(f.csv)
		if err != nil {
			return nil, nil, fmt.Errorf("--csv: %w", err)
		}
		return named(f.csv, importer.CSV(table)), func() { _ = table.Close() }, nil // only read
	}
	service, err := f.service(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("--list: %w", err)
	}
	return importer.Listing(ctx, importer.Remote{Service: service, Folder: f.path, Sums: f.sums, Fresh: !strings.HasPrefix(f.list, "root")}, o), func() { _ = service.Close() }, nil // nothing was written
}

// named puts the name of the file that is read before its errors.
func named(path string, of iter.Seq2[catalog.Entry, error]) iter.Seq2[catalog.Entry, error] {
	return func(yield func(catalog.Entry, error) bool) {
		for e, err := range of {
			if err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// service opens the storage service that lists the files.
func (f *addFlags) service(ctx context.Context) (storage.Service, error) {
	u, err := url.Parse(f.list)
	if err != nil {
		return nil, err
	}
	drivers := all.Drivers()
	i := slices.IndexFunc(drivers, func(d storage.Driver) bool { return slices.Contains(d.Schemes, u.Scheme) })
	if i < 0 || u.Host == "" && u.Path == "" {
		return nil, errors.New("name a storage service, such as davs://se.example.org/data or root://se.example.org//data")
	}
	auth := storage.Auth{}
	if f.secret != "" {
		auth = storage.Auth{Method: "token", TokenFile: f.secret}
	}
	cred, err := auth.Read()
	if err != nil {
		return nil, err
	}
	return drivers[i].Open(ctx, storage.Target{URL: u, Cred: cred})
}
