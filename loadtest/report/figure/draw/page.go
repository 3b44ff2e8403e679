package draw

import (
	"fmt"
	"html/template"
	"strings"

	"weir/loadtest/report/figure"
)

// pageSize is the size of a figure on a page, which is scaled with the page.
func pageSize() Size { return Size{Width: 270, Height: 150} }

// A Page draws figures as parts of an HTML page whose style sheet contains their classes. It may be
// used by several goroutines at once.
type Page struct{ d Drawer }

// NewPage returns a Page.
func NewPage() (*Page, error) {
	f, err := newFonts()
	return &Page{Drawer{Options: Options{Size: pageSize()}, fonts: f, page: true}}, err
}

// SVG returns f as SVG, without the names of its lines. All texts in it are escaped, and everything
// else consists of numbers.
func (p *Page) SVG(f *figure.Figure) template.HTML {
	d := p.d
	if f.Matrix != nil {
		d.Size = matrixSize(f.Matrix)
	}
	c := newSVG(&d, f)
	newSheet(&d, c, f).draw()
	var b strings.Builder
	_ = c.write(&b) // memory
	return template.HTML(b.String())
}

// Still returns f as HTML that needs no script: SVG, and above it the names of
// its lines if there are several.
func (p *Page) Still(f *figure.Figure) template.HTML {
	if len(f.Lines) < 2 {
		return p.SVG(f)
	}
	var b strings.Builder
	b.WriteString(`<div class="legend">`)
	for i := range f.Lines {
		c := newSVG(&p.d, f)
		s := newSheet(&p.d, c, f)
		s.sample(0, 4, i)
		c.flush()
		_, _ = fmt.Fprintf(&b, `<span><svg viewBox="0 0 %g 8" aria-hidden="true">%s</svg>%s</span>`, sampleWidth, c.body.String(),
			escape(s.names[i]))
	}
	b.WriteString(`</div>`)
	return template.HTML(b.String()) + p.SVG(f)
}
