package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"weir/internal/redact"
	"weir/internal/say"
	"weir/internal/screen"
	"weir/report"
)

// say prints the progress of a command, unless it is quiet; tell prints in any case.
// Write errors are ignored: a command survives the loss of its terminal.
func (s streams) say(format string, args ...any) {
	if !s.quiet {
		s.tell(format, args...)
	}
}

func (s streams) tell(format string, args ...any) { _, _ = fmt.Fprintf(s.err, format, args...) }

// progress returns where progress is shown.
func (s streams) progress() io.Writer {
	if s.quiet {
		return io.Discard
	}
	return s.err
}

// tell prints a sentence as plain text behind indent, in lines as wide as the
// terminal. Write errors are ignored: a command survives the loss of its terminal.
func tell(to io.Writer, indent, format string, args ...any) {
	text := line(fmt.Sprintf(format, args...))
	if wide := width(to); wide > 0 {
		text = strings.Join(say.Wrap(text, max(wide-len(indent)-3, 20)), "\n"+indent+"  ")
	}
	_, _ = fmt.Fprintf(to, "%s%s\n", indent, text)
}

// look returns how a result is printed to standard output.
func (s streams) look() report.Options {
	terminal := isTerminal(s.out)
	return report.Options{Color: terminal && screen.Colored(), Blocks: terminal && screen.Blocks(), Width: width(s.out), Verbose: s.verbose}
}

// lookOf returns the style of rows on s.
func lookOf(s *screen.Screen) screen.Look {
	return screen.Look{Color: s.Moves() && screen.Colored(), Blocks: s.Moves() && screen.Blocks()}
}

// width returns the columns of the terminal, 0 if w is none or does not say.
func width(w io.Writer) int {
	f, ok := screen.Under(w).(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

func isTerminal(w io.Writer) bool {
	f, ok := screen.Under(w).(*os.File)
	return ok && screen.Obeys(f)
}

// plain replaces what a terminal would obey in text from elsewhere, but for the ends
// of lines; line replaces these as well.
func plain(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = say.Plain(l)
	}
	return strings.Join(lines, "\n")
}

func line(text string) string { return say.Plain(text) }

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

// errorLine returns an error on one line, without secrets.
func (s streams) errorLine(err error) string { return line(s.secrets.Text(err.Error())) }

// A work shows the progress of something slow on a terminal, once it has taken a
// second. Elsewhere, and with --quiet, it shows nothing.
type work struct {
	mu    sync.Mutex
	told  preparation
	begun time.Time
	still func()
	look  screen.Look
}

// soon is how long nothing is shown.
const soon = time.Second

// working shows what is being done until done is called:
//
//	defer s.working("reading " + name).done()
func (s streams) working(what string) *work {
	w := &work{told: preparation{what: line(what), since: time.Now()}, begun: time.Now(), still: func() {}}
	if to := screen.New(s.err); !s.quiet {
		w.look = lookOf(to)
		w.still = to.Animate(w.draw)
	}
	return w
}

// advance notes the progress; total is 0 while it is not known. It may be called by
// several goroutines at once.
func (w *work) advance(what string, done, total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told.advance(line(what), done, total)
}

// done removes the progress.
func (w *work) done() { w.still() }

func (w *work) draw(columns int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	gone := now.Sub(w.begun)
	if gone < soon {
		return nil
	}
	p := w.told.progress(now)
	if p.Share < 0 {
		p.Detail = fmt.Sprintf(", %s so far", screen.Clock(gone))
	}
	return []string{p.Row(columns-3, w.look)}
}

// A preparation is the progress of something that comes before the load, or after it.
type preparation struct {
	what        string
	done, total int
	since       time.Time
}

// advance notes the progress. Numbers of several goroutines may arrive out of order.
func (m *preparation) advance(what string, done, total int) {
	if m.what != what || m.total != total && total > 0 {
		*m = preparation{what: what, total: total, since: time.Now()}
	}
	m.done = max(m.done, done)
}

// progress returns the row that shows it. The time left is extrapolated.
func (m *preparation) progress(now time.Time) screen.Progress {
	p := screen.Progress{Where: m.what, Share: screen.Unknown, Left: screen.Unknown, Now: now}
	if m.done > 0 || m.total > 0 {
		p.Where += fmt.Sprintf(": %d", m.done)
	}
	if m.total > 0 {
		p.Where += fmt.Sprintf(" of %d", m.total)
		p.Share = float64(m.done) / float64(m.total)
		if gone := now.Sub(m.since); gone > 2*time.Second && m.done > 0 {
			p.Left = time.Duration(float64(gone) * float64(m.total-m.done) / float64(m.done))
		}
	}
	return p
}
