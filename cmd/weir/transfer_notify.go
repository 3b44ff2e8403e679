package main

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"weir/transfer"
	"weir/transfer/client"
	"weir/transfer/text"
)

func notifyTestCommand(s streams) *cobra.Command {
	failed := false
	c := listCommand(s, "targets", &cobra.Command{
		Use:   "notify-test [TARGET]",
		Short: "Send a test to the coordinator's targets of notifications",
		Long: `Send a test to the coordinator's targets of notifications, or to one of them, and print what
came of it. Each has 20 s. The exit code is 3 if one was not delivered.

The targets are those of the coordinator's configuration file (notify).`,
		Example: "  weir transfer notify-test\n  weir transfer notify-test operators",
		Args:    cobra.MaximumNArgs(1),
	}, func(ctx context.Context, co *client.Client, args []string) ([]transfer.NotifyResult, error) {
		target := ""
		if len(args) > 0 {
			target = args[0]
		}
		all, err := co.TestNotify(ctx, target)
		failed = slices.ContainsFunc(all, func(r transfer.NotifyResult) bool { return r.Problem != "" })
		return all, err
	}, func(w io.Writer, all []transfer.NotifyResult) error { return text.NotifyResults(w, all) })
	query := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := query(c, args); err != nil || !failed {
			return err
		}
		return exit{code: exitMissed}
	}
	return c
}

func notificationsCommand(s streams) *cobra.Command {
	return listCommand(s, "notifications", &cobra.Command{
		Use:   "notifications",
		Short: "List the notifications about requests that have ended",
		Long: `List the latest 200 notifications about requests that have ended, with their targets, their
attempts and the problem of the last attempt. They are kept for two weeks.`,
		Example: "  weir transfer notifications\n  weir transfer notifications --json",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, co *client.Client, _ []string) ([]transfer.Notification, error) {
		return co.Notifications(ctx)
	},
		text.Notifications)
}
