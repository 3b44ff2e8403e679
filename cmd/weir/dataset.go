package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/storage/all"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/catalog/importer"
	"weir/transfer/client"
	"weir/transfer/text"
)

func datasetCommand(s streams) *cobra.Command {
	list := listCommand(s, "datasets", "list [PREFIX]", cobra.MaximumNArgs(1),
		func(ctx context.Context, co *client.Client, args []string) ([]catalog.Dataset, error) {
			return co.DatasetsBelow(ctx, strings.Join(args, ""))
		}, text.Datasets)
	show := queryCommand(s, "print it as JSON", "show DATASET", cobra.ExactArgs(1),
		func(ctx context.Context, co *client.Client, args []string) (catalog.Dataset, error) {
			return co.Dataset(ctx, args[0])
		},
		func(w io.Writer, d catalog.Dataset) error { return text.Datasets(w, []catalog.Dataset{d}) })
	remove := queryCommand(s, "print its name as JSON", "remove DATASET", cobra.ExactArgs(1),
		func(ctx context.Context, co *client.Client, args []string) (removed, error) {
			return removed{args[0]}, co.RemoveDataset(ctx, args[0])
		}, func(w io.Writer, r removed) error {
			_, err := fmt.Fprintf(w, "dataset %s is removed from the catalog; its files stay where they are\n", line(r.Name))
			return err
		})
	return group("dataset", datasetAddCommand(s), list, show, datasetFilesCommand(s), remove)
}

func datasetFilesCommand(s streams) *cobra.Command {
	return clientCommand("files DATASET", "print them as JSON", cobra.ExactArgs(1),
		func(ctx context.Context, co *client.Client, args []string, asJSON bool) error {
			all := []transfer.FileReplicas{}
			err := co.EachFile(ctx, args[0], func(some []transfer.FileReplicas) error {
				if asJSON {
					all = append(all, some...)
					return nil
				}
				return text.Files(s.out, some)
			})
			if err == nil && asJSON {
				err = writeJSON(s.out, map[string]any{"files": all})
			}
			return err
		})
}

// addFlags select the files that are added to a dataset, and the way they are found.
type addFlags struct {
	clientFlags
	name, site, path         string
	local, csv, list, secret string
	sums                     bool
}

func datasetAddCommand(s streams) *cobra.Command {
	var f addFlags
	c := command("add DATASET --site SITE [--path PATH]", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
		f.name = strings.TrimSuffix(args[0], "/")
		if err := f.check(c.Flags().Changed("path")); err != nil {
			return usageError(c, err)
		}
		return f.call(func(co *client.Client) error { return f.run(c.Context(), co, s) })
	})
	f.add(c, "print the dataset as JSON")
	fs := c.Flags()
	fs.StringVar(&f.site, "site", "", "`SITE` that has the files")
	fs.StringVar(&f.path, "path", "", "`FOLDER` of the files, below the root of the site (default: the name of the dataset)")
	fs.StringVar(&f.local, "local", "", "read the files on this machine, where `DIR` is the root of the site")
	fs.StringVar(&f.csv, "csv", "", "take the files from the table in `FILE`")
	fs.StringVar(&f.list, "list", "", "take the files from the listing of the storage service at this `URL`, the root of the site")
	fs.StringVar(&f.secret, "list-token-file", "", "send the token in `FILE` to the service of --list")
	fs.BoolVar(&f.sums, "sums", true, "ask the service of --list for checksums")
	quietFlag(c, &s.quiet)
	return c
}

func (f *addFlags) check(hasPath bool) error {
	ways := slices.DeleteFunc([]string{f.local, f.csv, f.list}, func(way string) bool { return way == "" })
	switch {
	case !strings.HasPrefix(f.name, "/"):
		return fmt.Errorf("names of datasets begin with a slash, such as /store/run1, not %q", f.name)
	case f.site == "":
		return errors.New("name the site that has the files: --site SITE")
	case len(ways) > 1:
		return errors.New("--local, --csv and --list: choose one")
	case f.csv != "" && hasPath:
		return errors.New("--csv: leave --path out: the table has names, and may have paths")
	case f.secret != "" && f.list == "":
		return errors.New("--list-token-file needs --list")
	}
	if !hasPath {
		f.path = f.name
	}
	f.path = strings.Trim(f.path, "/")
	return nil
}

