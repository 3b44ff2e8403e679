package report

import (
	"fmt"
	"html"
	"html/template"
	"strings"
	"unicode/utf8"
)

// Measures of a chart in its own units. They are scaled with the page; on
// narrow pages the style sheet makes the letters larger.
const (
	chartWidth, chartHeight  = 560.0, 310.0
	left, right, top, bottom = 62.0, 22.0, 34.0, 50.0
	plotWidth                = chartWidth - left - right
	plotHeight               = chartHeight - top - bottom
)

// A canvas collects SVG. Every text that enters it is escaped by words.
type canvas struct{ strings.Builder }

func (c *canvas) add(format string, args ...any) { _, _ = fmt.Fprintf(c, format, args...) }

func words(s string) string { return html.EscapeString(plain(s)) }

// svg draws the chart. Names in it are escaped, all else is made of numbers.
func (c *chart) svg() template.HTML {
	var out canvas
	out.add(`<svg viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t %s-d">`, chartWidth, chartHeight, c.id, c.id)
	out.add(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, c.id, words(c.title), c.id, words(c.desc))
	c.drawZones(&out)
	c.drawAxes(&out)
	c.drawColumns(&out)
	c.drawMarks(&out)
	for i := range c.lines {
		c.drawLine(&out, &c.lines[i])
	}
	if c.stamp != "" { // whoever copies the figure copies it, too
		out.add(`<text class="small stamped %s" x="%.1f" y="14" text-anchor="end">%s</text>`, strings.Map(letter, c.stamp), left+plotWidth, words(c.stamp))
	}
	out.add(`</svg>`)
	return template.HTML(out.String()) // escaped where it is put together
}

func (c *chart) px(x float64) float64 { return left + plotWidth*c.x.at(x) }
func (c *chart) py(y float64) float64 { return top + plotHeight*(1-c.y.at(y)) }

func (c *chart) drawZones(out *canvas) {
	last := -1000.0
	for _, z := range c.zones {
		from, to := c.px(z.from), c.px(z.to)
		out.add(`<rect class="zone" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, from, top, max(0.5, to-from), plotHeight)
		middle, half := (from+to)/2, 4.5*float64(utf8.RuneCountInString(z.name)) // letters are about 9 wide at most
		if z.name != "" && middle-half > last {
			out.add(`<text class="small" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, middle, top-6, words(z.name))
			last = middle + half + 4
		}
	}
}

func (c *chart) drawAxes(out *canvas) {
	for _, tick := range c.y.ticks {
		y := c.py(tick)
		out.add(`<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, left, y, left+plotWidth, y)
		out.add(`<text x="%.1f" y="%.1f" text-anchor="end" dy=".35em">%s</text>`, left-7, y, words(c.y.text(tick)))
	}
	base := top + plotHeight
	for _, tick := range c.x.ticks {
		x := c.px(tick)
		out.add(`<line class="axis" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x, base, x, base+4)
		out.add(`<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x, base+19, words(c.x.text(tick)))
	}
	out.add(`<line class="axis" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, left, base, left+plotWidth, base)
	out.add(`<text class="label" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, left+plotWidth/2, chartHeight-7, words(c.x.label))
	out.add(`<text class="label" x="4" y="14">%s</text>`, words(c.y.label))
}

// drawColumns draws a histogram. What was counted is seen, however little.
func (c *chart) drawColumns(out *canvas) {
	for _, col := range c.columns {
		if col.y <= 0 {
			continue
		}
		x, width := c.px(col.from), c.px(col.to)-c.px(col.from)
		height := max(1.5, top+plotHeight-c.py(col.y))
		out.add(`<rect class="column c0" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`,
			x, top+plotHeight-height, max(0.8, width-0.8), height, words(col.note))
	}
}

func (c *chart) drawMarks(out *canvas) {
	for i, m := range c.marks {
		x := c.px(m.x)
		anchor, shift, y := "start", 5.0, top+plotHeight-10-19*float64(i)
		if x > left+plotWidth*0.4 { // under the curve there is room on the left
			anchor, shift = "end", -5
		}
		if len(c.columns) > 0 { // a histogram has its room above
			y = top + 12 + 19*float64(i)
		}
		out.add(`<line class="mark" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x, top, x, top+plotHeight)
		out.add(`<text class="marked" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, x+shift, y, anchor, words(m.name))
	}
}

func (c *chart) drawLine(out *canvas, l *line) {
	if len(l.points) == 0 {
		return
	}
	dash := ""
	if l.dash {
		dash = " dash"
	}
	out.add(`<g class="c%d"><path class="line%s" d="`, l.color, dash)
	for i, p := range l.points {
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		out.add(`%s%.1f %.1f`, verb, c.px(p.x), c.py(p.y))
	}
	out.add(`"/>`)
	for _, p := range l.points {
		x, y := c.px(p.x), c.py(p.y)
		if p.low != nil && p.high != nil {
			low, high := c.py(*p.low), c.py(*p.high)
			out.add(`<path class="bar" d="M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f %.1fh8"/>`, x, low, high, x-4, low, x-4, high)
		}
		if l.dots {
			out.add(`<circle cx="%.1f" cy="%.1f" r="3.5"><title>%s</title></circle>`, x, y, words(p.note))
		}
	}
	out.add(`</g>`)
}
