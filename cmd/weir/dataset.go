package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/flagfile"
	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/loadtest/run"
	"weir/loadtest/scenario"
	"weir/storage"
	"weir/storage/all"
	"weir/storage/diagnosis"
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
	show := queryCommand(s, "show DATASET", cobra.ExactArgs(1),
		func(ctx context.Context, co *client.Client, args []string) (catalog.Dataset, error) {
			return co.Dataset(ctx, args[0])
		},
		func(w io.Writer, d catalog.Dataset) error { return text.Datasets(w, []catalog.Dataset{d}) })
	remove := queryCommand(s, "remove DATASET", cobra.ExactArgs(1),
		func(ctx context.Context, co *client.Client, args []string) (removed, error) {
			return removed{args[0]}, co.RemoveDataset(ctx, args[0])
		}, func(w io.Writer, r removed) error {
			_, err := fmt.Fprintf(w, "dataset %s is removed from the catalog; its files stay where they are\n", line(r.Name))
			return err
		})
	return group("dataset", datasetAddCommand(s), list, show, datasetFilesCommand(s), remove)
}

func datasetFilesCommand(s streams) *cobra.Command {
	return clientCommand("files DATASET", cobra.ExactArgs(1),
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

// addFlags select the files that are added to a dataset.
type addFlags struct {
	clientFlags
	importer.Source
	name, site string
	files      scenario.Files // Include and Exclude
}

func datasetAddCommand(s streams) *cobra.Command {
	f := addFlags{Source: importer.Source{Sums: true}}
	c := command("add DATASET --site SITE [--path PATH]", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
		if err := f.check(args[0], c.Flags().Changed("path")); err != nil {
			return usageError(c, err)
		}
		return f.call(func(co *client.Client) error { return f.run(c.Context(), co, s) })
	})
	f.add(c)
	flagVars{
		"site": &f.site, "path": &f.Path, "local": &f.Local, "csv": &f.Table, "list": &f.List, "list-token-file": &f.TokenFile,
		"include": &f.files.Include, "exclude": &f.files.Exclude, "sums": &f.Sums, "json": &f.json, "quiet/q": &s.quiet,
	}.add(c)
	return c
}

// datasetName reads the name of a dataset.
func datasetName(arg string) (string, error) {
	return strings.TrimSuffix(arg, "/"), flagfile.If(!strings.HasPrefix(arg, "/"), "",
		"names of datasets begin with a slash, such as /store/run1, not %q", arg)
}

func (f *addFlags) check(dataset string, hasPath bool) (err error) {
	ways := slices.DeleteFunc([]string{f.Local, f.Table, f.List}, func(way string) bool { return way == "" })
	f.name, err = datasetName(dataset)
	if !hasPath {
		f.Path = f.name
	}
	f.Path = strings.Trim(f.Path, "/")
	return cmp.Or(err,
		flagfile.If(f.site == "", "", "name the site that has the files: --site SITE"),
		flagfile.If(len(ways) > 1, "", "--local, --csv and --list: choose one"),
		flagfile.If(f.Table != "" && hasPath, "", "--csv: leave --path out: the table has names, and may have paths"),
		flagfile.If(len(f.files.Include)+len(f.files.Exclude) > 0 && f.Local+f.List == "", "", "--include and --exclude need --local or --list"),
		f.checkPatterns(),
		flagfile.Readable("local", f.Local), flagfile.Readable("csv", f.Table), flagfile.Readable("list-token-file", f.TokenFile),
		flagfile.If(f.TokenFile != "" && f.List == "", "", "--list-token-file needs --list"))
}

func (f *addFlags) checkPatterns() error {
	for _, pattern := range slices.Concat(f.files.Include, f.files.Exclude) {
		if err := scenario.CheckPattern(pattern); err != nil {
			return fmt.Errorf("--include and --exclude: %w", err)
		}
	}
	return nil
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
	if f.Local+f.Table+f.List == "" {
		add, rest = f.addByAgent, "the agent adds the others, and the same command waits for it again"
	}
	problems, err := add(ctx, co, update)
	stop()
	for _, p := range problems {
		screen.Paragraph(s.err, "", "weir: %s: %s", f.site, p)
	}
	added := say.Plural(int(files.Load()), "file")
	switch {
	case ctx.Err() != nil:
		s.printErr("\nweir: no longer waiting; %s were added so far: %s\n", added, rest)
		return afterSignal(ctx, nil)
	case err != nil:
		return err
	case files.Load() == 0:
		return fmt.Errorf("no file was added: site %s has none in %s", line(f.site), line("/"+f.Path))
	}
	d, err := co.Dataset(ctx, f.name)
	switch {
	case err != nil:
		return err
	case f.json:
		err = writeJSON(s.out, d)
	default:
		_, err = fmt.Fprintf(s.out, "%s, %s, of %s are at %s; it has %s, %s\n", added, unit.Bytes(float64(bytes.Load())),
			line(d.Name), line(f.site), say.Plural(int(d.Files), "file"), unit.Bytes(float64(d.Bytes)))
	}
	if err == nil && len(problems) > 0 {
		err = exit{code: exitMissed}
	}
	return err
}

// addByAgent has the agent of the site read and add the files. Like addHere it returns the files that were left out, at most a hundred.
func (f *addFlags) addByAgent(ctx context.Context, co *client.Client, update func(files, bytes int64)) ([]string, error) {
	state, err := co.FollowScan(ctx, transfer.NewScan{Dataset: f.name, Site: f.site, Path: f.Path},
		func(s transfer.ScanState) { update(s.Files, s.Bytes) })
	update(state.Files, state.Bytes)
	return state.Problem, err
}

// addHere adds the files that this command finds itself.
func (f *addFlags) addHere(ctx context.Context, co *client.Client, update func(files, bytes int64)) (problems []string, err error) {
	o := importer.Options{Dataset: f.name, Match: f.files.Match, Wrong: func(path string, err error) {
		if len(problems) < 100 {
			problems = append(problems, fmt.Sprintf("%s: %v", path, err))
		}
	}}
	entries, release, err := f.Entries(ctx, all.Drivers(), o)
	if err != nil {
		return nil, f.explain(ctx, err)
	}
	defer release()
	to := transfer.NewFiles{Dataset: f.name, Site: f.site}
	if f.Local != "" {
		host, _ := os.Hostname() // optional
		to.By = "weir dataset add on " + host
	}
	err = co.AddEntries(ctx, to, entries, update)
	if errors.As(err, new(*storage.OpError)) { // of the listing, not of the coordinator
		err = f.explain(ctx, err)
	}
	return problems, err
}

// explain returns err with what to do about it if it is of the storage service of --list.
func (f *addFlags) explain(ctx context.Context, err error) error {
	if f.List == "" {
		return err
	}
	auth := storage.Auth{TokenFile: f.TokenFile}
	return run.Explain(ctx, f.List, auth, diagnosis.Caller{TokenOption: "--list-token-file"}, err, true)
}
