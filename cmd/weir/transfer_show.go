package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/client"
)

// showFlags say what of a request is shown.
type showFlags struct {
	clientFlags
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
			ids, err := requestIDs(c, args[0])
			if err != nil {
				return err
			}
			if f.most < 1 {
				return exit{exitUsage, fmt.Errorf("--most %d: use 1 or more", f.most)}
			}
			if f.wait {
				return f.call(func(co *client.Client) error {
					w := waiting{Client: co, id: ids[0], json: f.json}
					return w.wait(c.Context(), s, signals)
				})
			}
			return ask(&f.clientFlags, s, func(co *client.Client) (requestShown, error) { return f.find(c.Context(), co, ids[0]) }, printShown)
		},
	}
	f.add(c, "print the request and its files as JSON; with --wait, its manifest")
	fs := c.Flags()
	fs.BoolVarP(&f.wait, "wait", "w", false, "wait for its end, then print the manifest")
	fs.StringVar(&f.state, "state", "", "the files in this `STATE`: queued, no source, leased, done, skipped, failed, cancelled")
	fs.BoolVar(&f.attempts, "attempts", false, "list what was tried, and what became of it")
	fs.IntVar(&f.most, "most", mostRows, "list at most `N` files or attempts")
	quietFlag(c, &s.quiet)
	_ = c.RegisterFlagCompletionFunc("state", completeWords(false, textsOf(itemStates())...)) // the flag is there
	return c
}

// itemStates are all states of files.
func itemStates() []transfer.State {
	return []transfer.State{transfer.Queued, transfer.NoSource, transfer.Leased, transfer.Done, transfer.Skipped, transfer.FileFailed, transfer.FileCancelled}
}

// unfinished are the states of files that are not at the destination, in the order in
// which they are shown.
func unfinished() []transfer.State {
	return []transfer.State{transfer.FileFailed, transfer.Leased, transfer.NoSource, transfer.Queued, transfer.FileCancelled}
}

// requestStatuses are all statuses of requests.
func requestStatuses() []transfer.Status {
	return []transfer.Status{
		transfer.Awaiting, transfer.Resolving, transfer.Running, transfer.Completed, transfer.Partial,
		transfer.Failed, transfer.Cancelled, transfer.Rejected, transfer.Expired,
	}
}

// textsOf are the texts of constants.
func textsOf[T ~string](all []T) (texts []string) {
	for _, one := range all {
		texts = append(texts, string(one))
	}
	return texts
}

// requestShown is what weir transfer show prints.
type requestShown struct {
	Request  transfer.Request   `json:"request"`
	Items    []transfer.Item    `json:"items,omitempty"`
	Attempts []transfer.Attempt `json:"attempts,omitempty"`

	asked bool // for the attempts
}

func (f *showFlags) find(ctx context.Context, co *client.Client, id int64) (out requestShown, err error) {
	if out.Request, err = co.Request(ctx, id); err != nil {
		return out, err
	}
	if out.asked = f.attempts; f.attempts {
		if out.Attempts, err = co.Attempts(ctx, id, 0, f.most); err == nil {
			out.Items, err = co.ItemsOf(ctx, id, out.Attempts)
		}
		return out, err
	}
	states := unfinished()
	if f.state != "" {
		states = []transfer.State{transfer.State(f.state)}
	}
	out.Items, err = co.ItemsIn(ctx, id, states, f.most)
	return out, err
}

func printShown(w io.Writer, r requestShown) error {
	if err := printRequest(w, &r.Request); err != nil {
		return err
	}
	if r.asked {
		return printAttempts(w, &r)
	}
	return printItems(w, r.Items)
}

// printRequest prints a request with all that is known of it.
func printRequest(w io.Writer, r *transfer.Request) error {
	c := &r.Count
	t := newTable(w)
	row := func(name, format string, a ...any) { t.row(name, fmt.Sprintf(format, a...)) }
	row("request", "%d: %s to %s", r.ID, r.Dataset, r.To)
	status := string(r.Status)
	if r.Reason != "" {
		status += ": " + r.Reason
	}
	row("status", "%s", status)
	files, bytes := requested(r)
	row("files", "%d of %d at %s, %s of %s", c.Done+c.Skipped, files, r.To, unit.Bytes(float64(c.DoneBytes)), unit.Bytes(float64(bytes)))
	if c.Files > 0 {
		row("", "%s", stateCounts(c))
	}
	if !r.Status.Ended() && r.Rate > 0 {
		row("speed", "%s/s", unit.Bytes(r.Rate))
	}
	row("attempts", "%d", c.Attempts)
	row("made", "%s by %s", localTime(r.Made), r.By)
	if r.Decided != "" {
		row("decided", "by %s", r.Decided)
	}
	if !r.Ended.IsZero() {
		row("ended", "%s", localTime(r.Ended))
	}
	if !r.Expires.IsZero() {
		row("expires", "%s", localTime(r.Expires))
	}
	if len(r.From) > 0 {
		row("from", "%s", strings.Join(r.From, ", "))
	}
	if r.Comment != "" {
		row("comment", "%s", r.Comment)
	}
	return t.Flush()
}