// An addition is the result of adding files.
type addition struct {
	files, bytes int64
	problems     []string // files that were left out
}

// leaveOut notes a file that was left out, of many the first hundred.
func (n *addition) leaveOut(path string, err error) {
	if len(n.problems) < 100 {
		n.problems = append(n.problems, fmt.Sprintf("%s: %v", path, err))
	}
}

func (f *addFlags) run(ctx context.Context, co *client.Client, s streams) error {
	ctx, cancel := s.untilSignal(ctx, false)
	defer cancel()
	var files, bytes atomic.Int64
	update := func(nowFiles, nowBytes int64) { files.Store(nowFiles); bytes.Store(nowBytes) }
	begun := time.Now()
	stop := screen.New(s.progress()).Animate(func(int) []string {
		size := float64(bytes.Load())
		rate := unit.Bytes(size / time.Since(begun).Seconds())
		return []string{fmt.Sprintf(" %s, %s, %s/s", say.Plural(int(files.Load()), "file"), unit.Bytes(size), rate)}
	})
	add, rest := f.addHere, "the same command adds the others"
	if f.local+f.csv+f.list == "" {
		add, rest = f.addByAgent, "the agent adds the others, and the same command waits for it again"
	}
	n, err := add(ctx, co, update)
	stop()
	for _, p := range n.problems {
		screen.Paragraph(s.err, "", "weir: %s: %s", f.site, p)
	}
	switch {
	case ctx.Err() != nil:
		s.printErr("\nweir: no longer waiting; %s were added so far: %s\n", say.Plural(int(files.Load()), "file"), rest)
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
		_, err = fmt.Fprintf(s.out, "%s, %s, of %s are at %s; it has %s, %s\n", say.Plural(int(n.files), "file"), unit.Bytes(float64(n.bytes)),
			line(d.Name), line(f.site), say.Plural(int(d.Files), "file"), unit.Bytes(float64(d.Bytes)))
	}
	if err == nil && len(n.problems) > 0 {
		err = exit{code: exitMissed}
	}
	return err
}

// addByAgent has the agent of the site read and add the files.
func (f *addFlags) addByAgent(ctx context.Context, co *client.Client, update func(files, bytes int64)) (addition, error) {
	state, err := co.FollowScan(ctx, transfer.NewScan{Dataset: f.name, Site: f.site, Path: f.path},
		func(s transfer.ScanState) { update(s.Files, s.Bytes) })
	return addition{state.Files, state.Bytes, state.Problem}, err
}

// addHere adds the files that this command finds itself.
func (f *addFlags) addHere(ctx context.Context, co *client.Client, update func(files, bytes int64)) (n addition, err error) {
	entries, release, err := f.entries(ctx, importer.Options{Dataset: f.name, Wrong: n.leaveOut})
	if err != nil {
		return n, err
	}
	defer release()
	to := transfer.NewFiles{Dataset: f.name, Site: f.site}
	if f.local != "" {
		host, _ := os.Hostname() // optional
		to.By = "weir dataset add on " + host
	}
	err = co.AddEntries(ctx, to, entries, func(files, bytes int64) {
		n.files, n.bytes = files, bytes
		update(files, bytes)
	})
	return n, err
}

// entries opens the list of files. The caller calls release.
func (f *addFlags) entries(ctx context.Context, o importer.Options) (entries iter.Seq2[catalog.Entry, error], release func(), err error) {
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
		named := func(yield func(catalog.Entry, error) bool) {
			for e, err := range importer.CSV(table) {
				if err != nil {
					err = fmt.Errorf("%s: %w", f.csv, err)
				}
				if !yield(e, err) {
					return
				}
			}
		}
		return named, func() { _ = table.Close() }, nil // only read
	}
	service, err := importer.Open(ctx, all.Drivers(), f.list, f.secret)
	if err != nil {
		return nil, nil, fmt.Errorf("--list: %w", err)
	}
	remote := importer.Remote{Service: service, Folder: f.path, Sums: f.sums, Fresh: !strings.HasPrefix(f.list, "root")}
	return importer.Listing(ctx, remote, o), func() { _ = service.Close() }, nil // only read
}
