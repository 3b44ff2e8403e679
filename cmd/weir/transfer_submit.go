package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
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
)

// submitFlags are a transfer.Submission as the command line says it.
type submitFlags struct {
	clientFlags
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
				return usageError(c, err)
			}
			return f.call(func(co *client.Client) error { return f.submit(c.Context(), co, sub, s, signals) })
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
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name := strings.TrimSpace(lines.Text()); name != "" {
			names = append(names, name)
		}
	}
	return names, lines.Err()
}

func (f *submitFlags) submit(ctx context.Context, co *client.Client, sub transfer.Submission, s streams, signals signalSource) error {
	if sub.Key == "" { // so that asking again is harmless
		sub.Key = "weir-" + rand.Text()
	}
	r, err := client.Retry(ctx, false, func() (transfer.Request, error) { return co.Submit(ctx, sub) })
	if err != nil {
		return err
	}
	if !f.wait {
		if f.json {
			return writeJSON(s.out, r)
		}
		return printSubmitted(s, &r)
	}
	s.say("request %d: %s to %s\n", r.ID, line(r.Dataset), line(r.To))
	if r.Status == transfer.Awaiting {
		s.say("It waits for approval: weir transfer approve %d\n", r.ID)
	}
	w := waiting{Client: co, id: r.ID, json: f.json, manifest: f.manifest}
	return w.wait(ctx, s, signals)
}

func printSubmitted(s streams, r *transfer.Request) error {
	_, err := fmt.Fprintf(s.out, "request %d: %s to %s: %s\n", r.ID, line(r.Dataset), line(r.To), r.Status)
	if r.Status == transfer.Awaiting {
		s.say("approve it with: weir transfer approve %d\n", r.ID)
	}
	s.say("see how far it is with: weir transfer show %d --wait\n", r.ID)
	return err
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

// wait shows the progress of the request until it ends, then its manifest. It returns
// an exit with its code unless every file arrived.
func (w *waiting) wait(ctx context.Context, s streams, signals signalSource) error {
	ctx, cancel := untilSignal(ctx, signals, nil, false)
	defer cancel()
	r, err := w.follow(ctx, s)
	if errors.Is(context.Cause(ctx), run.ErrInterrupted) {
		s.tell("\nweir: no longer waiting: request %d goes on. Wait again with: weir transfer show %d --wait; ask why it takes so long with: weir transfer explain %d; end it with: weir transfer cancel %d\n", w.id, w.id, w.id, w.id)
		return afterSignal(ctx, nil)
	}
	if err != nil {
		return err
	}
	if err := w.result(ctx, s, r); err != nil {
		return err
	}
	if r.Status != transfer.Completed {
		return exit{code: exitMissed}
	}
	return nil
}

func (w *waiting) follow(ctx context.Context, s streams) (transfer.Request, error) {
	to := screen.New(s.err)
	moves := !s.quiet && to.Moves()
	if moves {
		look := lookOf(to)
		defer to.Animate(func(columns int) []string { return w.rows(columns, look) })()
	}
	return w.Follow(ctx, w.id, moves, func(p client.Progress) { w.note(p, s) })
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

// rows show the progress on a terminal.
func (w *waiting) rows(columns int, look screen.Look) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, c := &w.last.Request, &w.last.Request.Count
	if r.ID == 0 {
		return nil
	}
	p := screen.Progress{
		Where: fmt.Sprintf("request %d: %s", r.ID, r.Status), Share: screen.Unknown, Left: screen.Unknown, Now: time.Now(),
	}
	if c.Bytes > 0 {
		p.Share = float64(w.last.Bytes) / float64(c.Bytes)
	} else if c.Files > 0 {
		p.Share = float64(c.Done+c.Skipped) / float64(c.Files)
	}
	if w.last.Speed > 0 {
		p.Left = time.Duration(float64(c.Bytes-w.last.Bytes) / w.last.Speed * float64(time.Second))
	}
	text := fmt.Sprintf(" %d of %s, %s of %s, %s/s; %d moving, %d waiting", c.Done+c.Skipped, say.Plural(int(c.Files), "file"),
		unit.Bytes(float64(w.last.Bytes)), unit.Bytes(float64(c.Bytes)), unit.Bytes(w.last.Speed), c.Leased, c.Queued)
	for _, n := range []struct {
		of   int64
		what string
	}{{c.NoSource, "without a source"}, {c.Failed, "failed"}, {c.Cancelled, "cancelled"}} {
		if n.of > 0 {
			text += fmt.Sprintf(", %d %s", n.of, n.what)
		}
	}
	if w.last.Err != nil {
		text += " (the coordinator does not answer)"
	}
	return []string{p.Row(columns, look), text[:min(len(text), columns)]}
}

// result prints the result of the request and writes its manifest into a file if that
// was asked for. However many files it has, only those that are shown are in memory.
func (w *waiting) result(ctx context.Context, s streams, r transfer.Request) (err error) {
	var short shortlist
	anew := func() func(transfer.Item) error {
		short = shortlist{}
		return short.add
	}
	var m transfer.Manifest
	switch {
	case w.manifest != "":
		if m, err = w.SaveManifest(ctx, w.manifest, w.id, anew); err != nil {
			err = fmt.Errorf("--manifest: %w", err)
		}
	case !w.json:
		m, err = client.Retry(ctx, true, func() (transfer.Manifest, error) { return w.EachItem(ctx, w.id, anew()) })
	}
	if err == nil && w.json {
		return streamManifest(ctx, w.Client, s.out, w.id, true)
	}
	if err == nil {
		err = short.print(s.out, w.id)
	}
	if err != nil {
		return err
	}
	m.Request = r
	return printSum(s.out, &m)
}
