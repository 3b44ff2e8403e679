package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"weir/internal/say"
	"weir/report/figure"
	"weir/report/figure/draw"
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

// A drawing is a plot on a page: drawn as it stands still, and given as data to the
// page's script, which puts a chart in its place.
type drawing struct {
	Title, Desc string
	Data        *figure.Figure // nil: a forest, which stays as it is
	Forest      *draw.Forest
	Bare        bool // without the names of its lines
	Under       bool // its title is one of a part of a chapter
}

func (d *drawing) still(p *draw.Page) template.HTML {
	switch {
	case d.Forest != nil:
		return p.Forest(d.Forest)
	case d.Bare:
		return p.SVG(d.Data)
	}
	return p.Still(d.Data)
}

// writePage executes the template of a page, which may use the parts of all.
func writePage(w io.Writer, text string, page any) error {
	return writePageWith(w, text, page, built())
}

// writePageWith is writePage with the script and the style of b.
func writePageWith(w io.Writer, text string, page any, b bundle) error {
	style := web.Theme() + styleText + b.style
	var figures []*figure.Figure // in the order in which the page shows them
	drawn, err := draw.NewPage()
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	t, err := template.New("page").Funcs(template.FuncMap{
		"style":  func() template.HTML { return template.HTML("<style>" + style + "</style>") }, // our own files
		"policy": func() string { return policy(b.script, style) },
		"still":  func(d drawing) template.HTML { return d.still(drawn) },
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

// Style returns the style sheet of the report, for pages that show its figures
// as SVG.
func Style() string { return styleText }
