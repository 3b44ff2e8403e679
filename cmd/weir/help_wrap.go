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

// A helpBlock is a part of a help text.
type helpBlock struct {
	kind   helpKind
	indent string
	name   string // of an item
	text   string
	column int // at which the text of an item begins
}

// A helpKind is a kind of block.
type helpKind int

const (
	helpBlank     helpKind = iota
	helpHeading            // a line such as Examples:
	helpParagraph          // lines that are filled
	helpItem               // an indented line, with a name or not, and lines that continue it
	helpExample            // a command in the examples
)

// itemNamed matches an indented line with a name and a text.
var itemNamed = regexp.MustCompile(`^ *(\S.*?)  +(\S.*)$`)

// helpBlocks returns the blocks of a help text.
func helpBlocks(text string) (all []helpBlock) {
	text = strings.ReplaceAll(text, "\t", "    ")
	text = regexp.MustCompile(` *\\\n *`).ReplaceAllString(text, " ") // commands that continue
	part := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		var last helpBlock
		if len(all) > 0 {
			last = all[len(all)-1]
		}
		text := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(text)]
		switch {
		case text == "":
			all = append(all, helpBlock{})
		case indent != "" && part == "Examples:":
			all = append(all, helpBlock{kind: helpExample, indent: indent, text: text})
		case indent != "" && last.kind == helpItem && len(indent) == last.column,
			indent == "" && last.kind == helpParagraph:
			all[len(all)-1].text += " " + text
		case indent != "":
			b := helpBlock{kind: helpItem, indent: indent, text: text, column: len(indent) + 4}
			if m := itemNamed.FindStringSubmatchIndex(line); m != nil {
				b.name, b.text, b.column = line[m[2]:m[3]], line[m[4]:m[5]], m[4]
			}
			all = append(all, b)
		case strings.HasSuffix(text, ":") && strings.Count(text, " ") < 3:
			part = text
			all = append(all, helpBlock{kind: helpHeading, text: text})
		default:
			all = append(all, helpBlock{kind: helpParagraph, text: text})
		}
	}
	return all
}

// wrapHelp returns a help text in lines of at most width characters; longer words are not broken.
// Paragraphs are filled. The texts of items begin in one column, which is at most a third of the
// width. Commands are continued behind a backslash.
func wrapHelp(text string, width int) string {
	var out strings.Builder
	for _, b := range helpBlocks(text) {
		switch b.kind {
		case helpBlank, helpHeading:
			out.WriteString(b.text + "\n")
		case helpParagraph:
			out.WriteString(strings.Join(say.Wrap(b.text, width), "\n") + "\n")
		case helpItem:
			out.WriteString(b.item(width))
		case helpExample:
			out.WriteString(b.example(width))
		}
	}
	return out.String()
}

// item returns the lines of an item.
func (b helpBlock) item(width int) string {
	column, begin := b.column, b.indent
	if b.name != "" {
		column = min(column, width/3)
		begin += b.name
		if utf8.RuneCountInString(begin)+2 > column {
			begin += "\n" + strings.Repeat(" ", column)
		} else {
			begin += strings.Repeat(" ", column-utf8.RuneCountInString(begin))
		}
	}
	return begin + strings.Join(say.Wrap(b.text, width-column), "\n"+strings.Repeat(" ", column)) + "\n"
}

// example returns the lines of a command. A remark that does not fit stands above it.
func (b helpBlock) example(width int) string {
	var out strings.Builder
	indent, text := b.indent, b.text
	if utf8.RuneCountInString(indent+text) > width {
		if command, remark, ok := strings.Cut(text, "  # "); ok {
			out.WriteString(indent + "# " + strings.TrimSpace(remark) + "\n")
			text = strings.TrimSpace(command)
		}
	}
	for utf8.RuneCountInString(indent+text) > width {
		at := breakOf(text, width-len(indent)-2)
		if at <= 0 {
			break
		}
		out.WriteString(indent + text[:at] + " \\\n")
		indent, text = b.indent+"    ", text[at+1:]
	}
	return out.String() + indent + text + "\n"
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
