package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"weir/transfer"
)

// A decision is what somebody can do about requests.
type decision struct {
	verb, short, long, example string
	offers                     string // requests of which statuses
	done                       string // what was done, of the request
	do                         func(ctx context.Context, d *desk, id int64, reason string) (transfer.Request, error)
}

func approving() decision {
	return decision{
		verb: "approve", short: "Let requests begin", offers: string(transfer.Awaiting), done: "is approved",
		example: "  weir transfer approve 12",
		do: func(ctx context.Context, d *desk, id int64, reason string) (transfer.Request, error) {
			return d.Approve(ctx, id, reason)
		},
	}
}

func rejecting() decision {
	return decision{
		verb: "reject", short: "End requests that wait for approval", offers: string(transfer.Awaiting), done: "is rejected",
		example: `  weir transfer reject 12 --reason "no space before Monday"`,
		do: func(ctx context.Context, d *desk, id int64, reason string) (transfer.Request, error) {
			return d.Reject(ctx, id, reason)
		},
	}
}

func ending() decision {
	return decision{
		verb: "cancel", short: "End requests; files that have arrived stay", offers: openRequests, done: "is cancelled",
		long: `Ends requests. Copies that run are broken off within a second; files that have arrived
stay where they are, and the manifest has them.`,
		example: `  weir transfer cancel 12
  weir transfer cancel 12 13 --reason "wrong site"`,
		do: func(ctx context.Context, d *desk, id int64, reason string) (transfer.Request, error) {
			return d.Cancel(ctx, id, reason)
		},
	}
}

func retrying() decision {
	return decision{
		verb: "retry", short: "Try the files of requests again that failed or were cancelled", done: "goes on",
		example: "  weir transfer retry 12",
		do: func(ctx context.Context, d *desk, id int64, reason string) (transfer.Request, error) {
			return d.Retry(ctx, id, reason)
		},
	}
}

// stands says what became of a request, and where it is, if that was not said already.
func stands(done string, at transfer.Status) string {
	switch {
	case strings.HasSuffix(done, string(at)):
		return done
	case done == ending().done && !at.Ended():
		return "is being cancelled: copies that run are broken off"
	}
	return done + ": " + string(at)
}

// ofRequest says which request an error is of, if it does not say so itself.
func ofRequest(id int64, err error) error {
	if strings.Contains(err.Error(), fmt.Sprintf("request %d ", id)) {
		return err
	}
	return fmt.Errorf("request %d: %w", id, err)
}

func decisionCommand(s streams, what decision) *cobra.Command {
	var f coordFlags
	var reason string
	c := &cobra.Command{
		Use: what.verb + " REQUEST...", Short: what.short, Long: what.long, Example: what.example,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeRequests(what.offers),
		RunE: func(c *cobra.Command, args []string) error {
			var ids []int64
			for _, arg := range args {
				id, err := requestOf(c, arg)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
			return f.with(func(d *desk) error {
				var all []transfer.Request
				for _, id := range ids {
					r, err := what.do(c.Context(), d, id, reason)
					if err != nil {
						return ofRequest(id, err)
					}
					all = append(all, r)
					if !f.json {
						_, _ = fmt.Fprintf(s.out, "request %d %s\n", r.ID, stands(what.done, r.Status))
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
