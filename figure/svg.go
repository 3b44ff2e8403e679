package figure

import (
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/internal/say"
)

// Measures of a chart in its own units. They are scaled with the page; on
// narrow pages the style sheet makes the letters larger.
const (
	Width, height            = 560.0, 310.0
	left, right, top, bottom = 62.0, 22.0, 34.0, 50.0
	plotWidth                = Width - left - right
	plotHeight               = height - top - bottom
)

// A Canvas collects SVG. Every text that enters it must have passed Words.
type Canvas struct{ strings.Builder }

// Add writes as fmt.Sprintf does.
func (c *Canvas) Add(format string, args ...any) { _, _ = fmt.Fprintf(c, format, args...) }

// Words makes s text of SVG and HTML: escaped, without control characters.
func Words(s string) string { return html.EscapeString(say.Plain(s)) }

// Class makes a status a class name of the style sheet.
func Class(status string) string { return strings.Map(letter, status) }

// letter keeps what may stand in a class name.
func letter(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return -1
}

// SVG draws the figure without a script; a line that is longer than MostPoints
// and has no dots is thinned. Its classes are those of the report's style sheet. Names in it are escaped, all else is made of numbers.
func (f *Figure) SVG() template.HTML {
	var out Canvas
	tall := height
	if f.Heat != nil {
		tall += 26 // its legend
	}
	out.Add(`<svg viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t %s-d">`, Width, tall, f.ID, f.ID)
	out.Add(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, f.ID, Words(f.Title), f.ID, Words(f.Desc))
	f.drawZones(&out)
	f.drawAxes(&out)
	f.drawHeat(&out)
	f.drawColumns(&out)
	f.drawMarks(&out)
	for i := range f.Lines {
		f.drawLine(&out, &f.Lines[i])
	}
	if f.Stamp != "" { // whoever copies the figure copies it, too
		out.Add(`<text class="small stamped %s" x="%.1f" y="14" text-anchor="end">%s</text>`, Class(f.Stamp), left+plotWidth, Words(f.Stamp))
	}
	out.Add(`</svg>`)
	return template.HTML(out.String()) // escaped where it is put together
}

// Still returns the figure as HTML that needs no script: SVG, and above it the
// names of its lines if there are several.
func (f *Figure) Still() template.HTML {
	if len(f.Lines) < 2 {
		return f.SVG()
	}
	var out Canvas
	out.Add(`<div class="legend">`)
	for i := range f.Lines {
		l, dash := &f.Lines[i], ""
		if l.Dash {
			dash = " dash"
		}
		out.Add(`<span><svg class="c%d" viewBox="0 0 24 8" aria-hidden="true"><path class="line%s" d="M0 4H24"/></svg>%s</span>`, l.Color, dash, Words(l.Name))
	}
	out.Add(`</div>`)
	return template.HTML(out.String()) + f.SVG() // escaped where it is put together
}

func (f *Figure) px(x float64) float64 { return left + plotWidth*f.X.At(x) }
func (f *Figure) py(y float64) float64 { return top + plotHeight*(1-f.Y.At(y)) }

