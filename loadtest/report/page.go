package report

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
	"weir/loadtest/report/figure/draw"
	"weir/web"
)

//go:embed report.html.tmpl
var pageText string

//go:embed report.css
var styleText string

// Style returns the style sheet of the report, for pages that show its figures
// as SVG.
func Style() string { return styleText }

// A page is the data for the template: the verdicts, tiles, and chapters.
type page struct {
	Title, Status string
	Validity      string // beside the status
	About         string
	Verdicts      []string
	Cards         []card
	Thresholds    []card // class, word, text
	Warnings      []string
	Chapters      []chapter
	Runs          []runLink
	Footer        string
}

// A card is a tile: the name of a figure, its value, and a note.
type card struct{ Name, Value, Note string }

// newPage returns a page about the run or comparison with that name.
func newPage(name, status, validity string) page {
	return page{Title: "weir: " + say.Plain(name), Status: status, Validity: validity}
}

// A drawing is a plot on a page: drawn as a picture, and also embedded as data for the page's
// script, which replaces the picture with a chart.
type drawing struct {
	Title, Desc string         // Desc may be empty
	Data        *figure.Figure // nil: a matrix or a forest, which stays a picture
	Matrix      *figure.Figure
	Forest      *draw.Forest
	Bare        bool // without the names of its lines
	Under       bool // its title is a title within a chapter
}

// drawings prepares figures for a page. The page shows the status of the run once; only figures of
// an invalid run show it as well.
func drawings(figures []figure.Figure) []drawing {
	all := make([]drawing, len(figures))
	for i := range figures {
		c := figures[i]
		if c.Stamp != analysis.Invalid {
			c.Stamp = ""
		}
		all[i] = drawing{Title: c.Title, Desc: say.Plain(c.Desc), Data: &c}
		if c.Matrix != nil {
			all[i].Data, all[i].Matrix = nil, &c
		}
	}
	return all
}

func (d *drawing) still(p *draw.Page) template.HTML {
	switch {
	case d.Forest != nil:
		return p.Forest(d.Forest)
	case d.Matrix != nil:
		return p.SVG(d.Matrix)
	case d.Bare:
		return p.SVG(d.Data)
	}
	return p.Still(d.Data)
}

func writePage(w io.Writer, p page) error { return writePageWith(w, p, built()) }

// writePageWith is writePage with the script and the style of b.
func writePageWith(w io.Writer, p page, b bundle) error {
	style := web.Theme() + styleText + b.style
	var figures []*figure.Figure // in the order in which the page shows them
	drawn, err := draw.NewPage()
	if err != nil {
		return err
	}
	t, err := template.New("page").Funcs(template.FuncMap{
		"style":  func() template.HTML { return template.HTML("<style>" + style + "</style>") }, // our own files
		"policy": func() string { return policy(b.script, style) },
		"still":  func(d drawing) template.HTML { return d.still(drawn) },
		"number": func(f *figure.Figure) int { figures = append(figures, f); return len(figures) - 1 },
		"script": func() (template.HTML, error) { return script(b, figures) },
	}).Parse(pageText)
	if err == nil {
		err = t.Execute(w, p)
	}
	return err
}

// mostEmbedded is the number of points of a line that a page contains for its script: one for each
// second of two hours. Of each stretch of a longer line, the lowest and the highest point are kept.
const mostEmbedded = 7200

// A bundle is the script of a page and its styles; the two texts are empty if weir was built
// without them.
type bundle struct{ script, style string }

// built returns the bundle that is part of this build of weir.
func built() bundle {
	script, there := web.Bundle("report.js")
	style, styled := web.Bundle("report.css")
	if !there || !styled {
		return bundle{}
	}
	return bundle{script, style}
}

// policy returns the permissions of a page: it may run the one script and use the one style sheet
// that it was made with, and nothing else; no network, no forms, no frames.
func policy(script, style string) string {
	sum := func(text string) string {
		if text == "" {
			return "'none'"
		}
		b := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(b[:]) + "'"
	}
	return fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; base-uri 'none'; form-action 'none'", sum(script), sum(style))
}

