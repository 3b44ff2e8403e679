package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"weir/figure"
	"weir/internal/say"
	"weir/web"
)

//go:embed parts.html.tmpl
var partsText string

//go:embed report.css
var styleText string

// A pageHead is what every page begins with.
type pageHead struct{ Title, Status string }

// newHead is for a page about what has that name.
func newHead(name, status string) pageHead { return pageHead{"weir: " + say.Plain(name), status} }

// A drawing is a plot on a page: as it stands still, and as data for the page's script,
// which puts a chart in its place.
type drawing struct {
	Title, Desc string
	Still       template.HTML
	Data        *figure.Figure // nil: it stays as it is
	Under       bool           // its title is one of a part of a chapter
}

// A section is a table, a text, or plots, with a title.
type section struct {
	ID, Title, Note, Text string
	Stamp                 string // whether the run can be believed; of tables
	Lead                  string // what the table shows, in a sentence
	Points                []string
	Charts                []drawing
	Brief                 string // beside the title: what it comes to
	Caption               string // names the table for those who do not see what is above it
	Folded                bool   // only the title is seen until it is opened
	Screen                bool   // folded, and not printed: there are too many of them
	Head                  []cell
	Rows                  []cells
}

type cells struct {
	Best  bool
	Cells []cell
}

type cell struct{ Text, Class string }

// writePage executes the template of a page, which may use the parts of all.
func writePage(w io.Writer, text string, page any) error {
	return writePageWith(w, text, page, built())
}

// writePageWith is writePage with the script and the style of b.
func writePageWith(w io.Writer, text string, page any, b bundle) error {
	style := web.Theme() + styleText + b.style
	var figures []*figure.Figure // in the order in which the page shows them
	t, err := template.New("page").Funcs(template.FuncMap{
		"style":  func() template.HTML { return template.HTML("<style>" + style + "</style>") }, // our own files
		"policy": func() string { return policy(b.script, style) },
		"number": func(f *figure.Figure) int { figures = append(figures, f); return len(figures) - 1 },
		"script": func() (template.HTML, error) { return script(b, figures) },
	}).Parse(partsText)
	if err == nil {
		t, err = t.Parse(text)
	}
	if err == nil {
		err = t.Execute(w, page)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func heads(names ...string) []cell {
	out := make([]cell, len(names))
	for i, name := range names {
		class := ""
		if strings.HasPrefix(name, "<") { // left-aligned
			class, name = "l", name[1:]
		}
		out[i] = cell{name, class}
	}
	return out
}

// row makes a table row whose cells are aligned as the heads are.
func (s *section) row(best bool, texts ...string) {
	if len(s.Rows) >= mostRows {
		s.Note = fmt.Sprintf("The first %d lines are shown; findings.json has all.", mostRows)
		return
	}
	r := cells{Best: best}
	for i, text := range texts {
		r.Cells = append(r.Cells, cell{say.Plain(text), s.Head[i].Class})
	}
	s.Rows = append(s.Rows, r)
}

// fill makes t the table of the section, aligned as it is in a text.
func (s *section) fill(t table) {
	names := make([]string, len(t.head))
	for i, name := range t.head {
		if t.left || i == len(t.head)-1 {
			name = "<" + name
		}
		names[i] = name
	}
	s.Head = heads(names...)
	for _, row := range t.rows {
		s.row(false, row...)
	}
}
