package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/trial"
)

// demoFlags say what is moved.
type demoFlags struct {
	files int
	size  string
	dir   string
	json  bool
}

func demoCommand(s streams, signals signalSource) *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use:   "demo",
		Short: "Start three sites on this machine and move a dataset among them",
		Long: `Starts a coordinator and three sites, A, B and C, as processes on this machine's
loopback interface, makes a dataset at A, moves it to B, then to C from both that have
it, and prints what each took. All is ended and removed at the end.`,
		Example: "  weir transfer demo\n  weir transfer demo --files 100 --size 1MiB",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			size, err := unit.ParseSize(f.size)
			if err != nil || f.files < 1 || f.files > 100_000 {
				return exit{exitUsage, fmt.Errorf("--files %d --size %s: use 1 to 100000 files, and a size such as 16MiB", f.files, f.size)}
			}
			ctx, cancel := untilSignal(c.Context(), signals, nil, false)
			defer cancel()
			return f.run(ctx, int64(size), s)
		},
	}
	fs := c.Flags()
	fs.IntVar(&f.files, "files", 10, "`N` files")
	fs.StringVar(&f.size, "size", "16MiB", "`SIZE` of each")
	fs.StringVar(&f.dir, "dir", "", "use this existing `DIR` and leave it as it is at the end (default: a temporary one)")
	jsonFlag(c, &f.json, "print the manifests as JSON")
	quietFlag(c, &s.quiet)
	return c
}

func (f *demoFlags) run(ctx context.Context, size int64, s streams) (err error) {
	command, err := selfCommand()
	if err != nil {
		return err
	}
	s.say("starting a coordinator and the sites A, B and C on this machine\n")
	t, err := trial.Start(ctx, trial.Options{Program: command, Dir: f.dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	const dataset = "/store/demo"
	files := trial.Files(dataset, f.files, size)
	s.say("making %s of %s at A\n", say.Plural(len(files), "file"), unit.Bytes(float64(size)))
	if err := errors.Join(t.Fill("A", files), t.Add(ctx, dataset, "A")); err != nil {
		return err
	}
	var all []transfer.Manifest
	for _, to := range []string{"B", "C"} {
		s.say("moving them to %s\n", to)
		id, err := t.Submit(ctx, transfer.Submission{Dataset: dataset, To: to})
		if err != nil {
			return err
		}
		m, err := t.Wait(ctx, id)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := t.Right(to, file); err != nil {
				return err
			}
		}
		all = append(all, m)
	}
	if f.json {
		return writeJSON(s.out, map[string]any{"manifests": all})
	}
	return tellDemo(s.out, all)
}

func tellDemo(w io.Writer, all []transfer.Manifest) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "REQUEST\tTO\tFROM\tFILES\tSIZE\tTOOK\tSPEED\tSTATUS") // Flush tells
	complete := true
	for _, m := range all {
		r := &m.Request
		from := map[string]int{}
		for _, i := range m.Items {
			from[i.Source]++
		}
		took := r.Ended.Sub(r.Began)
		_, _ = fmt.Fprintf(t, "%d\t%s\t%s\t%d\t%s\t%s\t%s/s\t%s\n", r.ID, r.To, sources(from), r.Count.Done, unit.Bytes(float64(r.Count.DoneBytes)),
			unit.Seconds(took.Round(time.Millisecond).Seconds()), unit.Bytes(float64(r.Count.DoneBytes)/max(took.Seconds(), 1e-9)), r.Status)
		complete = complete && r.Status == transfer.Completed
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if !complete {
		return exit{code: exitMissed}
	}
	_, err := fmt.Fprintln(w, "each file was read again at its destination: all are as they were made")
	return err
}

// sources says how many files came from which site.
func sources(from map[string]int) string {
	text := ""
	for _, name := range []string{"A", "B", "C"} {
		if n := from[name]; n > 0 {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%s (%d)", name, n)
		}
	}
	return text
}
