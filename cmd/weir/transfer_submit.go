package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/flagfile"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/run"
	"weir/transfer"
	"weir/transfer/client"
	"weir/transfer/text"
)

// submitFlags are the flags of a transfer.Submission.
type submitFlags struct {
	clientFlags
	what     transfer.Submission
	mode     string
	filesOf  string
	expires  time.Duration
	wait     bool
	manifest string
}

func submitCommand(s streams) *cobra.Command {
	var f submitFlags
	c := command("submit DATASET --to SITE", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
		sub, err := f.submission(args[0])
		if err != nil {
			return usageError(c, err)
		}
		return f.call(func(co *client.Client) error { return f.submit(c.Context(), co, sub, s) })
	})
	f.add(c)
	flagVars{
		"to": &f.what.To, "from": commas{&f.what.From}, "block": &f.what.Block, "file": &f.what.Files, "files-from": &f.filesOf, "mode": &f.mode,
		"share": &f.what.Share, "priority": &f.what.Priority, "tries": &f.what.Tries, "expires": parseTime(&f.expires, 1),
		"approve": &f.what.Approve, "unchecked": &f.what.Unchecked, "key": &f.what.Key, "comment": &f.what.Comment, "wait/w": &f.wait,
		"manifest": &f.manifest, "json": &f.json, "quiet/q": &s.quiet,
	}.add(c)
	return c
}

// submission checks the flags.
func (f *submitFlags) submission(arg string) (sub transfer.Submission, err error) {
	sub = f.what
	sub.Mode = transfer.Mode(f.mode)
	if f.expires > 0 {
		sub.Expires = time.Now().Add(f.expires)
	}
	sub.Dataset, err = datasetName(arg)
	err = cmp.Or(err,
		flagfile.If(sub.To == "", "", "name the destination of the files: --to SITE"),
		flagfile.If(f.manifest != "" && !f.wait, "",
			"--manifest needs --wait: a request has its manifest when it has ended (weir transfer manifest)"),
		sub.Check())
	if err != nil || f.filesOf == "" {
		return sub, err
	}
	more, err := namesIn(f.filesOf)
	switch {
	case err != nil:
		return sub, fmt.Errorf("--files-from: %w", err)
	case len(more) == 0:
		return sub, fmt.Errorf("--files-from %s: no name is in it", f.filesOf)
	}
	sub.Files = append(sub.Files, more...)
	length := 0
	for _, name := range sub.Files {
		length += len(name) + 3 // quotes and a comma
	}
	const maxNames = 30e6 // a coordinator reads 32 MiB at a time
	if length > maxNames {
		return sub, fmt.Errorf("--files-from %s: the names of %s have %s, and a request takes %s: submit several, "+
			"or request the whole dataset or a --block of it, which takes any number of files",
			line(f.filesOf), say.Plural(len(sub.Files), "file"), unit.Bytes(float64(length)), unit.Bytes(maxNames))
	}
	return sub, nil
}

// namesIn returns the lines of a file that are not blank.
func namesIn(path string) (names []string, err error) {
	text, err := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimSpace(line); name != "" {
			names = append(names, name)
		}
	}
	return names, err
}

// submit sends the submission and, with --wait, waits for the end of the request.
func (f *submitFlags) submit(ctx context.Context, co *client.Client, sub transfer.Submission, s streams) error {
	if sub.Key == "" { // so that it can be sent again
		sub.Key = "weir-" + rand.Text()
	}
	r, err := client.Retry(ctx, false, func() (transfer.Request, error) { return co.Submit(ctx, sub) })
	if err != nil {
		return err
	}
	what := fmt.Sprintf("request %d: %s to %s", r.ID, line(r.Dataset), line(r.To))
	if f.wait {
		s.say("%s\n", what)
	} else if f.json {
		return writeJSON(s.out, r)
	} else {
		_, err = fmt.Fprintf(s.out, "%s: %s\n", what, r.Status)
	}
	if r.Status == transfer.Awaiting {
		s.say("approve it with: weir transfer approve %d\n", r.ID)
	}
	if !f.wait {
		s.say("show its progress with: weir transfer show %d --wait\n", r.ID)
		return err
	}
	return follow(ctx, co, r.ID, f.manifest, f.json, s)
}

// follow shows the progress of a request until it ends, then its manifest, which it also writes into a file if path names one. It
// returns an exit with its code unless every file arrived.
func follow(ctx context.Context, co *client.Client, id int64, path string, asJSON bool, s streams) error {
	ctx, cancel := s.untilSignal(ctx, false)
	defer cancel()
	r, err := text.Follow(ctx, co, id, s.progress())
	if errors.Is(context.Cause(ctx), run.ErrInterrupted) {
		s.printErr("\nweir: no longer waiting: request %[1]d goes on. Wait again with: weir transfer show %[1]d --wait; "+
			"find out why it takes so long with: weir transfer explain %[1]d; end it with: weir transfer cancel %[1]d\n", id)
		return afterSignal(ctx, nil)
	}
	if err == nil {
		err = text.Result(ctx, co, s.out, r, path, asJSON)
	}
	return missed(r, err)
}

// missed returns err, or an exit with its code if not every file of a request arrived.
func missed(r transfer.Request, err error) error {
	if err == nil && r.Status != transfer.Completed {
		return exit{code: exitMissed}
	}
	return err
}
