package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer"
)

// showFlags say what of a request is shown.
type showFlags struct {
	coordFlags
	wait     bool
	state    string
	attempts bool
	most     int
}

func transferShowCommand(s streams, signals signalSource) *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "show REQUEST",
		Short: "Show how far a request is, and its files",
		Long: `Shows a request and those of its files that are not at the destination yet, or with
--state those in one state. With --attempts it lists what was tried, and what
became of it; with --wait it waits for the end as weir transfer submit --wait does.`,
		Example: `  weir transfer show 12
  weir transfer show 12 --wait
  weir transfer show 12 --state failed
  weir transfer show 12 --attempts`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeRequests(""),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := requestOf(c, args[0])
			if err != nil {
				return err
			}
			if f.most < 1 {
				return exit{exitUsage, fmt.Errorf("--most %d: use 1 or more", f.most)}
			}
			return f.with(func(d *desk) error {
				if f.wait {
					w := waiting{desk: d, id: id, json: f.json}
					return w.wait(c.Context(), s, signals)
				}
				return f.show(c.Context(), d, id, s)
			})
		},
	}
	f.add(c, "print the request and its files as JSON; with --wait, its manifest")
	fs := c.Flags()
	fs.BoolVarP(&f.wait, "wait", "w", false, "wait for its end, then print the manifest")
	fs.StringVar(&f.state, "state", "", "the files in this `STATE`: queued, no source, leased, done, skipped, failed, cancelled")
	fs.BoolVar(&f.attempts, "attempts", false, "list what was tried, and what became of it")
	fs.IntVar(&f.most, "most", mostRows, "list at most `N` files or attempts")
	quietFlag(c, &s.quiet)
	_ = c.RegisterFlagCompletionFunc("state", completeWords(false, states()...)) // the flag is there
	return c
}

// states are those that files can be in.
func states() []string {
	var all []string
	for _, s := range []transfer.State{transfer.Queued, transfer.NoSource, transfer.Leased, transfer.Done, transfer.Skipped, transfer.Lost, transfer.Dropped} {
		all = append(all, string(s))
	}
	return all
}

func (f *showFlags) show(ctx context.Context, d *desk, id int64, s streams) error {
	r, err := d.Request(ctx, id)
	if err != nil {
		return err
	}
	out := requestShown{Request: r}
	if f.attempts {
		if out.Attempts, err = d.Attempts(ctx, id, 0, f.most); err == nil {
			out.Items, err = namesOf(ctx, d, id, out.Attempts)
		}
	} else {
		out.Items, err = f.items(ctx, d, id)
	}
	switch {
	case err != nil:
		return err
	case f.json:
		return writeJSON(s.out, out)
	}
	if err := tellRequest(s.out, &r); err != nil {
		return err
	}
	if f.attempts {
		return tellAttempts(s.out, &out)
	}
	return tellItems(s.out, out.Items)
}

// requestShown is what weir transfer show prints as JSON.
type requestShown struct {
	Request  transfer.Request   `json:"request"`
	Items    []transfer.Item    `json:"items,omitempty"`
	Attempts []transfer.Attempt `json:"attempts,omitempty"`
}

// namesOf reads the files of attempts, which are in their order, for their names.
func namesOf(ctx context.Context, d *desk, id int64, attempts []transfer.Attempt) (all []transfer.Item, err error) {
	known := int64(0)
	for i, a := range attempts {
		if a.Item <= known {
			continue
		}
		some, err := d.Items(ctx, id, "", a.Item-1, min(len(attempts)-i, perPage))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		known = a.Item // should it be gone
		if len(some) > 0 {
			known = some[len(some)-1].ID
		}
	}
	return all, nil
}

// items are the files in the state that was asked for, or what is not there yet:
// what has failed, moves and waits, in this order.
func (f *showFlags) items(ctx context.Context, d *desk, id int64) (all []transfer.Item, err error) {
	wanted := []transfer.State{transfer.Lost, transfer.Leased, transfer.NoSource, transfer.Queued, transfer.Dropped}
	if f.state != "" {
		wanted = []transfer.State{transfer.State(f.state)}
	} else if f.most <= perPage {
		return d.First(ctx, id, wanted, f.most)
	}
	for _, state := range wanted {
		for after := int64(0); len(all) < f.most; {
			n := min(f.most-len(all), perPage)
			some, err := d.Items(ctx, id, state, after, n)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
			if len(some) < n {
				break
			}
			after = some[n-1].ID
		}
	}
	return all, nil
}

// tellRequest prints a request for people.
func tellRequest(w io.Writer, r *transfer.Request) error {
	c := &r.Count
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, a ...any) {
		_, _ = fmt.Fprintf(t, "%s\t%s\n", name, line(fmt.Sprintf(format, a...)))
	}
	row("request", "%d: %s to %s", r.ID, r.Dataset, r.To)
	status := string(r.Status)
	if r.Reason != "" {
		status += ": " + r.Reason
	}
	row("status", "%s", status)
	files, bytes := wanted(r)
	row("files", "%d of %d at %s, %s of %s", c.Done+c.Skipped, files, r.To, unit.Bytes(float64(c.DoneBytes)), unit.Bytes(float64(bytes)))
	if c.Files > 0 {
		row("", "%s", inStates(c))
	}
	if !r.Status.Ended() && r.Rate > 0 {
		row("speed", "%s/s", unit.Bytes(r.Rate))
	}
	row("attempts", "%d", c.Attempts)
	row("made", "%s by %s", when(r.Made), r.By)
	if r.Decided != "" {
		row("decided", "by %s", r.Decided)
	}
	if !r.Ended.IsZero() {
		row("ended", "%s", when(r.Ended))
	}
	if !r.Expires.IsZero() {
		row("expires", "%s", when(r.Expires))
	}
	if len(r.From) > 0 {
		row("from", "%s", strings.Join(r.From, ", "))
	}
	if r.Comment != "" {
		row("comment", "%s", r.Comment)
	}
	return t.Flush()
}

