package man

import (
	"fmt"
	"io"
	"strings"
)

// A page is written line by line.
type page struct{ w io.Writer }

// line writes a line of roff. Pages are made in memory: nothing can fail.
func (p *page) line(format string, args ...any) { _, _ = fmt.Fprintf(p.w, format+"\n", args...) }

func (p *page) section(name string) { p.line(".SH %s", name) }

// items writes a section of names with their meanings.
func (p *page) items(section string, items []Item) {
	if len(items) == 0 {
		return
	}
	p.section(section)
	for _, i := range items {
		p.line(".TP\n\\fB%s\\fR", escape(i.Name))
		p.text(i.Text)
	}
}

// text writes paragraphs, which empty lines part. Lines that begin with blanks
// keep their shape.
func (p *page) text(text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			p.line(".PP")
		}
		lines := strings.Split(paragraph, "\n")
		for len(lines) > 0 {
			n := 0
			shaped := strings.HasPrefix(lines[0], "  ")
			for n < len(lines) && strings.HasPrefix(lines[n], "  ") == shaped {
				n++
			}
			if shaped {
				p.block(lines[:n])
			} else {
				for _, l := range lines[:n] {
					p.line("%s", escape(l))
				}
			}
			lines = lines[n:]
		}
	}
}

// block writes lines as they are, but for the blanks that all begin with.
func (p *page) block(lines []string) {
	indent := strings.Repeat(" ", 100)
	for _, l := range lines {
		if rest := strings.TrimLeft(l, " "); rest != "" {
			indent = indent[:min(len(indent), len(l)-len(rest))]
		}
	}
	p.line(".RS 4\n.nf")
	for _, l := range lines {
		p.line("%s", escape(strings.TrimPrefix(l, indent)))
	}
	p.line(".fi\n.RE")
}

// escape makes roff write text as it is: hyphens can be copied into a shell,
// and no line is a request.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "^", `\(ha`, "~", `\(ti`, "`", `\(ga`, `"`, `\(dq`, "'", `\(aq`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
