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

// A page is what the template shows: the verdicts, tiles, and chapters.
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

// A card is a tile: what it shows, the value, and a note.
type card struct{ Name, Value, Note string }

// newPage returns a page about what has that name.
func newPage(name, status, validity string) page {
	return page{Title: "weir: " + say.Plain(name), Status: status, Validity: validity}
}

// A drawing is a plot on a page: drawn as a picture, and given as data to the
// page's script, which puts a chart in its place.
type drawing struct {
	Title, Desc string         // Desc may be empty
	Data        *figure.Figure // nil: a forest, which stays as it is
	Forest      *draw.Forest
	Bare        bool // without the names of its lines
	Under       bool // its title is one of a part of a chapter
}

// drawings puts figures on a page. The page shows the status of the run once; only
// figures of an invalid run carry it as well.
func drawings(figures []figure.Figure) []drawing {
	all := make([]drawing, len(figures))
	for i := range figures {
		c := figures[i]
		if c.Stamp != analysis.Invalid {
			c.Stamp = ""
		}
		all[i] = drawing{Title: c.Title, Desc: say.Plain(c.Desc), Data: &c}
	}
	return all
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

func writePage(w io.Writer, p page) error { return writePageWith(w, p, built()) }

// writePageWith is writePage with the script and the style of b.
func writePageWith(w io.Writer, p page, b bundle) error {
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
	}).Parse(pageText)
	if err == nil {
		err = t.Execute(w, p)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// mostEmbedded is how many points of a line a page holds for its script: each
// second of two hours. Longer lines keep the lowest and the highest of each stretch.
const mostEmbedded = 7200

// A bundle is the script of a page and its styles; both are empty where weir
// was built without them.
type bundle struct{ script, style string }

// built returns the bundle that this weir was built with.
func built() bundle {
	script, there := web.Bundle("report.js")
	style, styled := web.Bundle("report.css")
	if !there || !styled {
		return bundle{}
	}
	return bundle{script, style}
}

// policy is what a page may do: run the one script and use the one style sheet
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

// script is what stands at the end of a page with figures: their data and what
// draws them, or why they stay as they are.
func script(b bundle, figures []*figure.Figure) (template.HTML, error) {
	if len(figures) == 0 {
		return "", nil
	}
	if b.script == "" {
		return template.HTML(`<p class="note">` + template.HTMLEscapeString(web.Missing) + numbersNote + "</p>"), nil
	}
	if strings.Contains(strings.ToLower(b.script+b.style), "</s") { // of script, of style
		return "", errors.New("report: the script of the page would end too early")
	}
	data, err := embed(figures)
	return template.HTML(`<noscript><p class="note">With scripts, charts can be zoomed and pointed at, and have tables and CSV.` +
		numbersNote + `</p></noscript>` + data + "<script>" + b.script + "</script>"), err // our own file
}

// embed writes figures for the page's script: JSON, packed by gzip, in letters
// that mean nothing to HTML. The script unpacks it when the page is open.
func embed(figures []*figure.Figure) (string, error) {
	b, err := json.Marshal(pack(figures))
	if err != nil {
		return "", fmt.Errorf("report: figures: %w", err)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, 4) // 9 saves a fortieth of the page, and takes longer
	if err == nil {
		_, err = z.Write(b)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return "", fmt.Errorf("report: figures: %w", err)
	}
	return `<script type="application/octet-stream" id="figures">` + base64.StdEncoding.EncodeToString(packed.Bytes()) + "</script>", nil
}

// A packed is the figures of a page. Lines share their columns of x, of which
// many are the same.
type packed struct {
	X       []figure.Numbers  `json:"x"`
	Figures []json.RawMessage `json:"figures"` // null: one with an axis that has no end
}

// A packedFigure is a figure whose lines name their column of x.
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

// printableFigure makes the names in a figure what they are on the page.
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
