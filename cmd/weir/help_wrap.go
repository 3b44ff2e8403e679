package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/internal/screen"
)

// columns returns the width of the lines that people read on w: that of the terminal, or 80.
func columns(w io.Writer) int {
	if wide := screen.Width(w); wide > 0 {
		return wide
	}
	return 80
}

// printHelp prints the help of c in lines that fit on the terminal.
func printHelp(c *cobra.Command, _ []string) {
	text := c.Long
	if text == "" {
		text = c.Short
	}
	text = strings.TrimSpace(text) + "\n"
	if c.Runnable() || c.HasSubCommands() {
		text += "\n" + c.UsageString()
	}
	out := c.OutOrStdout()
	_, _ = fmt.Fprint(out, wrapHelp(text, columns(out))) // as cobra: a lost reader is no error of help
}

// A helpWrapper breaks the lines of a help text: see wrapHelp.
type helpWrapper struct {
	width int
	out   strings.Builder
	part  string   // the last heading, such as Examples:
	lines []string // of the paragraph, or of the item, that is being read
	hang  int      // column of the text of an item, 0 in a paragraph
}

// wrapHelp returns a help text in lines of at most width characters; longer words are not broken.
// Paragraphs are filled. Of an indented item, "  NAME  text", the lines of the text begin in one
// column, which is at most a third of the width. Commands are continued behind a backslash.
func wrapHelp(text string, width int) string {
	w := helpWrapper{width: width}
	text = strings.ReplaceAll(text, "\t", "    ")
	text = regexp.MustCompile(` *\\\n *`).ReplaceAllString(text, " ") // commands that continue
	for line := range strings.Lines(text) {
		w.add(strings.TrimRight(line, " \n"))
	}
	w.end()
	return w.out.String()
}

// helpItem matches an indented line with a name and a text: a flag has three spaces between them.
var helpItem = regexp.MustCompile(`^( *\S.*?)  +(\S.*)$`)

// add reads a line.
func (w *helpWrapper) add(line string) {
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	switch {
	case text == "":
		w.end()
		w.out.WriteByte('\n')
	case indent > 0 && w.part == "Examples:":
		w.end()
		w.example(line[:indent], text)
	case indent > 0 && indent == w.hang:
		w.lines = append(w.lines, text)
	case indent > 0:
		w.end()
		w.lines, w.hang = []string{line}, indent+4
		if m := helpItem.FindStringSubmatchIndex(line); m != nil {
			w.hang = m[4]
		}
	case strings.HasSuffix(text, ":") && strings.Count(text, " ") < 3:
		w.end()
		w.part = text
		w.out.WriteString(text + "\n")
	default:
		if w.hang > 0 {
			w.end()
		}
		w.lines = append(w.lines, text)
	}
}

// end writes the paragraph or the item.
func (w *helpWrapper) end() {
	if len(w.lines) == 0 {
		return
	}
	text, hang := strings.Join(w.lines, " "), w.hang
	w.lines, w.hang = nil, 0
	if hang == 0 {
		w.out.WriteString(strings.Join(say.Wrap(text, w.width), "\n") + "\n")
		return
	}
	name := text[:len(text)-len(strings.TrimLeft(text, " "))]
	if m := helpItem.FindStringSubmatch(text); m != nil {
		name, text = m[1], m[2]
		hang = min(hang, w.width/3)
		if utf8.RuneCountInString(name)+2 > hang {
			w.out.WriteString(name + "\n")
			name = ""
		}
		name += strings.Repeat(" ", hang-utf8.RuneCountInString(name))
	}
	lines := say.Wrap(text, w.width-hang)
	w.out.WriteString(name + strings.Join(lines, "\n"+strings.Repeat(" ", hang)) + "\n")
}

// example writes a line of the examples. A remark that does not fit stands above its command.
func (w *helpWrapper) example(indent, text string) {
	if utf8.RuneCountInString(indent+text) > w.width {
		if command, remark, ok := strings.Cut(text, "  # "); ok {
			w.out.WriteString(indent + "# " + strings.TrimSpace(remark) + "\n")
			text = strings.TrimSpace(command)
		}
	}
	room := w.width - len(indent)
	for utf8.RuneCountInString(text) > room {
		at := breakOf(text, room-2)
		if at <= 0 {
			break
		}
		w.out.WriteString(indent + text[:at] + " \\\n")
		text = text[at+1:]
		if !strings.HasPrefix(indent, "      ") {
			indent, room = indent+"    ", room-4
		}
	}
	w.out.WriteString(indent + text + "\n")
}

// breakOf returns the place of a space in a command at which a line of at most room characters can
// end: the last one before a flag or an operator of the shell, or the last one or, if no space is in
// time, the first one; 0 if there is none. Spaces in quotes do not count.
func breakOf(text string, room int) int {
	quote, last, best := rune(0), 0, 0
	for i, c := range text {
		switch {
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		case c == ' ' && quote == 0:
			if i > room && last > 0 {
				return cmp.Or(best, last)
			}
			last = i
			if i <= room && strings.IndexByte("-|&>", text[i+1]) >= 0 {
				best = i
			}
		}
	}
	return cmp.Or(best, last)
}
