package figure

import (
	"math"
	"unicode/utf8"
)

// A box is a place in the drawing.
type box struct{ left, right, top, bottom float64 }

func (b box) holds(x, y float64) bool {
	return x >= b.left && x <= b.right && y >= b.top && y <= b.bottom
}

func (b box) meets(o box) bool {
	return b.left < o.right+6 && o.left < b.right+6 && b.top < o.bottom && o.top < b.bottom
}

// drawMarks draws named vertical lines; each name stands where it covers least.
func (f *Figure) drawMarks(out *Canvas) {
	if len(f.Marks) == 0 {
		return
	}
	ink := f.inked()
	var taken []box
	for _, m := range f.Marks {
		x := f.px(m.X)
		at := f.room(x, 9*float64(utf8.RuneCountInString(m.Name)), ink, taken) // letters are about so wide at most, as on phones
		taken = append(taken, at)
		place, anchor := at.left, "start"
		if at.left < x {
			place, anchor = at.right, "end"
		}
		out.Add(`<line class="mark" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x, top, x, top+plotHeight)
		out.Add(`<text class="marked" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, place, at.bottom-5, anchor, Words(m.Name))
	}
}

// room finds a place for a name of that width beside x: a histogram's names
// stand above, a curve's below.
func (f *Figure) room(x, width float64, ink [][2]float64, taken []box) box {
	const rows, pitch = 6, 19.0
	var best box
	least := math.Inf(1)
	for row := range rows {
		y := top + plotHeight - 5 - pitch*float64(row)
		if len(f.Columns) > 0 {
			y = top + 17 + pitch*float64(row)
		}
		for _, side := range []float64{x + 5, x - 5 - width} {
			start := max(left, min(side, left+plotWidth-width))
			b := box{start, start + width, y - 18, y}
			if covered := b.covers(ink, taken) + math.Abs(start-side)/width; covered < least {
				best, least = b, covered
			}
		}
	}
	return best
}

// covers is how much lies under b; another name counts more than any line.
func (b box) covers(ink [][2]float64, taken []box) float64 {
	n := 0.0
	for _, o := range taken {
		if b.meets(o) {
			n += 1000
		}
	}
	for _, p := range ink {
		if b.holds(p[0], p[1]) {
			n++
		}
	}
	return n
}

// inked lists points along all lines, near enough to each other that no name
// fits between.
func (f *Figure) inked() [][2]float64 {
	const apart = 6
	var all [][2]float64
	for i := range f.Lines {
		points := f.Lines[i].Points
		for k := range points {
			x, y := f.px(points[k].X), f.py(points[k].Y)
			if k > 0 {
				bx, by := f.px(points[k-1].X), f.py(points[k-1].Y)
				steps := math.Min(200, math.Ceil(math.Hypot(x-bx, y-by)/apart))
				for s := 1.0; s < steps; s++ {
					all = append(all, [2]float64{bx + (x-bx)*s/steps, by + (y-by)*s/steps})
				}
			}
			all = append(all, [2]float64{x, y})
		}
	}
	return all
}
