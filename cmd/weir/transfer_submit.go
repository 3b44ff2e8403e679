package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer"
)

// submitFlags are a transfer.Submission as the command line says it.
type submitFlags struct {
	coordFlags
	what     transfer.Submission
	mode     string
	filesOf  string
	expires  string
	wait     bool
	manifest string
}

func submitCommand(s streams, signals signalSource) *cobra.Command {
	var f submitFlags
	c := &cobra.Command{
		Use:   "submit DATASET --to SITE",
		Short: "Ask for a dataset at a site",
		Long: `Asks for a dataset, or some of its files, at a site, and prints the number of the
request. Files that are there already, with the right checksum, are not copied.

With --wait it shows how far the request is, and ends with its manifest: each file,
or of many those that are missing, with their reasons. It exits with 0 only if every
file is there, and with 3 if not. Ctrl-C ends the waiting, not the request.

The same --key is the same request, however often it is submitted.`,
		Example: `  weir transfer submit /store/run1 --to C --approve --wait
  weir transfer submit /store/run1 --to C --from A,B --share production --priority 3
  weir transfer submit /store/run1 --to C --files-from list.txt --key nightly-20261122
  weir transfer submit /store/run1 --to C --approve --wait --json > manifest.json`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeDatasets,
		RunE: func(c *cobra.Command, args []string) error {
			sub, err := f.submission(args[0])
			if err != nil {
				return exit{exitUsage, fmt.Errorf("%w\nSee: %s --help", err, c.CommandPath())}
			}
			return f.with(func(d *desk) error { return f.submit(c.Context(), d, sub, s, signals) })
		},
	}
	f.add(c, "print the request as JSON; with --wait, its manifest")
	fs := c.Flags()
	fs.StringVar(&f.what.To, "to", "", "the `SITE` that is to have the files")
	fs.StringSliceVar(&f.what.From, "from", nil, "only from these `SITES` (default: all that have them)")
	fs.StringVar(&f.what.Block, "block", "", "only the files of this `BLOCK`")
	fs.StringArrayVar(&f.what.Files, "file", nil, "only this file, by its whole `NAME` (repeatable)")
	fs.StringVar(&f.filesOf, "files-from", "", "only the files whose names are the lines of `FILE`")
	fs.StringVar(&f.mode, "mode", "", "`HOW` the bytes move: pull, push or third (default: whatever works)")
	fs.StringVar(&f.what.Share, "share", "", "`NAME` of the activity whose share of the links this is")
	fs.IntVar(&f.what.Priority, "priority", 0, "`N` from -10 to 10: higher is sooner, among requests of the same share")
	fs.IntVar(&f.what.Tries, "tries", 0, "give a file up after `N` attempts (default 5)")
	fs.StringVar(&f.expires, "expires", "", "end the request after this `TIME`, as in 12h or 3d, whatever has arrived")
	fs.BoolVar(&f.what.Approve, "approve", false, "approve it at once, if you may")
	fs.BoolVar(&f.what.Unchecked, "unchecked", false, "take files whose checksum nobody can tell, too, and say so")
	fs.StringVar(&f.what.Key, "key", "", "`NAME` of the request: submitted again, it is the same one")
	fs.StringVar(&f.what.Comment, "comment", "", "`TEXT` for those who read the request")
	fs.BoolVarP(&f.wait, "wait", "w", false, "wait for its end, then print the manifest")
	fs.StringVar(&f.manifest, "manifest", "", "with --wait, write the whole manifest as JSON into `FILE`")
	quietFlag(c, &s.quiet)
	_ = c.RegisterFlagCompletionFunc("to", completeSites)     // the flags are there
	_ = c.RegisterFlagCompletionFunc("from", completeSites)   //
	_ = c.RegisterFlagCompletionFunc("mode", completeModes()) //
	return c
}

