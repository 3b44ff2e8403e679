package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"weir/transfer"
	"weir/transfer/client"
	"weir/transfer/record"
	"weir/transfer/schedule"
	"weir/transfer/text"
)

func transferCommand(s streams) *cobra.Command {
	c := group(&cobra.Command{
		Use:   "transfer",
		Short: "Submit and manage transfers of datasets between sites",
		Long: `Submit and manage transfers of datasets between sites.

A request asks for a dataset, or some of its files, at a site. When it is approved, each
file is copied from a site that has it, its size and checksum are read back at its
destination, and only then it gets its name there.

A request ends as completed (every file is there), partial (some are; the others are
listed with their reasons), failed, cancelled, rejected or expired.`,
		Example: `  weir transfer submit /store/run1 --to C --approve --wait
  weir transfer list
  weir transfer explain 12`,
	}, submitCommand(s), transferShowCommand(s), transferListCommand(s))
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

func requestIDs(args []string) (ids []int64, err error) {
	for _, arg := range args {
		id, err := requestID(arg)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// A decision is a subcommand that approves, rejects, cancels or retries requests.
type decision struct {
	verb, short, long, example string
	offers                     string // completion offers requests of this status
	done                       string // describes the request afterwards
	do                         func(c *client.Client, ctx context.Context, id int64, reason string) (transfer.Request, error)
}

const isCancelled = "is cancelled"

func decisions() []decision {
	return []decision{
		{
			verb: "approve", short: "Approve requests, so that they begin", offers: string(transfer.Awaiting), done: "is approved",
			example: "  weir transfer approve 12", do: (*client.Client).Approve,
		},
		{
			verb: "reject", short: "Reject requests that wait for approval", offers: string(transfer.Awaiting), done: "is rejected",
			example: `  weir transfer reject 12 --reason "no space before Monday"`, do: (*client.Client).Reject,
		},
		{
			verb: "cancel", short: "Cancel requests; files that have arrived stay", offers: openRequests, done: isCancelled,
			long: `Cancel requests. Copies under way are aborted within a second; files that have arrived
stay, and the manifest lists them.`,
			example: `  weir transfer cancel 12
  weir transfer cancel 12 13 --reason "wrong site"`, do: (*client.Client).Cancel,
		},
		{
			verb: "retry", short: "Retry the failed and cancelled files of requests", done: "goes on",
			example: "  weir transfer retry 12", do: (*client.Client).Retry,
		},
	}
}

func decisionCommand(s streams, what decision) *cobra.Command {
	var reason string
	c := eachCommand(s, "requests", &cobra.Command{
		Use: what.verb + " REQUEST...", Short: what.short, Long: what.long, Example: what.example,
		ValidArgsFunction: completeRequests(what.offers),
		Args: func(c *cobra.Command, args []string) error {
			if err := cobra.MinimumNArgs(1)(c, args); err != nil {
				return err
			}
			_, err := requestIDs(args)
			return err
		},
	}, func(ctx context.Context, co *client.Client, arg string) (transfer.Request, error) {
		id, err := requestID(arg)
		if err != nil {
			return transfer.Request{}, err
		}
		r, err := what.do(co, ctx, id, reason)
		return r, ofRequest(id, err)
	}, func(r transfer.Request) string {
		return fmt.Sprintf("request %d %s", r.ID, decided(what.done, r.Status))
	})
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` with the reason, kept with the request")
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
	return queryCommand(s, "print it as JSON", &cobra.Command{
		Use:   "explain REQUEST [FILE]",
		Short: "Explain why the files of a request do not move now",
		Long: `Explain why the files of a request do not move now: they may wait for approval, for a
site that has them, for the limit of a link (with the reason of the limit), for space, or
for the time of the next attempt after a failure. With a file name, it explains that file.`,
		Example: "  weir transfer explain 12\n  weir transfer explain 12 /store/run1/f7.root",
		Args:    cobra.RangeArgs(1, 2), ValidArgsFunction: completeRequests(openRequests),
	}, func(ctx context.Context, co *client.Client, args []string) (e transfer.Explanation, err error) {
		id, err := requestID(args[0])
		if err != nil {
			return e, err
		}
		return co.Explain(ctx, id, strings.Join(args[1:], ""))
	}, text.Explanation)
}

func backtestCommand(s streams) *cobra.Command {
	return queryCommand(s, "print it as JSON", &cobra.Command{
		Use:   "backtest",
		Short: "Test the predictors of the scheduler on recorded copies",
		Long: `Test the predictors of the scheduler on recorded copies.

In the order of time, each predictor estimates the duration of the next copy from the copies
that had ended before: the mean of a link, its recent copies, and Transfer2Go's regression
on CPU and memory of the source. A ratio of 1 is an exact prediction. Where two sources sent
files of about the same size at about the same time, it counts how often a predictor named
the faster one.`,
		Example: "  weir transfer backtest\n  weir transfer backtest --json",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, co *client.Client, _ []string) (schedule.Verdict, error) {
		tries, err := co.History(ctx)
		return schedule.Backtest(tries), err
	}, text.Backtest)
}

func recordCommand(s streams) *cobra.Command {
	var f clientFlags
	var out string
	c := &cobra.Command{
		Use:   "record REQUEST...",
		Short: "Record requests as a run directory, for tables and plots",
		Long: `Record requests as a run directory, for tables and plots.

It reads all attempts at the files of the requests and the samples of the sites' hosts from
the coordinator. weir report makes the usual tables and plots of the run directory, and
those of each file and of both ends. Requests that were open at the same time are one step.
The coordinator keeps samples of hosts for 14 days.`,
		Example: `  weir transfer record 12 --out runs/request-12
  weir transfer record 12 13 14 --out runs/three
  weir report runs/three`,
		ValidArgsFunction: completeRequests(""),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || out == "" {
				return usageError(c, errors.New("name requests, and a new folder with --out DIR"))
			}
			ids, err := requestIDs(args)
			if err != nil {
				return err
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
		},
	}
	f.add(c, "")
	c.Flags().StringVarP(&out, "out", "o", "", "write this new `DIR`ectory")
	return c
}

func transferListCommand(s streams) *cobra.Command {
	var want transfer.Filter
	var status string
	c := listCommand(s, "requests", &cobra.Command{
		Use: "list", Short: "List requests, the newest first", Args: cobra.NoArgs,
		Example: "  weir transfer list --open\n  weir transfer list --to C --status partial --json",
		PreRunE: func(*cobra.Command, []string) error {
			want.Status = transfer.Status(status)
			if all := text.Statuses(); status != "" && !slices.Contains(all, want.Status) {
				return usagef("--status %s: use one of %s", status, strings.Join(textsOf(all), ", "))
			}
			if want.Limit < 1 || want.Limit > 1000 {
				return usagef("--most %d: use 1 to 1000", want.Limit)
			}
			return nil
		},
	}, func(ctx context.Context, co *client.Client, _ []string) ([]transfer.Request, error) {
		all, err := co.Requests(ctx, want)
		if err == nil && len(all) == want.Limit {
			s.printErr("weir: the newest %d are listed: there may be more (--most, up to 1000)\n", want.Limit)
		}
		return all, err
	}, text.Requests)
	fs := c.Flags()
	fs.BoolVar(&want.Open, "open", false, "only those that have not ended")
	fs.StringVar(&status, "status", "", "only those of this `STATUS`")
	fs.StringVar(&want.To, "to", "", "only those to this `SITE`")
	fs.StringVar(&want.Dataset, "dataset", "", "only those of this `DATASET`")
	fs.StringVar(&want.By, "by", "", "only those of this `USER`")
	fs.IntVar(&want.Limit, "most", 100, "at most `N`")
	return c
}

// fetchShown asks for a request and at most so many of its attempts, or of its files in a state; "" are those not at the
// destination yet.
func fetchShown(ctx context.Context, co *client.Client, id int64, attempts bool, state transfer.State,
	most int) (out text.Shown, err error) {
	if out.Request, err = co.Request(ctx, id); err != nil {
		return out, err
	}
	if out.WithAttempts = attempts; attempts {
		if out.Attempts, err = co.Attempts(ctx, id, 0, most); err == nil {
			out.Items, err = co.ItemsOf(ctx, id, out.Attempts)
		}
		return out, err
	}
	states := text.Unfinished()
	if state != "" {
		states = []transfer.State{state}
	}
	out.Items, err = co.ItemsIn(ctx, id, states, most)
	return out, err
}

func transferShowCommand(s streams) *cobra.Command {
	var f clientFlags
	var wait, attempts bool
	var state string
	var most int
	c := &cobra.Command{
		Use:   "show REQUEST",
		Short: "Show the progress of a request and its files",
		Long: `Show the progress of a request and those of its files that are not at the destination yet,
or with --state those in one state. With --attempts it lists the attempts and their results;
with --wait it waits for the end as weir transfer submit --wait does.`,
		Example: `  weir transfer show 12
  weir transfer show 12 --wait
  weir transfer show 12 --state failed
  weir transfer show 12 --attempts`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeRequests(""),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := requestID(args[0])
			if err != nil {
				return err
			}
			if most < 1 {
				return usagef("--most %d: use 1 or more", most)
			}
			return f.call(func(co *client.Client) error {
				if wait {
					w := waiting{Client: co, id: id, json: f.json}
					return w.wait(c.Context(), s)
				}
				out, err := fetchShown(c.Context(), co, id, attempts, transfer.State(state), most)
				switch {
				case err != nil:
					return err
				case f.json:
					return writeJSON(s.out, out)
				}
				return out.Print(s.out)
			})
		},
	}
	f.add(c, "print the request and its files as JSON; with --wait, its manifest")
	fs := c.Flags()
	fs.BoolVarP(&wait, "wait", "w", false, "wait for its end, then print the manifest")
	fs.StringVar(&state, "state", "", "list the files in this `STATE`: queued, no source, leased, done, skipped, failed, cancelled")
	fs.BoolVar(&attempts, "attempts", false, "list the attempts and their results")
	fs.IntVar(&most, "most", text.MaxRows, "list at most `N` files or attempts")
	quietFlag(c, &s.quiet)
	return c
}

func manifestCommand(s streams) *cobra.Command {
	var f clientFlags
	var all bool
	c := &cobra.Command{
		Use:   "manifest REQUEST",
		Short: "List the result of a request, file by file",
		Long: `List the result of a request, file by file.

Files have their states, sizes and checksums, as read back at the destination, and missing
files their reasons. The digest is that of the sorted list, so that two manifests can be
compared. Of many files only those that did not arrive are listed, unless --all is given;
--json has all of them.`,
		Example: "  weir transfer manifest 12\n  weir transfer manifest 12 --json > manifest.json",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: completeRequests(""),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := requestID(args[0])
			if err != nil {
				return err
			}
			return f.call(func(co *client.Client) error {
				if f.json {
					return streamManifest(c.Context(), co, s.out, id, false)
				}
				return printManifest(c.Context(), co, s.out, id, all)
			})
		},
	}
	f.add(c, "print it as JSON, with all files")
	c.Flags().BoolVar(&all, "all", false, "list all files")
	return c
}

// streamManifest prints a manifest as JSON while it is read, so that it is never in memory
// as a whole. After a lost connection it is not repeated: part of it is printed already.
func streamManifest(ctx context.Context, co *client.Client, w io.Writer, id int64, reached bool) error {
	out := bufio.NewWriter(w)
	_, err := client.Retry(ctx, reached, func() (transfer.Manifest, error) {
		m, err := co.WriteManifest(ctx, id, out, func(transfer.Item) error { return nil })
		if errors.Is(err, client.ErrCut) {
			err = fmt.Errorf("the printed manifest is incomplete: %s: print it again with: weir transfer manifest %d --json", err.Error(), id)
		}
		return m, err
	})
	return errors.Join(err, out.Flush())
}

// printManifest prints the files of a request or, of many, those that did not arrive, and
// the totals.
func printManifest(ctx context.Context, co *client.Client, w io.Writer, id int64, all bool) error {
	const rowsAtOnce = 1000 // have common columns
	var short text.Shortlist
	var rows []transfer.Item
	m, err := co.EachItem(ctx, id, func(i transfer.Item) error {
		if !all {
			return short.Add(i)
		}
		if rows = append(rows, i); len(rows) < rowsAtOnce {
			return nil
		}
		err := text.Items(w, rows)
		rows = rows[:0]
		return err
	})
	if err == nil {
		err = text.Items(w, rows)
	}
	if err == nil {
		err = short.Print(w, id)
	}
	if err != nil {
		return err
	}
	return text.Totals(w, &m)
}
