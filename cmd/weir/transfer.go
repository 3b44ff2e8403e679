package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/client"
	"weir/transfer/record"
	"weir/transfer/schedule"
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
	c.AddCommand(submitCommand(s, signals), transferShowCommand(s, signals), transferListCommand(s))
	for _, d := range decisions() {
		c.AddCommand(decisionCommand(s, d))
	}
	c.AddCommand(explainCommand(s), manifestCommand(s), backtestCommand(s), recordCommand(s), demoCommand(s, signals))
	return c
}

// requestIDs reads the numbers of requests.
func requestIDs(c *cobra.Command, args ...string) (ids []int64, err error) {
	for _, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id <= 0 {
			return nil, usageError(c, fmt.Errorf("%q is no number of a request: weir transfer list has them", arg))
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// A decision is a subcommand that approves, rejects, cancels or retries requests.
type decision struct {
	verb, short, long, example string
	offers                     string // completion offers requests of this status
	done                       string // what is said of the request afterwards
	do                         func(c *client.Client, ctx context.Context, id int64, reason string) (transfer.Request, error)
}

const isCancelled = "is cancelled"

func decisions() []decision {
	return []decision{
		{
			verb: "approve", short: "Let requests begin", offers: string(transfer.Awaiting), done: "is approved",
			example: "  weir transfer approve 12", do: (*client.Client).Approve,
		},
		{
			verb: "reject", short: "End requests that wait for approval", offers: string(transfer.Awaiting), done: "is rejected",
			example: `  weir transfer reject 12 --reason "no space before Monday"`, do: (*client.Client).Reject,
		},
		{
			verb: "cancel", short: "End requests; files that have arrived stay", offers: openRequests, done: isCancelled,
			long: `Ends requests. Copies that run are broken off within a second; files that have arrived
stay where they are, and the manifest has them.`,
			example: `  weir transfer cancel 12
  weir transfer cancel 12 13 --reason "wrong site"`, do: (*client.Client).Cancel,
		},
		{
			verb: "retry", short: "Try the files of requests again that failed or were cancelled", done: "goes on",
			example: "  weir transfer retry 12", do: (*client.Client).Retry,
		},
	}
}

func decisionCommand(s streams, what decision) *cobra.Command {
	var f clientFlags
	var reason string
	c := &cobra.Command{
		Use: what.verb + " REQUEST...", Short: what.short, Long: what.long, Example: what.example,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeRequests(what.offers),
		RunE: func(c *cobra.Command, args []string) error {
			ids, err := requestIDs(c, args...)
			if err != nil {
				return err
			}
			return f.call(func(co *client.Client) error {
				var all []transfer.Request
				for _, id := range ids {
					r, err := what.do(co, c.Context(), id, reason)
					if err != nil {
						return ofRequest(id, err)
					}
					all = append(all, r)
					if !f.json {
						_, _ = fmt.Fprintf(s.out, "request %d %s\n", r.ID, decided(what.done, r.Status))
					}
				}
				if f.json {
					return writeJSON(s.out, map[string]any{"requests": all})
				}
				return nil
			})
		},
	}
	f.add(c, "print the requests as JSON")
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` that says why, kept with the request")
	return c
}

// decided says what became of a request by a decision, with its status if that adds
// something.
func decided(done string, now transfer.Status) string {
	switch {
	case strings.HasSuffix(done, string(now)):
		return done
	case done == isCancelled && !now.Ended():
		return "is being cancelled: copies that run are broken off"
	}
	return done + ": " + string(now)
}

// ofRequest adds the number of the request to an error that lacks it.
func ofRequest(id int64, err error) error {
	if strings.Contains(err.Error(), fmt.Sprintf("request %d ", id)) {
		return err
	}
	return fmt.Errorf("request %d: %w", id, err)
}

func explainCommand(s streams) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "explain REQUEST [FILE]",
		Short: "Say why the files of a request do not move now",
		Long: `Says what the files of a request are waiting for: approval, a site that has them, the
limit of a link and why it is what it is, space, the time of the next attempt and
what became of the last one. With the name of a file, it is about that one.`,
		Example: "  weir transfer explain 12\n  weir transfer explain 12 /store/run1/f7.root",
		Args:    cobra.RangeArgs(1, 2), ValidArgsFunction: completeRequests(openRequests),
		RunE: func(c *cobra.Command, args []string) error {
			ids, err := requestIDs(c, args[0])
			if err != nil {
				return err
			}
			file := strings.Join(args[1:], "")
			return ask(&f, s, func(co *client.Client) (transfer.Explanation, error) { return co.Explain(c.Context(), ids[0], file) }, printExplanation)
		},
	}
	f.add(c, "print it as JSON")
	return c
}

func printExplanation(w io.Writer, e transfer.Explanation) error {
	counts := ""
	if e.Request.Count.Files > 0 {
		counts = ": " + stateCounts(&e.Request.Count)
	}
	tell(w, "", "request %d is %s%s", e.Request.ID, e.Request.Status, counts)
	for _, r := range e.Reasons {
		which := say.Plural(int(r.Files), "file")
		if r.Files == 1 {
			which = cmp.Or(r.File, which)
		}
		tell(w, "  ", "%s: %s", which, r.Text)
	}
	if len(e.Reasons) > 0 || !e.Request.Status.Ended() {
		return nil
	}
	_, err := fmt.Fprintf(w, "it has ended: weir transfer manifest %d has its files\n", e.Request.ID)
	return err
}

func backtestCommand(s streams) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "backtest",
		Short: "Say how well each predictor would have chosen sources, on recorded copies",
		Long: `Goes through the recorded copies in the order of time and has each predictor say, from
nothing but the copies that had ended, how long the next one takes: the mean of a
link, its recent copies, and Transfer2Go's regression on CPU and memory of the source.
A ratio of 1 is a prediction that was right. Where two sources sent files of about the
same size at about the same time, it counts how often a predictor named the faster one.`,
		Example: "  weir transfer backtest\n  weir transfer backtest --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return ask(&f, s, func(co *client.Client) (schedule.Verdict, error) {
				tries, err := co.History(c.Context())
				return schedule.Backtest(tries), err
			}, printVerdict)
		},
	}
	f.add(c, "print it as JSON")
	return c
}

func printVerdict(w io.Writer, v schedule.Verdict) error {
	if v.Used == 0 {
		_, err := fmt.Fprintf(w, "%s: none that moved bytes, so there is nothing to predict yet\n", say.Plural(v.Tries, "recorded attempt"))
		return err
	}
	_, _ = fmt.Fprintf(w, "%s, %d of them good copies that moved bytes; %s from two sources at about the same time\n", say.Plural(v.Tries, "recorded attempt"), v.Used, say.Plural(v.Pairs, "pair"))
	if v.Unsampled > 0 {
		_, _ = fmt.Fprintf(w, "of %s the source's host was not seen: the regression says nothing of these\n", say.Plural(v.Unsampled, "copy"))
	}
	t := newTable(w, "PREDICTOR", "COPIES", "PREDICTED/TOOK 10%", "50%", "90%", "MEDIAN ERROR", "FASTER SOURCE NAMED", "WHAT")
	for _, p := range v.Predictors {
		q := [3]string{"-", "-", "-"}
		for i := range min(len(p.Ratio), len(q)) {
			q[i] = unit.Significant(p.Ratio[i].Value)
		}
		faster, off := "-", "-"
		if v.Pairs > 0 {
			faster = fmt.Sprintf("%d of %d (%s, 95%%: %s to %s)", p.Right, v.Pairs, unit.Percent(p.Share), unit.Percent(p.Range.Low), unit.Percent(p.Range.High))
		}
		if p.Copies > 0 {
			off = "x " + unit.Significant(p.Error.Value)
		}
		t.row(p.Name, p.Copies, q[0], q[1], q[2], off, faster, p.What)
	}
	return t.Flush()
}

func recordCommand(s streams) *cobra.Command {
	var f clientFlags
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
				return usageError(c, errors.New("name requests, and a new folder with --out DIR"))
			}
			ids, err := requestIDs(c, args...)
			if err != nil {
				return err
			}
			return f.call(func(co *client.Client) error {
				steps, err := record.ByTime(c.Context(), co, ids)
				if err != nil {
					return err
				}
				if err := record.Write(c.Context(), co, out, record.Run{Name: "transfer", Weir: version(), Command: os.Args, Steps: steps}); err != nil {
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