// requested is how much a request is about: what it asked for, until the coordinator
// has resolved all of its files.
func requested(r *transfer.Request) (files, bytes int64) {
	if r.Count.Files == 0 || r.Status == transfer.Resolving {
		return r.Asked.Files, r.Asked.Bytes
	}
	return r.Count.Files, r.Count.Bytes
}

// stateCounts says how many files are in which state.
func stateCounts(c *transfer.Counts) string {
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

// printAttempts prints attempts as a table.
func printAttempts(w io.Writer, r *requestShown) error {
	if len(r.Attempts) == 0 {
		_, err := fmt.Fprintln(w, "nothing was tried yet")
		return err
	}
	names := map[int64]string{}
	for _, i := range r.Items {
		names[i.ID] = i.Name
	}
	t := newTable(w, "BEGIN", "WAY", "MODE", "MOVED", "RESUMED", "TOOK", "SPEED", "FILE: OUTCOME")
	for _, a := range r.Attempts {
		took := a.End.Sub(a.Begin).Seconds()
		speed := "-"
		if took > 0 && a.Moved > 0 {
			speed = unit.Bytes(float64(a.Moved)/took) + "/s"
		}
		name := cmp.Or(names[a.Item], fmt.Sprintf("number %d", a.Item))
		t.row(localTime(a.Begin), a.Source+" -> "+a.Dest, a.Mode, unit.Bytes(float64(a.Moved)), unit.Bytes(float64(a.Resumed)),
			unit.Seconds(took), speed, name+": "+outcomeOf(&a))
	}
	return t.Flush()
}

// outcomeOf says how an attempt ended. One that was reported after its lease had
// expired does not count: the attempt that followed it does.
func outcomeOf(o *transfer.Attempt) string {
	switch {
	case o.Late && o.Fault == "":
		return "told too late, another attempt counts"
	case o.Fault != "":
		return fmt.Sprintf("%s: %s", o.Fault, o.Reason)
	case o.Existed:
		return "had been there, verified"
	case o.Verified:
		return "done, verified"
	}
	return "done, not verified"
}

func transferListCommand(s streams) *cobra.Command {
	var f clientFlags
	var want transfer.Filter
	var status string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List requests, the newest first",
		Example: "  weir transfer list --open\n  weir transfer list --to C --status partial --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			want.Status = transfer.Status(status)
			if all := requestStatuses(); status != "" && !slices.Contains(all, want.Status) {
				return exit{exitUsage, fmt.Errorf("--status %s: use one of %s", status, strings.Join(textsOf(all), ", "))}
			}
			if want.Limit < 1 || want.Limit > 1000 {
				return exit{exitUsage, fmt.Errorf("--most %d: use 1 to 1000", want.Limit)}
			}
			return askList(&f, s, "requests", func(co *client.Client) ([]transfer.Request, error) {
				all, err := co.Requests(c.Context(), want)
				if err == nil && len(all) == want.Limit {
					s.tell("weir: the newest %d are listed: there may be more (--most, up to 1000)\n", want.Limit)
				}
				return all, err
			}, printRequests)
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
	_ = c.RegisterFlagCompletionFunc("status", completeWords(false, textsOf(requestStatuses())...))
	return c
}

func printRequests(w io.Writer, all []transfer.Request) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no requests")
		return err
	}
	t := newTable(w, "REQUEST", "STATUS", "DATASET", "TO", "FILES", "SIZE", "AT THE SITE", "MADE", "BY")
	for _, r := range all {
		files, bytes := requested(&r)
		t.row(r.ID, r.Status, r.Dataset, r.To, files, unit.Bytes(float64(bytes)),
			say.Plural(int(r.Count.Done+r.Count.Skipped), "file"), localTime(r.Made), r.By)
	}
	return t.Flush()
}
