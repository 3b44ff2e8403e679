// Package screen shows people how far a command is: lines that stay and, on a
// terminal, rows below them that move.
package screen

import (
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/term"
)

// A Screen is where people read. Lines that are written to it stay; rows that
// move are always below them, on a terminal only. It may be used by several
// goroutines at once.
type Screen struct {
	to   io.Writer
	term *os.File // nil: nothing can move there

	mu    sync.Mutex
	rows  []string // that move, as they stand there now
	wide  int      // columns for which they were drawn
	begun bool     // the last line that was written has no end yet
}

// New returns the screen that w is: w itself if it is a Screen already.
func New(w io.Writer) *Screen {
	if s, ok := w.(*Screen); ok {
		return s
	}
	s := &Screen{to: w}
	if f, ok := w.(*os.File); ok && Obeys(f) {
		s.term = f
	}
	return s
}

// Obeys tells whether f is a terminal that knows the usual escapes.
func Obeys(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// Colored tells whether the user wants colors where they can be shown:
// https://no-color.org.
func Colored() bool { return os.Getenv("NO_COLOR") == "" }

// Moves tells whether rows can move here.
func (s *Screen) Moves() bool { return s.term != nil }

// Columns is how wide the screen is, 80 if it does not say.
func (s *Screen) Columns() int {
	columns, _ := s.size()
	return columns
}

// size is 80 columns and 24 lines where nothing is known.
func (s *Screen) size() (columns, lines int) {
	if s.term != nil {
		if c, l, err := term.GetSize(int(s.term.Fd())); err == nil && c > 0 && l > 0 {
			return c, l
		}
	}
	return 80, 24
}

// Write writes text that stays, above the rows that move.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	ended := p[len(p)-1] == '\n'
	s.begun = !ended
	if len(s.rows) == 0 {
		return s.to.Write(p)
	}
	text := s.erasing() + string(p)
	if ended {
		text += strings.Join(s.rows, "\n")
	} else {
		s.rows = nil // they come back with the next drawing
	}
	if _, err := io.WriteString(s.to, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// show puts rows in place of those that move. What does not fit is cut off. A
// lost terminal is nobody's business: it must not end what is measured.
func (s *Screen) show(rows []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	columns, lines := s.size()
	fit := make([]string, 0, len(rows))
	for _, row := range rows[max(len(rows)-max(lines-2, 1), 0):] { // the last ones matter most
		fit = append(fit, cut(row, columns-3)) // room for the ^C that a terminal shows
	}
	if s.wide == columns && equal(fit, s.rows) {
		return
	}
	text := s.erasing()
	if s.begun && len(fit) > 0 {
		text, s.begun = text+"\n", false
	}
	s.rows, s.wide = fit, columns
	_, _ = io.WriteString(s.to, text+strings.Join(fit, "\n"))
}

func equal(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }

// erasing is what removes the rows that move: a terminal that was made narrower
// has broken them into more lines.
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

// Fresh begins a line of its own on a terminal where something else, such as
// the ^C that it shows, stands on the current one.
func (s *Screen) Fresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.to.(*os.File); ok && len(s.rows) == 0 && term.IsTerminal(int(f.Fd())) {
		_, _ = io.WriteString(s.to, "\n")
	}
}

// forget leaves the rows where they are: something else was written since.
func (s *Screen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.begun = nil, false
}

// Beside returns what writes to w without disturbing the rows that move, if w
// is a terminal, too: most often it is the same one.
func (s *Screen) Beside(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && s.term != nil && term.IsTerminal(int(f.Fd())) {
		return &beside{s, f}
	}
	return w
}

// beside writes to a terminal on which rows of a screen may move.
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
		s.begun = p[len(p)-1] != '\n'
	}
	return b.to.Write(p)
}

// Under returns the writer below a screen, a queue or what is beside it: what a program
// is given that shall have the terminal itself.
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
