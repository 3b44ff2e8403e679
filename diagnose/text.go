package diagnose

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"weir/internal/say"
	"weir/internal/slow"
	"weir/internal/unit"
)

// A writer writes paragraphs for a terminal. Flush returns its first error.
type writer struct {
	*bufio.Writer
	columns int
}

// line writes a line.
func (w *writer) line(text string) { _, _ = w.WriteString(text + "\n") }

// para writes a paragraph whose further lines are indented as much as its first.
func (w *writer) para(indent, text string) {
	for i, l := range say.Wrap(text, max(w.columns, 40)-len(indent)) {
		if i > 0 {
			indent = strings.Repeat(" ", len(indent))
		}
		w.line(indent + l)
	}
}

// list writes a list with a title, nothing if it is empty.
func (w *writer) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	w.line("\n" + title + ":")
	for _, l := range lines {
		w.para("  - ", l)
	}
}

// verdict writes a verdict with its remedy.
func (w *writer) verdict(v *slow.Verdict) {
	w.para("", v.Text)
	if v.Advice != "" {
		w.para("", v.Advice)
	}
	if v.Cause != slow.Unknown {
		w.para("", fmt.Sprintf("This is %s.", v.Certainty))
	}
}

// Text writes the report for a terminal of so many columns.
func (r *Report) Text(to io.Writer, columns int) error {
	w := &writer{bufio.NewWriter(to), columns}
	r.write(w)
	return w.Flush()
}

func (r *Report) write(w *writer) {
	v := &r.Verdict
	w.verdict(v)
	var parts, ladder []string
	for _, p := range v.Parts {
		parts = append(parts, fmt.Sprintf("%s %s (%s)", p.Name, unit.Seconds(p.Seconds), unit.Percent(p.Share)))
	}
	if len(parts) > 0 {
		w.line("")
		w.para("", "The whole file in one stream: "+strings.Join(parts, ", ")+".")
	}
	w.list("Evidence", v.Evidence)
	w.list("Ruled out", v.Excluded)
	for _, s := range r.Steps {
		ladder = append(ladder, s.Probe+": "+s.Result)
	}
	w.list("Ladder of probes", ladder)
	w.line("")
	w.para("", fmt.Sprintf("Seen from %s at %s: %s and %s in %s.", say.Plain(r.From), say.UTC(r.At), unit.Bytes(float64(r.Spent.Bytes)),
		say.Plural(r.Spent.Requests, "request"), unit.Seconds(r.Spent.Seconds)))
}

// Text writes the report for a terminal of so many columns.
func (r *CopyReport) Text(to io.Writer, columns int) error {
	w := &writer{bufio.NewWriter(to), columns}
	w.verdict(&r.Verdict)
	w.line("")
	w.para("", r.describe())
	w.line("\nThe source, from here\n")
	r.Source.write(w)
	w.line("\nThe destination, from here\n")
	r.Dest.write(w)
	return w.Flush()
}
