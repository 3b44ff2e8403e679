package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/client"
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

func datasetListCommand(s streams) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: "list [PREFIX]", Short: "List datasets", Example: "  weir dataset list\n  weir dataset list /store/ --json",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeDatasets,
		RunE: func(c *cobra.Command, args []string) error {
			return askList(&f, s, "datasets", func(co *client.Client) ([]catalog.Dataset, error) {
				return co.DatasetsBelow(c.Context(), strings.Join(args, ""))
			}, printDatasets)
		},
	}
	f.add(c, "print them as JSON")
	return c
}

func printDatasets(w io.Writer, all []catalog.Dataset) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no datasets: add one with `weir dataset add`")
		return err
	}
	t := newTable(w, "DATASET", "BLOCKS", "FILES", "SIZE", "WHERE")
	for _, d := range all {
		t.row(d.Name, d.Blocks, d.Files, unit.Bytes(float64(d.Bytes)), sitesOf(&d))
	}
	return t.Flush()
}

// sitesOf lists the sites that have files of a dataset, and how many if not all.
func sitesOf(d *catalog.Dataset) string {
	var parts []string
	for site, files := range d.At {
		part := site
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
	var f clientFlags
	c := &cobra.Command{
		Use: "show DATASET", Short: "Show how large a dataset is, and which sites have it",
		Example: "  weir dataset show /store/run1", Args: cobra.ExactArgs(1), ValidArgsFunction: completeDatasets,
		RunE: func(c *cobra.Command, args []string) error {
			return ask(&f, s, func(co *client.Client) (catalog.Dataset, error) { return co.Dataset(c.Context(), args[0]) },
				func(w io.Writer, d catalog.Dataset) error { return printDatasets(w, []catalog.Dataset{d}) })
		},
	}
	f.add(c, "print it as JSON")
	return c
}

func datasetFilesCommand(s streams) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: "files DATASET", Short: "List the files of a dataset with their checksums and sites",
		Long:    "Lists all files of a dataset: size, adler32, block, and the sites that have them; those whose\ncopy at a site is known to be bad are named with the reason.",
		Example: "  weir dataset files /store/run1\n  weir dataset files /store/run1 --json", Args: cobra.ExactArgs(1), ValidArgsFunction: completeDatasets,
		RunE: func(c *cobra.Command, args []string) error {
			return f.call(func(co *client.Client) error {
				if !f.json {
					return co.EachFile(c.Context(), args[0], func(some []transfer.FileReplicas) error { return printFiles(s.out, some) })
				}
				all := []transfer.FileReplicas{}
				err := co.EachFile(c.Context(), args[0], func(some []transfer.FileReplicas) error { all = append(all, some...); return nil })
				if err != nil {
					return err
				}
				return writeJSON(s.out, map[string]any{"files": all})
			})
		},
	}
	f.add(c, "print them as JSON")
	return c
}

func printFiles(w io.Writer, files []transfer.FileReplicas) error {
	t := newTable(w)
	for _, p := range files {
		var sites []string
		for _, r := range p.Replicas {
			text := r.Site
			if r.Bad != "" {
				text += " (bad: " + r.Bad + ")"
			}
			sites = append(sites, text)
		}
		t.row(unit.Bytes(float64(p.Size)), orDash(p.Adler), p.Block, strings.Join(sites, ", "), p.Name)
	}
	return t.Flush()
}

func datasetRemoveCommand(s streams) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: "remove DATASET", Short: "Forget a dataset; no file is touched",
		Example: "  weir dataset remove /store/run1", Args: cobra.ExactArgs(1), ValidArgsFunction: completeDatasets,
		RunE: func(c *cobra.Command, args []string) error {
			return ask(&f, s, func(co *client.Client) (removed, error) {
				return removed{args[0]}, co.RemoveDataset(c.Context(), args[0])
			}, func(w io.Writer, r removed) error {
				_, err := fmt.Fprintf(w, "dataset %s is forgotten; its files are where they were\n", line(r.Name))
				return err
			})
		},
	}
	f.add(c, "print its name as JSON")
	return c
}
