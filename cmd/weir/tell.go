package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"

	"weir/internal/redact"
	"weir/internal/say"
	"weir/internal/screen"
	"weir/report"
)

// say tells people how far a command is, unless it shall be quiet; tell, in any
// case. A lost terminal must not end what is measured, so errors are nobody's
// business.
func (s streams) say(format string, args ...any) {
	if !s.quiet {
		s.tell(format, args...)
	}
}

func (s streams) tell(format string, args ...any) { _, _ = fmt.Fprintf(s.err, format, args...) }

// tell writes a sentence for people, with what comes from elsewhere in it: as
// plain text, behind indent, in lines as wide as a terminal. A lost terminal is
// nobody's business.
func tell(to io.Writer, indent, format string, args ...any) {
	text := line(fmt.Sprintf(format, args...))
	if wide := width(to); wide > 0 {
		text = strings.Join(say.Wrap(text, max(wide-len(indent)-3, 20)), "\n"+indent+"  ")
	}
	_, _ = fmt.Fprintf(to, "%s%s\n", indent, text)
}

// look is how a text for w looks.
func look(w io.Writer) report.Options {
	return report.Options{Color: isTerminal(w) && screen.Colored(), Width: width(w)}
}

// lookOf is how rows on s look.
func lookOf(s *screen.Screen) screen.Look {
	return screen.Look{Color: s.Moves() && screen.Colored(), Blocks: s.Moves() && screen.Blocks()}
}

// width is how many columns the terminal has, 0 if it does not say.
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

// plain replaces what a terminal would obey in text that comes from elsewhere;
// line, the ends of lines, too.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Cf, r) { // Cf turns the direction of text, or hides
			return '?'
		}
		return r
	}, text)
}

// log returns the log of a service, without secrets in its texts.
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

// errorLine is an error in one line for people, without secrets.
func (s streams) errorLine(err error) string { return line(s.secrets.Text(err.Error())) }

func line(text string) string { return strings.ReplaceAll(plain(text), "\n", " ") }
