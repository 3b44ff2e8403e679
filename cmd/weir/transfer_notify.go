package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir/transfer"
	"weir/transfer/client"
	"weir/transfer/text"
)

func notifyTestCommand(s streams) *cobra.Command {
	failed := false
	c := listCommand(s, "targets", "notify-test [TARGET]", cobra.MaximumNArgs(1),
		func(ctx context.Context, co *client.Client, args []string) ([]transfer.NotifyResult, error) {
			all, err := co.TestNotify(ctx, strings.Join(args, ""))
			failed = slices.ContainsFunc(all, func(r transfer.NotifyResult) bool { return r.Problem != "" })
			return all, err
		}, text.NotifyResults)
	c.PostRunE = func(*cobra.Command, []string) error {
		if failed {
			return exit{code: exitMissed}
		}
		return nil
	}
	return c
}

func notificationsCommand(s streams) *cobra.Command {
	return listCommand(s, "notifications", "notifications", cobra.NoArgs,
		func(ctx context.Context, co *client.Client, _ []string) ([]transfer.Notification, error) {
			return co.Notifications(ctx)
		},
		text.Notifications)
}
