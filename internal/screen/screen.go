// Package screen shows the progress of a command: permanent lines and, on a
// terminal, rows below them that move.
package screen

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"weir/internal/say"
)

// A Screen is a writer whose lines are permanent. On a terminal, rows that move are
// kept below them. It may be used by several goroutines at once.
type Screen struct {
	to   io.Writer
	term *os.File // nil: no row can move

	mu      sync.Mutex
	rows    []string // the rows that move, as they are shown
	width   int      // columns that they were drawn for
	partial bool     // the last line has no end yet
}

// New returns a Screen that writes to w, or w if it is one.
func New(w io.Writer) *Screen {
	if s, ok := w.(*Screen); ok {
		return s
	}
	s := &Screen{to: w}
	if f, ok := w.(*os.File); ok && isTerminal(f) && os.Getenv("TERM") != "dumb" {
		s.term = f
	}
	return s
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// IsTerminal reports whether w leads to a terminal that supports the usual escapes.
func IsTerminal(w io.Writer) bool { return New(Under(w)).Moves() }

// IsTerminalReader reports whether r is a terminal.
func IsTerminalReader(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && isTerminal(f)
}

// Moves reports whether rows can move on the screen.
func (s *Screen) Moves() bool { return s.term != nil }

// Look returns the style of the rows that move.
func (s *Screen) Look() Look {
	return Look{Color: s.Moves() && Colored(), Blocks: s.Moves() && Blocks()}
}

// Colored reports whether the user wants colors, if the terminal supports them:
// https://no-color.org.
func Colored() bool { return os.Getenv("NO_COLOR") == "" }

// Blocks reports whether the terminal shows the block characters of Unicode: the
// locale has them, and it is not the console of Linux.
func Blocks() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(os.Getenv(name)); v != "" {
			return (strings.HasSuffix(v, "utf-8") || strings.HasSuffix(v, "utf8")) && os.Getenv("TERM") != "linux"
		}
	}
	return false
}

// Columns returns the width of the screen, 80 if it is not known.
func (s *Screen) Columns() int {
	columns, _ := s.size()
	return columns
}

func (s *Screen) size() (columns, lines int) {
	if s.term != nil {
		if c, l, err := term.GetSize(int(s.term.Fd())); err == nil && c > 0 && l > 0 {
			return c, l
		}
	}
	return 80, 24
}

// Width returns the columns of the terminal that w leads to, 0 if w does not lead to a terminal.
func Width(w io.Writer) int {
	f, ok := Under(w).(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// Paragraph prints text as plain text behind indent, in lines as wide as the terminal
// that w leads to. Write errors are ignored: a command survives the loss of its terminal.
func Paragraph(w io.Writer, indent, format string, args ...any) {
	text := say.Plain(fmt.Sprintf(format, args...))
	if wide := Width(w); wide > 0 {
		text = strings.Join(say.Wrap(text, max(wide-len(indent)-3, 20)), "\n"+indent+"  ")
	}
	_, _ = fmt.Fprintf(w, "%s%s\n", indent, text)
}

// Write writes permanent text above the rows that move.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	s.partial = p[len(p)-1] != '\n'
	if len(s.rows) == 0 {
		return s.to.Write(p)
	}
	text := s.erasing() + string(p)
	if s.partial {
		s.rows = nil // they come back with the next drawing
	} else {
		text += strings.Join(s.rows, "\n")
	}
	if _, err := io.WriteString(s.to, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// refreshEvery is the time between two drawings of the rows that move.
const refreshEvery = 250 * time.Millisecond

// Animate shows the rows that draw returns for a number of columns until stop is called, which
// removes them. One goroutine calls draw, four times a second and when the size of the terminal
// changes; it must not write to the screen. Nothing is drawn if no row can move, or while the
// process is in the background of its terminal.
func (s *Screen) Animate(draw func(columns int) []string) (stop func()) {
	if s.term == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	changes, release := changed()
	go func() {
		defer close(ended)
		defer release()
		s.animate(draw, changes, done)
	}()
	return func() {
		close(done)
		<-ended
	}
}

func (s *Screen) animate(draw func(columns int) []string, changes <-chan os.Signal, done <-chan struct{}) {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		if s.front() {
			s.show(draw(s.Columns()))
		} else {
			s.forget()
		}
		select {
		case <-tick.C:
		case change := <-changes:
			if resumed(change) { // the shell has written that the process was suspended
				s.forget()
			}
		case <-done:
			s.show(nil)
			return
		}
	}
}

// show replaces the rows that move. Rows that do not fit are cut off. Write errors are ignored: the
// command survives the loss of its terminal.
func (s *Screen) show(rows []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	columns, lines := s.size()
	fit := make([]string, 0, len(rows))
	for _, row := range rows[max(len(rows)-max(lines-2, 1), 0):] { // the last rows matter most
		fit = append(fit, cut(row, columns-3)) // room for the ^C that a terminal shows
	}
	if s.width == columns && slices.Equal(fit, s.rows) {
		return
	}
	text := s.erasing()
	if s.partial && len(fit) > 0 {
		text, s.partial = text+"\n", false
	}
	s.rows, s.width = fit, columns
	_, _ = io.WriteString(s.to, text+strings.Join(fit, "\n"))
}

// erasing returns the escapes that remove the rows that move. A terminal that was made narrower has
// broken them into more lines.
func (s *Screen) erasing() string {
	if len(s.rows) == 0 {
		return ""
	}
	columns, _ := s.size()
	up := -1
	for _, row := range s.rows {
		up += max((cells(row)+columns-1)/columns, 1)
	}
	if up == 0 {
		return "\r\x1b[J"
	}
	return "\r\x1b[" + strconv.Itoa(up) + "A\x1b[J"
}

// NewLine begins a new line on a terminal if the current line has other text, such as the ^C that
// the terminal shows.
func (s *Screen) NewLine() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.to.(*os.File); ok && len(s.rows) == 0 && isTerminal(f) {
		_, _ = io.WriteString(s.to, "\n")
	}
}

// forget leaves the rows where they are: something else was written since.
func (s *Screen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.partial = nil, false
}

// Beside returns a writer to w. If w is a terminal, most often that of the screen, its
// text does not disturb the rows that move.
func (s *Screen) Beside(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && s.term != nil && isTerminal(f) {
		return &beside{s, f}
	}
	return w
}

type beside struct {
	screen *Screen
	to     *os.File
}

// Write implements io.Writer.
func (b *beside) Write(p []byte) (int, error) {
	s := b.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.WriteString(s.to, s.erasing())
	s.rows = nil // they come back with the next drawing
	if len(p) > 0 {
		s.partial = p[len(p)-1] != '\n'
	}
	return b.to.Write(p)
}

// Under returns the writer below a Screen, a Queue or a writer of Beside, for programs that write
// to the terminal itself.
func Under(w io.Writer) io.Writer {
	switch w := w.(type) {
	case *Screen:
		return w.to
	case *beside:
		return w.to
	case *Queue:
		return Under(w.to)
	}
	return w
}
