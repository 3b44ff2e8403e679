// Package manpage writes manual pages in the man macros of roff: man(7), groff_man(7).
package manpage

import (
	"fmt"
	"strings"
	"time"

	"weir/internal/say"
)

// A Text is a line of roff without macros.
type Text string

// Plain returns a plain text as roff.
func Plain(s string) Text { return Text(escape(s)) }

// Bold returns a plain text in bold: words to be typed as they are.
func Bold(s string) Text { return Text(`\fB` + escape(s) + `\fR`) }

// Italic returns a plain text in italics: words to be replaced.
func Italic(s string) Text { return Text(`\fI` + escape(s) + `\fR`) }

// A Page is a manual page that is being written.
type Page struct {
	Name    string // such as weir-run
	Chapter int    // of the manual, such as 1
	About   string // one line, for apropos
	Date    time.Time
	Source  string // program and version
	Manual  string

	body  strings.Builder
	begun bool // a section has begun and has no text yet
}

// Section begins a section.
func (p *Page) Section(title string) { p.heading("SH", strings.ToUpper(title)) }

// Subsection begins a part of a section.
func (p *Page) Subsection(title string) { p.heading("SS", title) }

func (p *Page) heading(macro, title string) {
	p.macro(macro + " " + quoted(title))
	p.begun = true
}

// Paragraph writes a paragraph.
func (p *Page) Paragraph(text Text) {
	if !p.begun { // a heading begins a paragraph itself
		p.macro("PP")
	}
	p.fill(text)
}

// Item writes a term and its explanation, which is indented.
func (p *Page) Item(term, text Text) {
	p.macro("TP")
	p.line(term)
	p.fill(text)
}

// Verbatim writes lines that keep their shape.
func (p *Page) Verbatim(lines string) {
	if !p.begun {
		p.macro("PP")
	}
	p.macro("RS 4")
	p.macro("nf")
	for line := range strings.Lines(strings.TrimRight(lines, "\n")) {
		p.line(Plain(strings.TrimSuffix(line, "\n")))
	}
	p.macro("fi")
	p.macro("RE")
}

// String returns the page.
func (p *Page) String() string {
	date := ""
	if !p.Date.IsZero() {
		date = p.Date.Format("Jan 2006")
	}
	return fmt.Sprintf(".TH %s %d %s %s %s\n.nh\n.ad l\n.SH NAME\n%s \\- %s\n%s", quoted(strings.ToUpper(p.Name)), p.Chapter, quoted(date),
		quoted(p.Source), quoted(p.Manual), escape(p.Name), escape(p.About), p.body.String())
}

// macro writes a macro with its arguments.
func (p *Page) macro(call string) {
	p.body.WriteString("." + call + "\n")
	p.begun = false
}

// fill writes a text that is filled, in short lines.
func (p *Page) fill(text Text) {
	for _, line := range say.Wrap(string(text), 78) {
		p.line(Text(line))
	}
}

// line writes a line that must not be taken for a macro.
func (p *Page) line(text Text) {
	if strings.HasPrefix(string(text), ".") {
		text = `\&` + text
	}
	p.body.WriteString(string(text) + "\n")
	p.begun = false
}

// quoted returns the argument of a macro.
func quoted(s string) string { return `"` + strings.ReplaceAll(escape(s), `"`, `\(dq`) + `"` }

// escape returns plain text as roff. Characters beyond ASCII are written by their numbers, which
// every version of groff and mandoc reads without options.
func escape(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c == '\\':
			b.WriteString(`\e`)
		case c == '-':
			b.WriteString(`\-`)
		case c == '\'':
			b.WriteString(`\(aq`)
		case c == '`':
			b.WriteString(`\(ga`)
		case c == '^':
			b.WriteString(`\(ha`)
		case c == '~':
			b.WriteString(`\(ti`)
		case c > 126:
			fmt.Fprintf(&b, `\[u%04X]`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
