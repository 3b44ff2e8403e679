package report

import (
	"html/template"
	"math"
	"unicode/utf8"

	"weir/analysis/compare"
	"weir/figure"
)

// A forest is a plot of shifts with their intervals, one row each, around the
// line of no difference.
type forest struct {
	id, title, desc, stamp string
	metric                 *compare.Metric
	rows                   []forestRow
}

type forestRow struct {
	name, note, result string
	value              float64
	low, high          *float64
}

// Measures of a forest plot, in its own units.
const (
	forestLeft  = 150.0
	forestRight = 24.0
	forestTop   = 26.0
	rowHeight   = 26.0
)

// place maps a shift to where it is drawn before scaling: ratios by logarithm.
func (f *forest) place(v float64) float64 {
	if f.metric.Plain {
		return v
	}
	return math.Log(min(max(v, 1e-9), 1e9))
}

// extent returns the ends of the axis, which always holds no difference.
func (f *forest) extent() (low, high float64) {
	for _, r := range f.rows {
		for _, v := range []*float64{&r.value, r.low, r.high} {
			if v != nil {
				low, high = min(low, f.place(*v)), max(high, f.place(*v))
			}
		}
	}
	least := 0.02 // of a plot of shifts near none
	if f.metric.Plain {
		least = 0.001
	}
	pad := max((high-low)*0.08, least)
	return low - pad, high + pad
}

// svg draws the plot. Names in it are escaped, all else is made of numbers.
func (f *forest) svg() template.HTML {
	var out figure.Canvas
	low, high := f.extent()
	base := forestTop + rowHeight*float64(len(f.rows))
	px := func(v float64) float64 {
		return forestLeft + (figure.Width-forestLeft-forestRight)*(v-low)/(high-low)
	}
	out.Add(`<svg viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t %s-d">`, figure.Width, base+40, f.id, f.id)
	out.Add(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, f.id, figure.Words(f.title), f.id, figure.Words(f.desc))
	for _, v := range []float64{low + 0.08*(high-low), low + 0.3*(high-low), high - 0.3*(high-low), high - 0.08*(high-low)} {
		if math.Abs(px(v)-px(0)) < 45 || f.metric.Plain && math.Abs(px(v)-px(0)) < 110 {
			continue // no room beside the middle
		}
		out.Add(`<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, px(v), forestTop, px(v), base)
		out.Add(`<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, px(v), base+18, figure.Words(f.signed(v)))
	}
	out.Add(`<line class="axis" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, px(0), forestTop-4, px(0), base+4)
	out.Add(`<text x="%.1f" y="%.1f" text-anchor="middle">same</text>`, px(0), base+18)
	for i, r := range f.rows {
		f.row(&out, px, forestTop+rowHeight*(float64(i)+0.5), r)
	}
	out.Add(`<text class="small stamped %s" x="%.1f" y="14" text-anchor="end">%s</text></svg>`, figure.Class(f.stamp), figure.Width-forestRight, figure.Words(f.stamp))
	return template.HTML(out.String()) // escaped where it is put together
}

// signed is the text of a place on the axis.
func (f *forest) signed(place float64) string {
	if f.metric.Plain {
		return f.metric.Signed(place)
	}
	return f.metric.Signed(math.Exp(place))
}

func (f *forest) row(out *figure.Canvas, px func(float64) float64, y float64, r forestRow) {
	name := r.name
	if utf8.RuneCountInString(name) > 20 {
		name = string([]rune(name)[:19]) + "…"
	}
	out.Add(`<g class="%s"><text x="%.1f" y="%.1f" text-anchor="end" dy=".35em">%s</text>`, resultClass(r.result), forestLeft-10, y, figure.Words(name))
	if r.low != nil && r.high != nil {
		x, to := px(f.place(*r.low)), px(f.place(*r.high))
		out.Add(`<path class="bar" d="M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8"/>`, x, y, to, x, y-4, to, y-4)
	}
	out.Add(`<circle cx="%.1f" cy="%.1f" r="4"><title>%s</title></circle></g>`, px(f.place(r.value)), y, figure.Words(r.note))
}

// resultClass is the color of a result.
func resultClass(result string) string {
	switch result {
	case compare.Better:
		return "ok"
	case compare.Worse:
		return "fail"
	case compare.Different:
		return "c0"
	}
	return "skipped"
}
