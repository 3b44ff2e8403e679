package draw

import (
	"bytes"
	"fmt"
	"io"
	"regexp"

	"codeberg.org/go-pdf/fpdf"

	"weir/loadtest/report/figure"
)

// A pdfCanvas writes one page of PDF through fpdf, in the size of the figure. The canvas of gonum
// supports only the characters of code page 1252, embeds the whole font, and writes the time into
// the file.
type pdfCanvas struct{ doc *fpdf.Fpdf }

func newPDF(d *Drawer, f *figure.Figure) *pdfCanvas {
	doc := fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt", Size: fpdf.SizeType{Wd: d.Size.Width, Ht: d.Size.Height}})
	doc.SetCatalogSort(true) // in the order of names, not of a map
	doc.SetMargins(0, 0, 0)
	doc.SetAutoPageBreak(false, 0)
	doc.SetTitle(d.fonts.plain(f.Title), true)
	doc.SetSubject(d.fonts.plain(f.Alt()), true)
	doc.SetProducer("weir", true)
	doc.SetLang("en")
	doc.AddUTF8FontFromBytes("sans", "", bytes.Clone(d.fonts.regular.bytes)) // fpdf writes into them
	doc.AddUTF8FontFromBytes("sans", "B", bytes.Clone(d.fonts.bold.bytes))
	doc.AddPage()
	doc.SetLineJoinStyle("round")
	return &pdfCanvas{doc}
}

func (p *pdfCanvas) stroke(points []point, with pen) {
	p.doc.SetDrawColor(int(with.color.r), int(with.color.g), int(with.color.b))
	p.doc.SetLineWidth(with.width)
	p.doc.SetDashPattern(with.dash, 0)
	p.path(points)
	p.doc.DrawPath("D")
}

func (p *pdfCanvas) path(points []point) {
	for i, at := range points {
		if i == 0 {
			p.doc.MoveTo(at.x, at.y)
		} else {
			p.doc.LineTo(at.x, at.y)
		}
	}
}

func (p *pdfCanvas) fill(points []point, c tint, _ string) {
	p.doc.SetFillColor(int(c.r), int(c.g), int(c.b))
	p.path(points)
	p.doc.ClosePath()
	p.doc.DrawPath("F")
}

func (p *pdfCanvas) mark(shape int, at point, r float64, c tint, note string) {
	p.fill(outline(shape, at, r), c, note)
}

func (p *pdfCanvas) text(at point, s string, l letters) {
	style := ""
	if l.bold {
		style = "B"
	}
	p.doc.SetFont("sans", style, l.size)
	p.doc.SetTextColor(int(l.color.r), int(l.color.g), int(l.color.b))
	if l.turned {
		p.doc.TransformBegin()
		p.doc.TransformRotate(90, at.x, at.y)
		defer p.doc.TransformEnd()
	}
	p.doc.Text(at.x, at.y, s)
}

// pdfDates matches the dates of a document.
var pdfDates = regexp.MustCompile(`/(CreationDate|ModDate) \(D:[0-9]{14}\)`)

// write removes the dates that fpdf always inserts: a file must not differ after it was made again.
// Blanks keep the offsets of the remaining file.
func (p *pdfCanvas) write(w io.Writer) error {
	var b bytes.Buffer
	if err := p.doc.Output(&b); err != nil {
		return fmt.Errorf("pdf: %w", err)
	}
	_, err := w.Write(pdfDates.ReplaceAllFunc(b.Bytes(), func(m []byte) []byte { return bytes.Repeat([]byte{' '}, len(m)) }))
	return err
}