// wanted is how much a request is about: what it asked for, until all of its files
// are written down.
func wanted(r *transfer.Request) (files, bytes int64) {
	if r.Count.Files == 0 || r.Status == transfer.Resolving {
		return r.Asked.Files, r.Asked.Bytes
	}
	return r.Count.Files, r.Count.Bytes
}

// inStates counts files in words.
func inStates(c *transfer.Counts) string {
	var parts []string
	for _, n := range []struct {
		of   int64
		what string
	}{{c.Done, "done"}, {c.Skipped, "had been there"}, {c.Leased, "moving"}, {c.Queued, "waiting"}, {c.NoSource, "without a source"}, {c.Failed, "failed"}, {c.Cancelled, "cancelled"}} {
		if n.of > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n.of, n.what))
		}
	}
	if len(parts) == 0 {
		return "none is known yet"
	}
	return strings.Join(parts, ", ")
}

func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// tellAttempts prints attempts as a table.
func tellAttempts(w io.Writer, r *requestShown) error {
	if len(r.Attempts) == 0 {
		_, err := fmt.Fprintln(w, "nothing was tried yet")
		return err
	}
	names := map[int64]string{}
	for _, i := range r.Items {
		names[i.ID] = line(i.Name)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "BEGIN\tWAY\tMODE\tMOVED\tRESUMED\tTOOK\tSPEED\tFILE: OUTCOME") // Flush tells
	for _, a := range r.Attempts {
		took := a.End.Sub(a.Begin).Seconds()
		speed := "-"
		if took > 0 && a.Moved > 0 {
			speed = unit.Bytes(float64(a.Moved)/took) + "/s"
		}
		name := names[a.Item]
		if name == "" {
			name = fmt.Sprintf("number %d", a.Item)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s -> %s\t%s\t%s\t%s\t%s\t%s\t%s: %s\n", when(a.Begin), line(a.Source), line(a.Dest), a.Mode,
			unit.Bytes(float64(a.Moved)), unit.Bytes(float64(a.Resumed)), unit.Seconds(took), speed, name, outcomeOf(&a))
	}
	return t.Flush()
}

// outcomeOf says how an attempt ended. One that was told after its lease had been
// given up brought nothing: what counts is the attempt that followed it.
func outcomeOf(o *transfer.Attempt) string {
	switch {
	case o.Late && o.Fault == "":
		return "told too late, another attempt counts"
	case o.Fault != "":
		return fmt.Sprintf("%s: %s", o.Fault, line(o.Reason))
	case o.Existed:
		return "had been there, verified"
	case o.Verified:
		return "done, verified"
	}
	return "done, not verified"
}

func transferListCommand(s streams) *cobra.Command {
	var f coordFlags
	var want transfer.Filter
	var status string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List requests, the newest first",
		Example: "  weir transfer list --open\n  weir transfer list --to C --status partial --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			want.Status = transfer.Status(status)
			if status != "" && !slices.Contains(statuses(), status) {
				return exit{exitUsage, fmt.Errorf("--status %s: use one of %s", status, strings.Join(statuses(), ", "))}
			}
			if want.Limit < 1 || want.Limit > 1000 {
				return exit{exitUsage, fmt.Errorf("--most %d: use 1 to 1000", want.Limit)}
			}
			return f.with(func(d *desk) error {
				all, err := d.Requests(c.Context(), want)
				if err != nil {
					return err
				}
				if len(all) == want.Limit {
					s.tell("weir: the newest %d are listed: there may be more (--most, up to 1000)\n", want.Limit)
				}
				return printList(s.out, f.json, "requests", all, tellRequests)
			})
		},
	}
	f.add(c, "print them as JSON")
	fs := c.Flags()
	fs.BoolVar(&want.Open, "open", false, "only those that have not ended")
	fs.StringVar(&status, "status", "", "only those of this `STATUS`")
	fs.StringVar(&want.To, "to", "", "only those to this `SITE`")
	fs.StringVar(&want.Dataset, "dataset", "", "only those of this `DATASET`")
	fs.StringVar(&want.By, "by", "", "only those of this `USER`")
	fs.IntVar(&want.Limit, "most", 100, "at most `N`")
	_ = c.RegisterFlagCompletionFunc("to", completeSites)         // the flags are there
	_ = c.RegisterFlagCompletionFunc("dataset", completeDatasets) //
	_ = c.RegisterFlagCompletionFunc("status", completeWords(false, statuses()...))
	return c
}

// statuses are those that requests can have.
func statuses() []string {
	var all []string
	for _, s := range []transfer.Status{
		transfer.Awaiting, transfer.Resolving, transfer.Running, transfer.Completed, transfer.Partial,
		transfer.Failed, transfer.Cancelled, transfer.Rejected, transfer.Expired,
	} {
		all = append(all, string(s))
	}
	return all
}

func tellRequests(w io.Writer, all []transfer.Request) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no requests")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "REQUEST\tSTATUS\tDATASET\tTO\tFILES\tSIZE\tAT THE SITE\tMADE\tBY") // Flush tells
	for _, r := range all {
		c := &r.Count
		files, bytes := wanted(&r)
		_, _ = fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", r.ID, r.Status, line(r.Dataset), line(r.To), files,
			unit.Bytes(float64(bytes)), say.Plural(int(c.Done+c.Skipped), "file"), when(r.Made), line(r.By))
	}
	return t.Flush()
}
