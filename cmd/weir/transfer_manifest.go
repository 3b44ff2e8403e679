package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/client"
)

// printManifest prints a manifest as JSON while it is read: it is in memory at no
// time. What has been printed cannot be taken back: one that breaks off is not
// asked for again.
func (d *desk) printManifest(ctx context.Context, w io.Writer, id int64, wasThere bool) error {
	out := bufio.NewWriter(w)
	_, err := again(ctx, wasThere, func() (m transfer.Manifest, err error) {
		m, err = d.WriteManifest(ctx, id, out, func(transfer.Item) error { return nil })
		if errors.Is(err, client.ErrCut) {
			err = fmt.Errorf("what was printed is not whole: %s: have it printed once more with: weir transfer manifest %d --json", err.Error(), id)
		}
		return m, err
	})
	return errors.Join(err, out.Flush())
}

// keepManifest writes a manifest into a file, which is there only when all of it
// is, and calls f for each of its files.
func (d *desk) keepManifest(ctx context.Context, path string, id int64, f func() func(transfer.Item) error) (m transfer.Manifest, err error) {
	return again(ctx, true, func() (m transfer.Manifest, err error) {
		err = writeWhole(path, func(to io.Writer) (err error) {
			m, err = d.WriteManifest(ctx, id, to, f())
			return err
		})
		return m, err
	})
}

// writeWhole has a file written under a temporary name, which becomes its own when all
// went well. What is no file, such as a pipe, is written to as it is.
func writeWhole(path string, write func(io.Writer) error) (err error) {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at // a link stays one
	}
	draft := fmt.Sprintf("%s.%d.part", path, os.Getpid())
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		draft = path
	}
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666) //nolint:gosec // as the user's umask has it
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 64<<10)
	err = write(out)
	if err == nil {
		err = out.Flush()
	}
	if err == nil && draft != path {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if draft == path {
		return err
	}
	if err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		_ = os.Remove(draft)
	}
	return err
}

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
				return d.printManifest(c.Context(), s.out, id, false)
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
