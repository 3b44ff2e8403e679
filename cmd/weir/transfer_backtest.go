package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/schedule"
)

func backtestCommand(s streams) *cobra.Command {
	var f coordFlags
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
			return f.with(func(d *desk) error {
				tries, err := history(c.Context(), d)
				if err != nil {
					return err
				}
				v := schedule.Backtest(tries)
				if f.json {
					return writeJSON(s.out, v)
				}
				return tellVerdict(s.out, &v)
			})
		},
	}
	f.add(c, "print it as JSON")
	return c
}

// mostTries is how many attempts are looked at.
const mostTries = 1_000_000

func history(ctx context.Context, d *desk) (all []transfer.Try, err error) {
	for after := int64(0); len(all) < mostTries; {
		some, next, err := d.Tries(ctx, after, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if next == 0 {
			break
		}
		after = next
	}
	return all, nil
}

func tellVerdict(w io.Writer, v *schedule.Verdict) error {
	if v.Used == 0 {
		_, err := fmt.Fprintf(w, "%s: none that moved bytes, so there is nothing to predict yet\n", say.Plural(v.Tries, "recorded attempt"))
		return err
	}
	_, _ = fmt.Fprintf(w, "%s, %d of them good copies that moved bytes; %s from two sources at about the same time\n", say.Plural(v.Tries, "recorded attempt"), v.Used, say.Plural(v.Pairs, "pair"))
	if v.Unsampled > 0 {
		_, _ = fmt.Fprintf(w, "of %s the source's host was not seen: the regression says nothing of these\n", say.Plural(v.Unsampled, "copy"))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "PREDICTOR\tCOPIES\tPREDICTED/TOOK 10%\t50%\t90%\tMEDIAN ERROR\tFASTER SOURCE NAMED\tWHAT") // Flush tells
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
		_, _ = fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, p.Copies, q[0], q[1], q[2], off, faster, p.What)
	}
	return t.Flush()
}
