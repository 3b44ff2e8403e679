package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weir/catalog"
	"weir/internal/unit"
	"weir/transfer"
)

// datasetCommand is about what can be moved.
func datasetCommand(s streams, signals signalSource) *cobra.Command {
	c := &cobra.Command{
		Use:   "dataset",
		Short: "The datasets that can be moved, and where their files are",
		Example: `  weir dataset add /store/run1 --site A
  weir dataset list
  weir dataset files /store/run1`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(datasetAddCommand(s, signals), datasetListCommand(s), datasetShowCommand(s), datasetFilesCommand(s), datasetRemoveCommand(s))
	return c
}

// perPage is how many datasets or files are asked for at a time.
const perPage = 1000

func datasetListCommand(s streams) *cobra.Command {
	var f coordFlags
	c := &cobra.Command{
		Use: "list [PREFIX]", Short: "List datasets", Example: "  weir dataset list\n  weir dataset list /store/ --json",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeDatasets,
		RunE: func(c *cobra.Command, args []string) error {
			prefix := strings.Join(args, "")
			return f.with(func(d *desk) error {
				all, err := datasets(c.Context(), d, prefix)
				if err != nil {
					return err
				}
				return printList(s.out, f.json, "datasets", all, tellDatasets)
			})
		},
	}
	f.add(c, "print them as JSON")
	return c
}

// datasets asks for all whose names begin with prefix.
func datasets(ctx context.Context, d *desk, prefix string) (all []catalog.Dataset, err error) {
	for after := prefix[:max(len(prefix)-1, 0)]; ; {
		some, err := d.Datasets(ctx, after, perPage)
		if err != nil {
			return nil, err
		}
		for _, one := range some {
			if strings.HasPrefix(one.Name, prefix) {
				all = append(all, one)
			} else if one.Name > prefix {
				return all, nil
			}
		}
		if len(some) < perPage {
			return all, nil
		}
		after = some[len(some)-1].Name
	}
}

func tellDatasets(w io.Writer, all []catalog.Dataset) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no datasets: add one with `weir dataset add`")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "DATASET\tBLOCKS\tFILES\tSIZE\tWHERE") // Flush tells
	for _, d := range all {
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\n", line(d.Name), d.Blocks, d.Files, unit.Bytes(float64(d.Bytes)), whereIs(&d))
	}
	return t.Flush()
}

// whereIs says which sites have how much of a dataset.
func whereIs(d *catalog.Dataset) string {
	var parts []string
	for site, files := range d.At {
		part := line(site)
		if files < d.Files {
			part += fmt.Sprintf(" (%d of %d)", files, d.Files)
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return "nowhere"
	}
	return strings.Join(parts, ", ")
}

func datasetShowCommand(s streams) *cobra.Command {
	var f coordFlags
	c := &cobra.Command{
		Use: "show DATASET", Short: "Show how large a dataset is, and which sites have it",
		Example: "  weir dataset show /store/run1", Args: cobra.ExactArgs(1), ValidArgsFunction: completeDatasets,
		RunE: func(c *cobra.Command, args []string) error {
			return f.with(func(d *desk) error {
				one, err := d.Dataset(c.Context(), args[0])
				switch {
				case err != nil:
					return err
				case f.json:
					return writeJSON(s.out, one)
				}
				return tellDatasets(s.out, []catalog.Dataset{one})
			})
		},
	}
	f.add(c, "print it as JSON")
	return c
}

func datasetFilesCommand(s streams) *cobra.Command {
	var f coordFlags
	c := &cobra.Command{
		Use: "files DATASET", Short: "List the files of a dataset with their checksums and sites",
		Long:    "Lists all files of a dataset: size, adler32, block, and the sites that have them; those whose\ncopy at a site is known to be bad are named with the reason.",
		Example: "  weir dataset files /store/run1\n  weir dataset files /store/run1 --json", Args: cobra.ExactArgs(1), ValidArgsFunction: completeDatasets,
		RunE: func(c *cobra.Command, args []string) error {
			return f.with(func(d *desk) error {
				if f.json {
					all := []transfer.Placed{}
					err := eachFile(c.Context(), d, args[0], func(some []transfer.Placed) error { all = append(all, some...); return nil })
					if err != nil {
						return err
					}
					return writeJSON(s.out, map[string]any{"files": all})
				}
				return eachFile(c.Context(), d, args[0], func(some []transfer.Placed) error { return tellFiles(s.out, some) })
			})
		},
	}
	f.add(c, "print them as JSON")
	return c
}

// eachFile calls f with the files of a dataset, many at a time.
func eachFile(ctx context.Context, d *desk, dataset string, f func([]transfer.Placed) error) error {
	for after := ""; ; {
		some, err := d.Files(ctx, dataset, after, perPage)
		if err != nil {
			return err
		}
		if err := f(some); err != nil {
			return err
		}
		if len(some) < perPage {
			return nil
		}
		after = some[len(some)-1].Name
	}
}

func tellFiles(w io.Writer, files []transfer.Placed) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range files {
		sum := p.Adler
		if sum == "" {
			sum = "-"
		}
		var at []string
		for _, r := range p.Replicas {
			text := line(r.Site)
			if r.Bad != "" {
				text += " (bad: " + line(r.Bad) + ")"
			}
			at = append(at, text)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", unit.Bytes(float64(p.Size)), sum, line(p.Block), strings.Join(at, ", "), line(p.Name)) // Flush tells
	}
	return t.Flush()
}

func datasetRemoveCommand(s streams) *cobra.Command {
	var f coordFlags
	c := &cobra.Command{
		Use: "remove DATASET", Short: "Forget a dataset; no file is touched",
		Example: "  weir dataset remove /store/run1", Args: cobra.ExactArgs(1), ValidArgsFunction: completeDatasets,
		RunE: func(c *cobra.Command, args []string) error {
			return f.with(func(d *desk) error {
				if err := d.RemoveDataset(c.Context(), args[0]); err != nil {
					return err
				}
				if f.json {
					return writeJSON(s.out, map[string]string{"removed": args[0]})
				}
				_, err := fmt.Fprintf(s.out, "dataset %s is forgotten; its files are where they were\n", line(args[0]))
				return err
			})
		},
	}
	f.add(c, "print its name as JSON")
	return c
}
