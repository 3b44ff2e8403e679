package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"

	"weir/internal/redact"
	"weir/internal/say"
	"weir/internal/screen"
	"weir/loadtest/engine"
	"weir/loadtest/report"
	"weir/loadtest/run"
	"weir/loadtest/run/live"
	"weir/loadtest/scenario"
)

// say prints progress, unless the command is quiet; printErr prints in any case. Write
// errors are ignored: a command survives the loss of its terminal.
func (s streams) say(format string, args ...any) { _, _ = fmt.Fprintf(s.progress(), format, args...) }

func (s streams) printErr(format string, args ...any) { _, _ = fmt.Fprintf(s.err, format, args...) }

// progress returns the writer for progress.
func (s streams) progress() io.Writer {
	if s.quiet {
		return io.Discard
	}
	return s.err
}

// working shows an activity on a terminal until Stop is called.
func (s streams) working(what string) *screen.Spinner { return screen.Spin(s.progress(), what) }

// console returns the functions with which packages show their progress.
func (s streams) console() run.Console {
	return run.Console{
		Stderr: s.err, Secrets: s.secrets, Say: s.say, Warn: s.printErr,
		Working: func(what string) (engine.Advance, func()) {
			w := s.working(what)
			return w.Advance, w.Stop
		},
	}
}

// view returns a function that makes the display of a run, which in can end.
func (s streams) view(in run.Interrupts) func(string, *scenario.Plan, run.Series) run.View {
	return func(dir string, plan *scenario.Plan, of run.Series) run.View {
		return live.New(live.Options{
			Out: s.progress(), Plan: plan, Series: of, Finish: in.Finish, Dir: dir, Stream: s.stream, Secrets: s.secrets,
		})
	}
}

// log returns the log of a service. It redacts secrets.
func (s streams) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Any().(type) {
		case string:
			a.Value = slog.StringValue(redact.Text(v))
		case error:
			a.Value = slog.StringValue(redact.Text(v.Error()))
		}
		return a
	}}))
}

// look returns the options with which a result is printed to standard output.
func (s streams) look() report.Options {
	terminal := screen.IsTerminal(s.out)
	return report.Options{
		Color: terminal && screen.Colored(), Blocks: terminal && screen.Blocks(), Width: screen.Width(s.out), Verbose: s.verbose,
	}
}

// line replaces control characters, and the ends of lines, in external text. plain keeps the ends
// of lines.
func line(text string) string { return say.Plain(text) }

func plain(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = line(l)
	}
	return strings.Join(lines, "\n")
}

// writeJSON prints v as indented JSON.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// ignoreUnread returns err unless standard output has lost its reader, which is not an error if a
// command has done its work.
func ignoreUnread(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok && path.Path == os.Stdout.Name() && errors.Is(path.Err, syscall.EPIPE) {
		return nil
	}
	return err
}

// fileText returns the text of a file without the space around it, "" for no path.
func fileText(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err
}

// codeOf returns the exit code of a command that a signal ended.
func codeOf(sig os.Signal) exitCode {
	switch sig {
	case syscall.SIGTERM:
		return exitTerminated
	case syscall.SIGHUP:
		return exitHangup
	}
	return exitInterrupt
}

// afterSignal returns err with the exit code of the signal that ended ctx, and err itself if no
// signal did. An error that only reports the end of ctx loses its text.
func afterSignal(ctx context.Context, err error) error {
	var by run.Interruption
	if !errors.As(context.Cause(ctx), &by) {
		return err
	}
	if errors.Is(err, context.Canceled) && !errors.Is(err, run.ErrInterrupted) {
		err = nil
	}
	return exit{codeOf(by.Signal), err}
}

// serviceEnd returns err, but nil if err only reports that a signal ended ctx, which is the normal
// end of a service.
func serviceEnd(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), run.ErrInterrupted) && (errors.Is(err, context.Canceled) || errors.Is(err, run.ErrInterrupted)) {
		return nil
	}
	return err
}

// untilSignal returns ctx until the first signal or, if whileStdin is set, the end of
// standard input.
func (s streams) untilSignal(ctx context.Context, whileStdin bool) (context.Context, context.CancelFunc) {
	caught := s.signals.listen()
	ctx, end := context.WithCancelCause(ctx)
	cancel := func() { end(nil) }
	if whileStdin {
		go func() {
			_, _ = io.Copy(io.Discard, s.in) // only its end matters
			cancel()
		}()
	}
	go func() {
		select {
		case by := <-caught:
			end(run.Interruption{Signal: by})
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// interruptible returns the ways to end a run. The first three signals trigger them until release
// is called.
func (s streams) interruptible(ctx context.Context, say io.Writer, effects run.Effects) (in run.Interrupts, release func()) {
	return run.Catch(ctx, s.signals.listen(), say, effects)
}
