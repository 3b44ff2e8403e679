//go:build linux

package screen

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/require"
)

// A terminal is a pseudo-terminal with the text that it would show. It supports the few escapes
// that weir uses, and fails the test at any other.
type terminal struct {
	t       *testing.T
	control *os.File
	weir    *os.File // weir's output

	lines   [][]rune // all lines, including lines that have left the top
	x, y    int
	columns int
	raw     strings.Builder
	pending string
}

func openTerminal(t *testing.T, columns, lines int) *terminal {
	t.Helper()
	t.Setenv("TERM", "xterm")
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here:", err)
	}
	require.NoError(t, unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	file, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	term := &terminal{t: t, control: control, weir: file}
	term.resize(columns, lines)
	t.Cleanup(func() { _, _ = file.Close(), control.Close() })
	return term
}

func (m *terminal) resize(columns, lines int) {
	m.t.Helper()
	err := unix.IoctlSetWinsize(int(m.control.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(lines)})
	if err != nil {
		m.t.Fatal(err)
	}
	m.columns = columns
}

// seen reads all that was written until now and returns the lines that are seen.
func (m *terminal) seen() []string {
	m.t.Helper()
	const mark = "\x1b[9;9n" // weir never writes it
	if _, err := m.weir.WriteString(mark); err != nil {
		m.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for !strings.HasSuffix(m.pending, mark) {
		n, err := m.control.Read(buf)
		if err != nil {
			m.t.Fatal(err)
		}
		m.pending += string(buf[:n])
	}
	text := strings.TrimSuffix(m.pending, mark)
	m.pending = ""
	m.raw.WriteString(text)
	m.show(text)
	var lines []string
	for _, l := range m.lines {
		lines = append(lines, strings.TrimRight(string(l), " "))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func (m *terminal) show(text string) {
	for len(text) > 0 {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
			m.escape(rest[:end], rest[end])
			text = rest[end+1:]
			continue
		}
		r := []rune(text[:min(len(text), 4)])[0]
		text = text[len(string(r)):]
		switch {
		case r == '\r':
			m.x = 0
		case r == '\n':
			m.y++
		case r < ' ' || r == 0x7f:
			m.t.Errorf("control character %q reached the terminal", r)
		default:
			m.put(r)
		}
	}
}

func (m *terminal) put(r rune) {
	if m.x == m.columns {
		m.x, m.y = 0, m.y+1
	}
	for len(m.lines) <= m.y {
		m.lines = append(m.lines, nil)
	}
	l := m.lines[m.y]
	for len(l) <= m.x {
		l = append(l, ' ')
	}
	l[m.x] = r
	m.lines[m.y] = l
	m.x++
}

func (m *terminal) escape(args string, kind byte) {
	switch kind {
	case 'A':
		n := 1
		_, _ = fmt.Sscan(args, &n)
		if m.y -= n; m.y < 0 {
			m.t.Error("the cursor left the top")
			m.y = 0
		}
	case 'J': // from the cursor to the end
		m.lines = m.lines[:min(len(m.lines), m.y+1)]
		if m.y < len(m.lines) {
			m.lines[m.y] = m.lines[m.y][:min(m.x, len(m.lines[m.y]))]
		}
	case 'm':
	default:
		m.t.Errorf("unknown escape %q%c", args, kind)
	}
}
