package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/run"
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
	f.add(c, "print the request as JSON; with --wait, its manifest")
	fs := c.Flags()
	fs.StringVar(&f.what.To, "to", "", "destination `SITE` of the files")
	fs.StringSliceVar(&f.what.From, "from", nil, "copy only from these `SITES` (default: all that have the files)")
	fs.StringVar(&f.what.Block, "block", "", "only the files of this `BLOCK`")
	fs.StringArrayVar(&f.what.Files, "file", nil, "only this file, by its whole `NAME` (repeatable)")
	fs.StringVar(&f.filesOf, "files-from", "", "only the files whose names are the lines of `FILE`")
	fs.StringVar(&f.mode, "mode", "", "transfer `MODE`: pull, push or third (default: whatever works)")
	fs.StringVar(&f.what.Share, "share", "", "`NAME` of the activity whose share of the links is used")
	fs.IntVar(&f.what.Priority, "priority", 0, "`N` from -10 to 10: higher is sooner, among requests of the same share")
	fs.IntVar(&f.what.Tries, "tries", 0, "let a file fail after `N` attempts (default 5)")
	parsedFlag(fs, "expires", "", "end the request after this `TIME`, as in 12h or 3d, whatever has arrived", parseTime(&f.expires, 1))
	fs.BoolVar(&f.what.Approve, "approve", false, "approve it at once, if you may")
	fs.BoolVar(&f.what.Unchecked, "unchecked", false, "also accept files without a reference checksum, and mark them")
	fs.StringVar(&f.what.Key, "key", "", "`NAME` of the request: submitted again, it is the same one")
	fs.StringVar(&f.what.Comment, "comment", "", "`TEXT` for readers of the request")
	fs.BoolVarP(&f.wait, "wait", "w", false, "wait for its end, then print the manifest")
	fs.StringVar(&f.manifest, "manifest", "", "with --wait, write the whole manifest as JSON into `FILE`")
	quietFlag(c, &s.quiet)
	return c
}

func transferModes() []transfer.Mode {
	return []transfer.Mode{transfer.Pull, transfer.Push, transfer.Third}
}

// submission checks the flags.
func (f *submitFlags) submission(dataset string) (transfer.Submission, error) {
	sub := f.what
	sub.Dataset, sub.Mode = strings.TrimSuffix(dataset, "/"), transfer.Mode(f.mode)
	switch {
	case !strings.HasPrefix(dataset, "/"):
		return sub, fmt.Errorf("names of datasets begin with a slash, such as /store/run1, not %q", dataset)
	case sub.To == "":
		return sub, errors.New("name the destination of the files: --to SITE")
	case sub.Priority < -10 || sub.Priority > 10:
		return sub, fmt.Errorf("--priority %d: use -10 to 10", sub.Priority)
	case sub.Tries < 0 || sub.Tries > 100:
		return sub, fmt.Errorf("--tries %d: use 1 to 100", sub.Tries)
	case f.manifest != "" && !f.wait:
		return sub, errors.New("--manifest needs --wait: a request has its manifest when it has ended (weir transfer manifest)")
	case f.mode != "" && !slices.Contains(transferModes(), sub.Mode):
		return sub, fmt.Errorf("--mode %s: use pull, push or third", f.mode)
	}
	if f.expires > 0 {
		sub.Expires = time.Now().Add(f.expires)
	}
	if f.filesOf == "" {
		return sub, nil
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
	w := waiting{Client: co, id: r.ID, json: f.json, manifest: f.manifest}
	return w.wait(ctx, s)
}

// waiting waits for the end of a request.
type waiting struct {
	*client.Client
	id       int64
	json     bool
	manifest string // the file to write it into; "": none

	mu   sync.Mutex
	last client.Progress
}

// wait shows the progress of the request until it ends, then its manifest. It returns an
// exit with its code unless every file arrived.
func (w *waiting) wait(ctx context.Context, s streams) error {
	ctx, cancel := s.untilSignal(ctx, false)
	defer cancel()
	to := screen.New(s.progress())
	stop := to.Animate(func(columns int) []string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return text.Progress(&w.last, columns, to.Look())
	})
	r, err := w.Follow(ctx, w.id, to.Moves(), func(p client.Progress) { w.note(p, s) })
	stop()
	if errors.Is(context.Cause(ctx), run.ErrInterrupted) {
		s.printErr("\nweir: no longer waiting: request %[1]d goes on. Wait again with: weir transfer show %[1]d --wait; "+
			"find out why it takes so long with: weir transfer explain %[1]d; end it with: weir transfer cancel %[1]d\n", w.id)
		return afterSignal(ctx, nil)
	}
	if err != nil {
		return err
	}
	if err := text.Result(ctx, w.Client, s.out, r, w.manifest, w.json); err != nil {
		return err
	}
	if r.Status != transfer.Completed {
		return exit{code: exitMissed}
	}
	return nil
}

// note keeps p for the rows and prints what changed.
func (w *waiting) note(p client.Progress, s streams) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, r := w.last, &p.Request
	w.last = p
	switch {
	case p.Err != nil && before.Err == nil:
		s.say("weir: the coordinator does not answer: still waiting (%v)\n", line(p.Err.Error()))
		return
	case p.Err == nil && before.Err != nil:
		s.say("weir: the coordinator answers again\n")
	}
	if r.Status != before.Request.Status && before.Request.ID != 0 && !r.Status.Ended() {
		s.say("request %d is %s: %s, %s\n", r.ID, r.Status, say.Plural(int(r.Count.Files), "file"), unit.Bytes(float64(r.Count.Bytes)))
	}
}
