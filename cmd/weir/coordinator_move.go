package main

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weir/internal/db"
	"weir/transfer/coordinator"
)

func moveDBCommand(s streams, signals signalSource) *cobra.Command {
	var state string
	var from, to dbFlags
	c := &cobra.Command{
		Use:   "move-db --to ADDRESS",
		Short: "Copy all that a coordinator keeps into another database",
		Long: `Copies sites, datasets, requests, files, leases and attempts from one database into
another one, which is empty: from SQLite to PostgreSQL when a site grows, or back.
The coordinator is stopped meanwhile; agents wait for it, and copies go on. It is all
or nothing, and what is there is read again and compared. The old database stays as
it is. The coordinator is then started with the same --state and the new --db.`,
		Example: `  weir coordinator move-db --to postgres://weir@db.example.org/weir
  weir coordinator move-db --state /var/lib/weir --to-file db.address
  weir coordinator move-db --from-file db.address --to sqlite:weir.db`,
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			source, err := from.find(s)
			if err != nil {
				return err
			}
			target, err := to.find(s)
			if err != nil {
				return err
			}
			if target == "" {
				return exit{exitUsage, errors.New("name the database to copy to: --to postgres://USER@HOST/NAME\nSee: " + c.CommandPath() + " --help")}
			}
			if state == "" {
				if state, err = stateFolder("coordinator"); err != nil {
					return err
				}
			}
			ctx, cancel := untilSignal(c.Context(), signals, nil, false)
			defer cancel()
			all, err := coordinator.MoveDB(ctx, state, source, target, func(table string) { s.say("%s\n", table) })
			if err != nil {
				return fmt.Errorf("nothing was copied: %w", err)
			}
			t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', tabwriter.AlignRight)
			_, _ = fmt.Fprintln(t, "ROWS\t TABLE") // Flush tells
			for _, one := range all {
				_, _ = fmt.Fprintf(t, "%d\t %s\n", one.Rows, one.Table)
			}
			if err := t.Flush(); err != nil {
				return err
			}
			s.tell("all is there. Start the coordinator with the same --state and --db %s; the old database stays as it was: never use both.\n", line(db.Public(target)))
			return nil
		},
	}
	fs := c.Flags()
	fs.StringVar(&state, "state", "", "the `DIR` of the coordinator's state (default ~/.local/state/weir/coordinator)")
	from.add(fs, "from", "", "copy this database: a `FILE`, or postgres://USER@HOST/NAME (default: the file in the state folder)")
	to.add(fs, "to", "", "into this one, which is empty: a `FILE`, or postgres://USER@HOST/NAME, with the password in ~/.pgpass or PGPASSWORD")
	quietFlag(c, &s.quiet)
	return c
}
