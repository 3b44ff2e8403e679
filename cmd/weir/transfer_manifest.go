package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer"
)

// mostRows is how many files are shown where all are not asked for.
const mostRows = 20

func manifestCommand(s streams) *cobra.Command {
	var f coordFlags
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
			id, err := requestOf(c, args[0])
			if err != nil {
				return err
			}
			return f.with(func(d *desk) error {
				if !f.json {
					return d.manifest(c.Context(), s.out, id, all)
				}
				m, err := d.Manifest(c.Context(), id)
				if err != nil {
					return err
				}
				return writeJSON(s.out, m)
			})
		},
	}
	f.add(c, "print it as JSON, with all files")
	c.Flags().BoolVar(&all, "all", false, "list all files, however many they are")
	return c
}

// A shortlist is what is shown of files that go by, however many they are: the
// first, or of many the first that are missing.
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

// tell prints the files, and how the others are seen.
func (l *shortlist) tell(w io.Writer, request int64) error {
	shown, of := l.first, l.files
	if l.files > mostRows {
		shown, of = l.missing, l.lost
	}
	err := tellItems(w, shown)
	if more := of - len(shown); more > 0 && err == nil {
		_, err = fmt.Fprintf(w, "and %d more: weir transfer manifest %d --all\n", more, request)
	}
	return err
}

// rowsAtOnce is how many rows have common columns where all files are listed.
const rowsAtOnce = 1000

// manifest prints what a request came to: the files, or of many those that are
// missing, then the sum. Of files that are not shown none is kept.
func (d *desk) manifest(ctx context.Context, w io.Writer, id int64, all bool) error {
	var short shortlist
	var rows []transfer.Item
	m, err := d.EachItem(ctx, id, func(i transfer.Item) error {
		if !all {
			return short.add(i)
		}
		if rows = append(rows, i); len(rows) < rowsAtOnce {
			return nil
		}
		err := tellItems(w, rows)
		rows = rows[:0]
		return err
	})
	if err == nil {
		err = tellItems(w, rows)
	}
	if err == nil {
		err = short.tell(w, id)
	}
	if err != nil {
		return err
	}
	return tellSum(w, &m)
}

// tellSum prints what a request came to as a whole.
func tellSum(w io.Writer, m *transfer.Manifest) error {
	_, err := fmt.Fprintf(w, "%s\n", ended(&m.Request))
	if err == nil && m.Digest != "" {
		_, err = fmt.Fprintf(w, "sha256 of the list: %s\n", m.Digest)
	}
	return err
}

// ended is a sentence on what a request came to.
func ended(r *transfer.Request) string {
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

// tellItems prints files as a table.
func tellItems(w io.Writer, items []transfer.Item) error {
	if len(items) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "STATE\tSIZE\tADLER32\tFAILED\tFROM\tFILE") // Flush tells
	for _, i := range items {
		sum := i.Adler
		if sum == "" {
			sum = "-"
		}
		from := line(i.Source)
		if from == "" {
			from = "-"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s%s\n", i.State, unit.Bytes(float64(i.Size)), sum, i.Tries, from, line(i.Name), because(&i))
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
		text += ": " + line(i.Reason)
	}
	if wait := time.Until(i.NotBefore); i.State == transfer.Queued && wait > 0 {
		text += fmt.Sprintf(" (again in %s)", unit.Seconds(wait.Round(time.Second).Seconds()))
	}
	return text
}
