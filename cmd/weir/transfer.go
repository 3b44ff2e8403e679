package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

// transferCommand moves datasets between sites.
func transferCommand(s streams, signals signalSource) *cobra.Command {
	c := &cobra.Command{
		Use:   "transfer",
		Short: "Move datasets between sites: submit, watch, decide, explain",
		Long: `A request asks for a dataset, or some of its files, at a site. When it is approved,
each file is copied from a site that has it, its size and checksum are read back
at its destination, and only then it has its name there.

A request ends as completed (every file is there), partial (some are; the others
are named with their reasons), failed, cancelled, rejected or expired.`,
		Example: `  weir transfer submit /store/run1 --to C --approve --wait
  weir transfer list
  weir transfer explain 12`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		submitCommand(s, signals), transferShowCommand(s, signals), transferListCommand(s),
		decisionCommand(s, approving()), decisionCommand(s, rejecting()), decisionCommand(s, ending()), decisionCommand(s, retrying()),
		explainCommand(s), manifestCommand(s), backtestCommand(s), recordCommand(s), demoCommand(s, signals),
	)
	return c
}

// requestOf reads the number of a request.
func requestOf(c *cobra.Command, arg string) (int64, error) {
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || id <= 0 {
		return 0, exit{exitUsage, fmt.Errorf("%q is no number of a request: weir transfer list has them\nSee: %s --help", arg, c.CommandPath())}
	}
	return id, nil
}