// submission checks what was typed.
func (f *submitFlags) submission(dataset string) (transfer.Submission, error) {
	sub := f.what
	sub.Dataset, sub.Mode = strings.TrimSuffix(dataset, "/"), transfer.Mode(f.mode)
	switch {
	case !strings.HasPrefix(dataset, "/"):
		return sub, fmt.Errorf("datasets have names that begin with a slash, such as /store/run1, not %q", dataset)
	case sub.To == "":
		return sub, errors.New("name the site that is to have the files: --to SITE")
	case sub.Priority < -10 || sub.Priority > 10:
		return sub, fmt.Errorf("--priority %d: use -10 to 10", sub.Priority)
	case sub.Tries < 0 || sub.Tries > 100:
		return sub, fmt.Errorf("--tries %d: use 1 to 100", sub.Tries)
	case f.manifest != "" && !f.wait:
		return sub, errors.New("--manifest needs --wait: a request has its manifest when it has ended (weir transfer manifest)")
	}
	switch sub.Mode {
	case "", transfer.Pull, transfer.Push, transfer.Third:
	default:
		return sub, fmt.Errorf("--mode %s: use pull, push or third", f.mode)
	}
	if f.expires != "" {
		d, err := unit.ParseDuration(f.expires)
		if err != nil || d <= 0 {
			return sub, fmt.Errorf("--expires %s: name a time such as 12h or 3d", f.expires)
		}
		sub.Expires = time.Now().Add(time.Duration(d))
	}
	more, err := namesIn(f.filesOf)
	if err != nil {
		return sub, fmt.Errorf("--files-from: %w", err)
	}
	sub.Files = append(sub.Files, more...)
	if f.filesOf != "" && len(more) == 0 {
		return sub, fmt.Errorf("--files-from %s: it names no file", f.filesOf)
	}
	if n := lengthOf(sub.Files); n > mostNames {
		return sub, fmt.Errorf("--files-from %s: %s have %s of names, and a request takes %s: make several, or ask for the whole dataset or a --block of it, which takes any number of files",
			line(f.filesOf), say.Plural(len(sub.Files), "file"), unit.Bytes(float64(n)), unit.Bytes(mostNames))
	}
	return sub, nil
}

// mostNames is how many bytes of names a request takes: what a coordinator reads at a
// time is 32 MiB, with what stands between them.
const mostNames = 30e6

// lengthOf is how many bytes names take in a question.
func lengthOf(names []string) (n int) {
	for _, name := range names {
		n += len(name) + 3 // quotes and a comma
	}
	return n
}

// namesIn reads the lines of a file.
func namesIn(path string) (names []string, err error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name := strings.TrimSpace(lines.Text()); name != "" {
			names = append(names, name)
		}
	}
	return names, lines.Err()
}

func (f *submitFlags) submit(ctx context.Context, d *desk, sub transfer.Submission, s streams, signals signalSource) error {
	if sub.Key == "" { // so that asking again is harmless
		sub.Key = "weir-" + rand.Text()
	}
	r, err := again(ctx, false, func() (transfer.Request, error) { return d.Submit(ctx, sub) })
	if err != nil {
		return err
	}
	if !f.wait {
		if f.json {
			return writeJSON(s.out, r)
		}
		return tellSubmitted(s, &r)
	}
	s.say("request %d: %s to %s\n", r.ID, line(r.Dataset), line(r.To))
	if r.Status == transfer.Awaiting {
		s.say("It waits for approval: weir transfer approve %d\n", r.ID)
	}
	w := waiting{desk: d, id: r.ID, json: f.json, file: f.manifest}
	return w.wait(ctx, s, signals)
}

func tellSubmitted(s streams, r *transfer.Request) error {
	_, err := fmt.Fprintf(s.out, "request %d: %s to %s: %s\n", r.ID, line(r.Dataset), line(r.To), r.Status)
	if r.Status == transfer.Awaiting {
		s.say("approve it with: weir transfer approve %d\n", r.ID)
	}
	s.say("see how far it is with: weir transfer show %d --wait\n", r.ID)
	return err
}