// numbersNote names the command that writes the numbers of plots.
const numbersNote = " <code>weir report RUN --figures DIR</code> writes the numbers of plots as CSV."

// script returns the end of a page with figures: their data and the script that draws them, or the
// reason why they remain pictures.
func script(b bundle, figures []*figure.Figure) (template.HTML, error) {
	if len(figures) == 0 {
		return "", nil
	}
	if b.script == "" {
		return template.HTML(`<p class="note">` + template.HTMLEscapeString(web.Missing) + numbersNote + "</p>"), nil
	}
	if strings.Contains(strings.ToLower(b.script+b.style), "</s") { // of script, of style
		return "", errors.New("the script of the page would end too early")
	}
	data, err := embed(figures)
	return template.HTML(`<noscript><p class="note">With scripts, charts can be zoomed and pointed at, and have tables and CSV.` +
		numbersNote + `</p></noscript>` + data + "<script>" + b.script + "</script>"), err // our own file
}

// embed encodes figures for the page's script: JSON, compressed by gzip, in characters without a
// meaning in HTML. The script decompresses the data when the page is open.
func embed(figures []*figure.Figure) (string, error) {
	b, err := json.Marshal(pack(figures))
	if err != nil {
		return "", fmt.Errorf("figures: %w", err)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, 4) // 9 saves a fortieth of the page but takes longer
	if err == nil {
		_, err = z.Write(b)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return "", fmt.Errorf("figures: %w", err)
	}
	return `<script type="application/octet-stream" id="figures">` + base64.StdEncoding.EncodeToString(packed.Bytes()) + "</script>", nil
}

// A packed contains the figures of a page. Lines share their columns of x, since many of these are
// equal.
type packed struct {
	X       []figure.Numbers  `json:"x"`
	Figures []json.RawMessage `json:"figures"` // null: a figure with an axis that has no end
}

// A packedFigure is a figure whose lines refer to their column of x.
type packedFigure struct {
	figure.Figure
	Lines []figure.Columns `json:"lines,omitempty"`
}

func pack(figures []*figure.Figure) packed {
	p := packed{X: []figure.Numbers{}}
	known := map[string]int{}
	column := func(x figure.Numbers) int {
		b, _ := x.MarshalJSON() // never fails
		if i, ok := known[string(b)]; ok {
			return i
		}
		p.X = append(p.X, x)
		known[string(b)] = len(p.X) - 1
		return len(p.X) - 1
	}
	for _, drawn := range figures {
		f := packedFigure{Figure: printableFigure(*drawn)}
		for i := range drawn.Lines {
			f.Lines = append(f.Lines, packLine(drawn.Lines[i], column))
		}
		f.Figure.Lines = nil
		b, err := json.Marshal(f)
		if err != nil {
			b = []byte("null")
		}
		p.Figures = append(p.Figures, b)
	}
	return p
}

// printableFigure returns the figure with its names in the form that the page shows.
func printableFigure(f figure.Figure) figure.Figure {
	f.Title, f.Desc, f.Stamp = say.Plain(f.Title), say.Plain(f.Desc), say.Plain(f.Stamp)
	f.X.Label, f.Y.Label = say.Plain(f.X.Label), say.Plain(f.Y.Label)
	f.Zones, f.Marks = slices.Clone(f.Zones), slices.Clone(f.Marks)
	for i := range f.Zones {
		f.Zones[i].Name = say.Plain(f.Zones[i].Name)
	}
	for i := range f.Marks {
		f.Marks[i].Name = say.Plain(f.Marks[i].Name)
	}
	return f
}

// packLine returns l with the number of its column of x.
func packLine(l figure.Line, column func(figure.Numbers) int) figure.Columns {
	if !l.Dots {
		l.Points = figure.ThinTo(l.Points, mostEmbedded)
	}
	l.Name = say.Plain(l.Name)
	c, x := l.Columns()
	c.X = column(x)
	return c
}
