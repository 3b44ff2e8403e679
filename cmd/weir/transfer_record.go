package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"weir/transfer/record"
)

// recordCommand makes a run directory of requests.
func recordCommand(s streams) *cobra.Command {
	var f coordFlags
	var out string
	c := &cobra.Command{
		Use:   "record REQUEST...",
		Short: "Make a run directory of requests: tables and plots of what they cost",
		Long: `Asks the coordinator for all attempts at the files of requests, and for what the hosts of
the sites went through meanwhile, and writes them as an ordinary run directory:
weir report makes the usual tables and plots of it, and others of each file and of
both ends. Requests that were open at the same time are one step. The coordinator keeps
what hosts went through for 14 days.`,
		Example: `  weir transfer record 12 --out runs/request-12
  weir transfer record 12 13 14 --out runs/three
  weir report runs/three`,
		ValidArgsFunction: completeRequests(""),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || out == "" {
				return exit{exitUsage, errors.New("name requests, and a new folder with --out DIR\nSee: " + c.CommandPath() + " --help")}
			}
			var ids []int64
			for _, arg := range args {
				id, err := requestOf(c, arg)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
			return f.with(func(d *desk) error {
				steps, err := record.ByTime(c.Context(), d.Client, ids)
				if err != nil {
					return err
				}
				if err := record.Write(c.Context(), d.Client, out, record.Run{Name: "transfer", Weir: version(), Command: os.Args, Steps: steps}); err != nil {
					return err
				}
				_, err = fmt.Fprintf(s.out, "run directory  %s\nsee            weir report %s\n", out, out)
				return err
			})
		},
	}
	f.add(c, "")
	c.Flags().StringVarP(&out, "out", "o", "", "write this new `DIR`ectory")
	return c
}
