package draw

import (
	"html/template"
	"math"
	"strings"
	"unicode/utf8"

	"weir/loadtest/report/figure"
)

// A Forest is a plot of shifts with their intervals, one row each, around the
// line of no difference.
type Forest struct {
	ID, Title, Desc, Stamp string
	Log                    bool                 // the axis is logarithmic: shifts are ratios
	Least                  float64              // smallest extent of the axis in each direction
	Signed                 func(float64) string // writes a shift
	Rows                   []ForestRow
}

// A ForestRow is one shift.
type ForestRow struct {
	Name, Note, Class string // Class is the class of its color in the page's style sheet
	Value             float64
	Low, High         *float64
}

// Measures of a forest plot in points.
const (
	forestLeft  = 74.0
	forestRight = 12.0
	forestTop   = 14.0
	forestRow   = 12.5
)

// place returns the position of a shift before scaling.
func (f *Forest) place(v float64) float64 {
	if !f.Log {
		return v
	}
	return math.Log(min(max(v, 1e-9), 1e9))
}

// shift is the inverse of place.
func (f *Forest) shift(place float64) float64 {
	if !f.Log {
		return place
	}
	return math.Exp(place)
}

// extent returns the ends of the axis, which always includes the line of no difference.
func (f *Forest) extent() (low, high float64) {
	for _, r := range f.Rows {
		for _, v := range []*float64{&r.Value, r.Low, r.High} {
			if v != nil {
				low, high = min(low, f.place(*v)), max(high, f.place(*v))
			}
		}
	}
	pad := max((high-low)*0.08, f.Least)
	return low - pad, high + pad
}

// Forest returns f as SVG. All texts in it are escaped.
func (p *Page) Forest(f *Forest) template.HTML {
	d := p.d
	base := forestTop + forestRow*float64(len(f.Rows))
	d.Size.Height = base + 16
	c := newSVG(&d, &figure.Figure{ID: f.ID, Title: f.Title})
	c.alt = f.Desc
	low, high := f.extent()
	px := func(place float64) float64 {
		return forestLeft + (d.Size.Width-forestLeft-forestRight)*(place-low)/(high-low)
	}
	small := letters{size: smallSize, color: gray()}
	below := func(x float64, text string) {
		c.text(point{x - d.fonts.width(text, small)/2, base + 9}, text, small)
	}
	middle := d.fonts.width("same", small)/2 + 4
	for _, at := range []float64{low + 0.08*(high-low), low + 0.3*(high-low), high - 0.3*(high-low), high - 0.08*(high-low)} {
		text := f.Signed(f.shift(at))
		if math.Abs(px(at)-px(0)) < middle+d.fonts.width(text, small)/2 {
			continue // no room beside the middle
		}
		c.stroke([]point{{px(at), forestTop}, {px(at), base}}, pen{color: tint{class: "grid"}, width: 0.5})
		below(px(at), text)
	}
	c.stroke([]point{{px(0), forestTop - 2}, {px(0), base + 2}}, pen{color: gray(), width: 0.6})
	below(px(0), "same")
	for i := range f.Rows {
		f.Rows[i].draw(c, f, px, forestTop+forestRow*(float64(i)+0.5))
	}
	stamp := letters{size: smallSize, bold: true, color: tint{class: escape(f.Stamp)}}
	c.text(point{d.Size.Width - forestRight - d.fonts.width(f.Stamp, stamp), 7}, f.Stamp, stamp)
	var b strings.Builder
	_ = c.write(&b) // memory
	return template.HTML(b.String())
}

func (r *ForestRow) draw(c *svgCanvas, f *Forest, px func(float64) float64, y float64) {
	const most = 20 // letters
	name, l, color := c.d.fonts.plain(r.Name), letters{size: tickSize, color: gray()}, tint{class: r.Class}
	if utf8.RuneCountInString(name) > most {
		name = string([]rune(name)[:most-1]) + "…"
	}
	name = c.d.fonts.fit(name, l, forestLeft-6)
	c.text(point{forestLeft - 5 - c.d.fonts.width(name, l), y + 2.4}, name, l)
	if r.Low != nil && r.High != nil {
		bar, from, to := pen{color: color, width: 0.8}, px(f.place(*r.Low)), px(f.place(*r.High))
		c.stroke([]point{{from, y}, {to, y}}, bar)
		c.stroke([]point{{from, y - 2}, {from, y + 2}}, bar)
		c.stroke([]point{{to, y - 2}, {to, y + 2}}, bar)
	}
	c.mark(0, point{px(f.place(r.Value)), y}, markerSize, color, r.Note)
}
