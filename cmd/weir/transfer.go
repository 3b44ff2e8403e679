package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/flagfile"
	"weir/transfer"
	"weir/transfer/client"
	"weir/transfer/record"
	"weir/transfer/schedule"
	"weir/transfer/text"
)

func transferCommand(s streams) *cobra.Command {
	c := group("transfer", submitCommand(s), transferShowCommand(s), transferListCommand(s))
	for _, d := range decisions() {
		c.AddCommand(decisionCommand(s, d))
	}
	c.AddCommand(explainCommand(s), manifestCommand(s), backtestCommand(s), recordCommand(s), demoCommand(s))
	c.AddCommand(notifyTestCommand(s), notificationsCommand(s))
	return c
}

// requestID reads the number of a request.
func requestID(arg string) (int64, error) {
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || id <= 0 {
		return 0, usagef("invalid request number %q: weir transfer list prints the numbers", arg)
	}
	return id, nil
}

// requestArgs accepts count arguments that are numbers of requests.
func requestArgs(count cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		err := count(c, args)
		for i := 0; err == nil && i < len(args); i++ {
			_, err = requestID(args[i])
		}
		return err
	}
}

// A decision is a subcommand that approves, rejects, cancels or retries requests.
type decision struct {
	verb string
	done string // describes the request afterwards
	do   func(c *client.Client, ctx context.Context, id int64, reason string) (transfer.Request, error)
}

const isCancelled = "is cancelled"

func decisions() []decision {
	return []decision{
		{"approve", "is approved", (*client.Client).Approve},
		{"reject", "is rejected", (*client.Client).Reject},
		{"cancel", isCancelled, (*client.Client).Cancel},
		{"retry", "goes on", (*client.Client).Retry},
	}
}

func decisionCommand(s streams, what decision) *cobra.Command {
	var reason string
	c := eachCommand(s, "requests", what.verb+" REQUEST...", requestArgs(cobra.MinimumNArgs(1)),
		func(co *client.Client, ctx context.Context, arg string) (r transfer.Request, err error) {
			id, err := requestID(arg)
			if err == nil {
				r, err = what.do(co, ctx, id, reason)
			}
			return r, ofRequest(id, err)
		}, func(r transfer.Request) string {
			return fmt.Sprintf("request %d %s", r.ID, decided(what.done, r.Status))
		})
	flagVars{"reason": &reason}.add(c)
	return c
}

// ofRequest adds the number of the request to an error that lacks it.
func ofRequest(id int64, err error) error {
	if err == nil || strings.Contains(err.Error(), fmt.Sprintf("request %d ", id)) {
		return err
	}
	return fmt.Errorf("request %d: %w", id, err)
}

// decided describes a request after a decision, with its status if that adds something.
func decided(done string, now transfer.Status) string {
	switch {
	case strings.HasSuffix(done, string(now)):
		return done
	case done == isCancelled && !now.Ended():
		return "is being cancelled: copies under way are aborted"
	}
	return done + ": " + string(now)
}

func explainCommand(s streams) *cobra.Command {
	return queryCommand(s, "explain REQUEST [FILE]", cobra.RangeArgs(1, 2),
		func(ctx context.Context, co *client.Client, args []string) (e transfer.Explanation, err error) {
			id, err := requestID(args[0])
			if err != nil {
				return e, err
			}
			return co.Explain(ctx, id, strings.Join(args[1:], ""))
		}, text.Explanation)
}

func backtestCommand(s streams) *cobra.Command {
	return queryCommand(s, "backtest", cobra.NoArgs,
		func(ctx context.Context, co *client.Client, _ []string) (schedule.Verdict, error) {
			tries, err := co.History(ctx)
			return schedule.Backtest(tries), err
		}, text.Backtest)
}

func recordCommand(s streams) *cobra.Command {
	var f clientFlags
	var out string
	c := command("record REQUEST...", requestArgs(cobra.ArbitraryArgs), func(c *cobra.Command, args []string) error {
		if len(args) == 0 || out == "" {
			return usageError(c, errors.New("name requests, and a new folder with --out DIR"))
		}
		var ids []int64
		for _, arg := range args {
			id, _ := requestID(arg) // it was checked
			ids = append(ids, id)
		}
		return f.call(func(co *client.Client) error {
			steps, err := record.ByTime(c.Context(), co, ids)
			if err != nil {
				return err
			}
			r := record.Run{Name: "transfer", Weir: version(), Command: os.Args, Steps: steps}
			if err := record.Write(c.Context(), co, out, r); err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "run directory  %s\nsee            weir report %s\n", out, out)
			return err
		})
	})
	f.add(c)
	flagVars{"out/o": &out}.add(c)
	return c
}

func transferListCommand(s streams) *cobra.Command {
	want := transfer.Filter{Limit: 100}
	var status string
	c := listCommand(s, "requests", "list", cobra.NoArgs,
		func(ctx context.Context, co *client.Client, _ []string) ([]transfer.Request, error) {
			all, err := co.Requests(ctx, want)
			if err == nil && len(all) == want.Limit {
				s.printErr("weir: the newest %d are listed: there may be more (--most, up to 1000)\n", want.Limit)
			}
			return all, err
		}, text.Requests)
	c.PreRunE = func(*cobra.Command, []string) error {
		all := textsOf(text.Statuses())
		want.Status = transfer.Status(status)
		return usage(cmp.Or(
			flagfile.If(status != "" && !slices.Contains(all, status), "", "--status %s: use one of %s", status, strings.Join(all, ", ")),
			flagfile.If(want.Limit < 1 || want.Limit > 1000, "", "--most %d: use 1 to 1000", want.Limit)))
	}
	flagVars{
		"open": &want.Open, "status": &status, "to": &want.To, "dataset": &want.Dataset, "by": &want.By, "most": &want.Limit,
	}.add(c)
	return c
}

func transferShowCommand(s streams) *cobra.Command {
	var wait, attempts bool
	var state string
	most := text.MaxRows
	c := clientCommand("show REQUEST", requestArgs(cobra.ExactArgs(1)),
		func(ctx context.Context, co *client.Client, args []string, asJSON bool) error {
			id, err := requestID(args[0])
			if err != nil {
				return err
			}
			if wait {
				return follow(ctx, co, id, "", asJSON, s)
			}
			out, err := text.Fetch(ctx, co, id, attempts, transfer.State(state), most)
			switch {
			case err != nil:
				return err
			case asJSON:
				return writeJSON(s.out, out)
			}
			return out.Print(s.out)
		})
	c.PreRunE = func(*cobra.Command, []string) error {
		return usage(flagfile.If(most < 1, "", "--most %d: use 1 or more", most))
	}
	flagVars{"wait/w": &wait, "state": &state, "attempts": &attempts, "most": &most, "quiet/q": &s.quiet}.add(c)
	return c
}

func manifestCommand(s streams) *cobra.Command {
	var all bool
	c := clientCommand("manifest REQUEST", requestArgs(cobra.ExactArgs(1)),
		func(ctx context.Context, co *client.Client, args []string, asJSON bool) error {
			id, err := requestID(args[0])
			if err != nil {
				return err
			}
			var r transfer.Request
			if asJSON {
				r, err = text.ManifestJSON(ctx, co, s.out, id, false)
			} else {
				r, err = text.Manifest(ctx, co, s.out, id, all)
			}
			return missed(r, err)
		})
	flagVars{"all": &all}.add(c)
	return c
}

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