func (f *Figure) drawZones(out *Canvas) {
	last := -1000.0
	var zones, outages strings.Builder
	for _, z := range f.Zones {
		from, to := f.px(z.From), f.px(z.To)
		path := &zones
		if z.Outage {
			path = &outages
		}
		_, _ = fmt.Fprintf(path, "M%.1f %gh%.1fv%gh-%.1fz", from, top, max(0.5, to-from), plotHeight, max(0.5, to-from))
		middle, half := (from+to)/2, 4.5*float64(utf8.RuneCountInString(z.Name)) // letters are about 9 wide at most
		if z.Name != "" && middle-half > last {
			out.Add(`<text class="small" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, middle, top-6, Words(z.Name))
			last = middle + half + 4
		}
	}
	for _, m := range f.Marks {
		if m.Low != nil && m.High != nil {
			from, to := f.px(*m.Low), f.px(*m.High)
			_, _ = fmt.Fprintf(&zones, "M%.1f %gh%.1fv%gh-%.1fz", from, top, max(0.5, to-from), plotHeight, max(0.5, to-from))
		}
	}
	if zones.Len() > 0 {
		out.Add(`<path class="zone" d="%s"/>`, zones.String())
	}
	if outages.Len() > 0 {
		out.Add(`<path class="zone outage" d="%s"/>`, outages.String())
	}
}

func (f *Figure) drawAxes(out *Canvas) {
	var grid, ticks strings.Builder
	for _, tick := range f.Y.Ticks {
		y := f.py(tick)
		_, _ = fmt.Fprintf(&grid, "M%g %.1fh%g", left, y, plotWidth)
		out.Add(`<text x="%.1f" y="%.1f" text-anchor="end" dy=".35em">%s</text>`, left-7, y, Words(f.Y.Text(tick)))
	}
	base := top + plotHeight
	for _, tick := range f.X.Ticks {
		x := f.px(tick)
		_, _ = fmt.Fprintf(&ticks, "M%.1f %gv4", x, base)
		out.Add(`<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x, base+19, Words(f.X.Text(tick)))
	}
	out.Add(`<path class="grid" d="%s"/><path class="axis" d="M%g %gh%g%s"/>`, grid.String(), left, base, plotWidth, ticks.String())
	out.Add(`<text class="label" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, left+plotWidth/2, height-7, Words(f.X.Label))
	out.Add(`<text class="label" x="4" y="14">%s</text>`, Words(f.Y.Label))
}

// drawColumns draws a histogram. What was counted is seen, however little.
func (f *Figure) drawColumns(out *Canvas) {
	for _, col := range f.Columns {
		if col.Y <= 0 {
			continue
		}
		x, width := f.px(col.From), f.px(col.To)-f.px(col.From)
		height := max(1.5, top+plotHeight-f.py(col.Y))
		out.Add(`<rect class="column c0" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`,
			x, top+plotHeight-height, max(0.8, width-0.8), height, Words(col.Note))
	}
}

func (f *Figure) drawLine(out *Canvas, l *Line) {
	if len(l.Points) == 0 {
		return
	}
	dash := ""
	if l.Dash {
		dash = " dash"
	}
	points := l.Points
	if !l.Dots {
		most := MostPoints
		if f.Few > 0 {
			most = f.Few
		}
		points = ThinTo(points, most)
	}
	var path pen
	for _, p := range points {
		path.to(f.px(p.X), f.py(p.Y))
	}
	out.Add(`<g class="c%d">`, l.Color)
	if !l.Dots {
		f.drawBand(out, points)
	}
	if !l.Loose {
		out.Add(`<path class="line%s" d="%s"/>`, dash, path.d)
	}
	if !l.Dots {
		out.Add(`</g>`)
		return
	}
	for _, p := range points {
		x, y := f.px(p.X), f.py(p.Y)
		if p.Low != nil && p.High != nil {
			low, high := f.py(*p.Low), f.py(*p.High)
			out.Add(`<path class="bar" d="M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f %.1fh8"/>`, x, low, high, x-4, low, x-4, high)
		}
		out.Add(`<circle cx="%.1f" cy="%.1f" r="3.5"><title>%s</title></circle>`, x, y, Words(p.Note))
	}
	out.Add(`</g>`)
}

// drawBand fills what lies between the ends of the points' intervals.
func (f *Figure) drawBand(out *Canvas, points []Point) {
	var path pen
	var back []Point
	for _, p := range points {
		if p.Low != nil && p.High != nil {
			path.to(f.px(p.X), f.py(*p.High))
			back = append(back, p)
		}
	}
	if len(back) < 2 {
		return
	}
	for _, p := range slices.Backward(back) {
		path.to(f.px(p.X), f.py(*p.Low))
	}
	out.Add(`<path class="band" d="%sz"/>`, path.d)
}
