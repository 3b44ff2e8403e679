package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/client"
)

// streamManifest prints a manifest as JSON while it is read: it is never in memory as a
// whole. After a lost connection it is not repeated: part of it is printed already.
func streamManifest(ctx context.Context, co *client.Client, w io.Writer, id int64, reached bool) error {
	out := bufio.NewWriter(w)
	_, err := client.Retry(ctx, reached, func() (m transfer.Manifest, err error) {
		m, err = co.WriteManifest(ctx, id, out, func(transfer.Item) error { return nil })
		if errors.Is(err, client.ErrCut) {
			err = fmt.Errorf("what was printed is not whole: %s: have it printed once more with: weir transfer manifest %d --json", err.Error(), id)
		}
		return m, err
	})
	return errors.Join(err, out.Flush())
}

// mostRows is how many files are shown unless all are asked for.
const mostRows = 20

func manifestCommand(s streams) *cobra.Command {
	var f clientFlags
	var all bool
	c := &cobra.Command{
		Use:   "manifest REQUEST",
		Short: "List what a request came to, file by file",
		Long: `Lists the files of a request with their states, sizes and checksums, as read back at
the destination, and of those that are missing the reasons. The digest is that of
the sorted list, so that two manifests can be told apart. Of many files only those
that did not arrive are listed, unless --all is given; --json has them all.`,
		Example: "  weir transfer manifest 12\n  weir transfer manifest 12 --json > manifest.json",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: completeRequests(""),
		RunE: func(c *cobra.Command, args []string) error {
			ids, err := requestIDs(c, args[0])
			if err != nil {
				return err
			}
			return f.call(func(co *client.Client) error {
				if f.json {
					return streamManifest(c.Context(), co, s.out, ids[0], false)
				}
				return printManifest(c.Context(), co, s.out, ids[0], all)
			})
		},
	}
	f.add(c, "print it as JSON, with all files")
	c.Flags().BoolVar(&all, "all", false, "list all files, however many they are")
	return c
}

// A shortlist keeps the files of a stream that are shown: the first ones, or of many
// the first of those that did not arrive.
type shortlist struct {
	first, missing []transfer.Item
	files, lost    int
}

func (l *shortlist) add(i transfer.Item) error {
	if l.files++; l.files <= mostRows {
		l.first = append(l.first, i)
	}
	if i.State != transfer.Done && i.State != transfer.Skipped {
		if l.lost++; l.lost <= mostRows {
			l.missing = append(l.missing, i)
		}
	}
	return nil
}

// print prints the files, and how to see the others.
func (l *shortlist) print(w io.Writer, request int64) error {
	shown, of := l.first, l.files
	if l.files > mostRows {
		shown, of = l.missing, l.lost
	}
	err := printItems(w, shown)
	if more := of - len(shown); more > 0 && err == nil {
		_, err = fmt.Fprintf(w, "and %d more: weir transfer manifest %d --all\n", more, request)
	}
	return err
}

// rowsAtOnce is how many rows have common columns where all files are listed.
const rowsAtOnce = 1000

// printManifest prints the result of a request: its files, or of many those that did
// not arrive, then the totals.
func printManifest(ctx context.Context, co *client.Client, w io.Writer, id int64, all bool) error {
	var short shortlist
	var rows []transfer.Item
	m, err := co.EachItem(ctx, id, func(i transfer.Item) error {
		if !all {
			return short.add(i)
		}
		if rows = append(rows, i); len(rows) < rowsAtOnce {
			return nil
		}
		err := printItems(w, rows)
		rows = rows[:0]
		return err
	})
	if err == nil {
		err = printItems(w, rows)
	}
	if err == nil {
		err = short.print(w, id)
	}
	if err != nil {
		return err
	}
	return printSum(w, &m)
}

// printSum prints the totals of a request.
func printSum(w io.Writer, m *transfer.Manifest) error {
	_, err := fmt.Fprintf(w, "%s\n", requestSummary(&m.Request))
	if err == nil && m.Digest != "" {
		_, err = fmt.Fprintf(w, "sha256 of the list: %s\n", m.Digest)
	}
	return err
}

// requestSummary is a sentence on the result of a request.
func requestSummary(r *transfer.Request) string {
	c := &r.Count
	text := fmt.Sprintf("request %d is %s: %d of %s, %s, at %s", r.ID, r.Status, c.Done+c.Skipped, say.Plural(int(c.Files), "file"), unit.Bytes(float64(c.DoneBytes)), line(r.To))
	if c.Skipped > 0 {
		text += fmt.Sprintf(" (%d had been there)", c.Skipped)
	}
	if took := r.Ended.Sub(r.Began); !r.Began.IsZero() && !r.Ended.IsZero() && took > 0 {
		text += fmt.Sprintf(", in %s", unit.Seconds(took.Seconds()))
		if c.Done > 0 && c.Skipped == 0 {
			text += fmt.Sprintf(", %s/s", unit.Bytes(float64(c.DoneBytes)/took.Seconds()))
		}
	}
	if r.Reason != "" {
		text += ": " + line(r.Reason)
	}
	return text
}

// printItems prints files as a table.
func printItems(w io.Writer, items []transfer.Item) error {
	if len(items) == 0 {
		return nil
	}
	t := newTable(w, "STATE", "SIZE", "ADLER32", "FAILED ATTEMPTS", "FROM", "FILE")
	for _, i := range items {
		t.row(i.State, unit.Bytes(float64(i.Size)), orDash(i.Adler), i.Tries, orDash(i.Source), i.Name+because(&i))
	}
	return t.Flush()
}

// because is why a file is not there, or does not move.
func because(i *transfer.Item) string {
	text := ""
	if i.Stage != "" && i.State == transfer.Leased {
		text = fmt.Sprintf(": %s, %s so far", i.Stage, unit.Bytes(float64(i.Moved)))
	}
	if i.Reason != "" && i.State != transfer.Done {
		text += ": " + i.Reason
	}
	if wait := time.Until(i.NotBefore); i.State == transfer.Queued && wait > 0 {
		text += fmt.Sprintf(" (again in %s)", unit.Seconds(wait.Round(time.Second).Seconds()))
	}
	return text
}
