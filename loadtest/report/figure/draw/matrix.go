package draw

import (
	"fmt"
	"math"

	"weir/loadtest/report/figure"
)

// Measures of a matrix in points.
const (
	matrixWidth = 540.0 // on a page: as wide as two figures beside each other
	mostCell    = 58.0
	leastCell   = 4.0 // of height
	bestHeight  = 15.0
	leastText   = 4.5
	sumGap      = 3.0 // before the sums
	keySize     = 8.0 // of the squares of the legend
)

// levelTint returns the color of a level: it is darker the more is missing, also in grey.
func levelTint(level int) tint {
	class := fmt.Sprintf("q%d", level+1)
	switch level {
	case 0:
		return tint{230, 244, 232, class}
	case 1:
		return tint{248, 207, 124, class}
	case 2:
		return tint{245, 179, 102, class}
	case 3:
		return tint{224, 123, 63, class}
	case 4:
		return tint{184, 57, 31, class}
	}
	return tint{94, 16, 16, class}
}

// levelText returns the color of a text on a level.
func levelText(level int) tint {
	class := fmt.Sprintf("n%d", level+1)
	if level >= 4 {
		return tint{255, 255, 255, class}
	}
	return tint{0, 0, 0, class}
}

// A matrixSheet is the layout of a matrix.
type matrixSheet struct {
	*sheet
	m      *figure.Matrix
	w, h   float64 // of a cell
	names  letters // of rows and columns
	turned bool    // names of columns run upwards
	texts  letters // of the cells; size 0: none fit
}

// matrix draws a figure that is a matrix: names, cells and a legend.
func (s *sheet) matrix() {
	x := &matrixSheet{sheet: s, m: s.f.Matrix}
	x.frame()
	for i, name := range x.m.Rows {
		top := x.rowTop(i)
		text := s.d.fonts.fit(s.d.fonts.plain(name), x.names, s.left-margin-labelSize-4)
		s.text(point{s.left - 4 - s.d.fonts.width(text, x.names), top + x.h/2 + x.names.size*0.36}, text, x.names)
		for k := range x.m.Cells[i] {
			x.cell(i, k, top)
		}
	}
	x.columnNames()
	x.labels()
	x.legend()
}

// frame computes the layout, from the outside inwards.
func (x *matrixSheet) frame() {
	s, size := x.sheet, x.d.Size
	s.right, s.top, s.bottom = size.Width-margin, margin, size.Height-margin-keySize-7
	if s.d.Title && s.f.Title != "" {
		l := letters{size: titleSize, bold: true}
		s.text(point{margin, s.top + titleSize - 1}, s.d.fonts.fit(s.d.fonts.plain(s.f.Title), l, size.Width-2*margin), l)
		s.top += titleSize + 5
	}
	if s.doubtful() {
		s.stamp(s.top)
		s.top += tickSize + 5
	} else if text := s.d.fonts.plain(s.f.Stamp); text != "" {
		l := letters{size: smallSize - 1, color: gray()}
		s.text(point{s.right - s.d.fonts.width(text, l), s.top + labelSize - 1}, text, l)
	}
	x.names = letters{size: tickSize}
	s.left = margin + labelSize + 6 + min(x.widest(x.m.Rows), size.Width/3)
	columns, rows := float64(max(1, len(x.m.Columns))), float64(max(1, len(x.m.Rows)))
	x.w = min(mostCell, (s.right-s.left-sumGap)/columns)
	x.turned = x.widest(x.m.Columns) > x.w-2
	s.top += labelSize + 3 + tickSize + 2
	if x.turned {
		s.top += min(x.widest(x.m.Columns), size.Height/4) - tickSize
	}
	x.h = max(leastCell, min((s.bottom-s.top-sumGap)/rows, max(bestHeight, 0.7*x.w)))
	x.names.size = min(tickSize, max(leastText, x.h-0.5))
	x.texts = letters{size: min(tickSize, x.h-1)}
	for _, row := range x.m.Cells {
		for k := range row {
			for x.texts.size >= leastText && s.d.fonts.width(row[k].Text, x.texts) > x.w-1 {
				x.texts.size -= 0.5
			}
		}
	}
	if x.texts.size < leastText {
		x.texts.size = 0
	}
}

// widest returns the width of the widest of the names.
func (x *matrixSheet) widest(names []string) float64 {
	widest := 0.0
	for _, name := range names {
		widest = max(widest, x.d.fonts.width(x.d.fonts.plain(name), letters{size: tickSize}))
	}
	return widest
}

// gap returns the distance of a row or column from its place, of n.
func (x *matrixSheet) gap(i, n int) float64 {
	if x.m.Sums && i == n-1 {
		return sumGap
	}
	return 0
}

func (x *matrixSheet) rowTop(i int) float64 { return x.top + float64(i)*x.h + x.gap(i, len(x.m.Rows)) }

func (x *matrixSheet) columnLeft(k int) float64 {
	return x.left + float64(k)*x.w + x.gap(k, len(x.m.Columns))
}

// cell draws the field of row i and column k; an unknown share has a frame only.
func (x *matrixSheet) cell(i, k int, top float64) {
	c := &x.m.Cells[i][k]
	if !c.There || k >= len(x.m.Columns) {
		return
	}
	left := x.columnLeft(k)
	field := box{left + 0.2, top + 0.2, left + x.w - 0.2, top + x.h - 0.2}
	ink := tint{class: ""}
	if math.IsNaN(c.Share) {
		x.stroke(append(rectangle(field), point{field.left, field.top}), pen{color: tint{215, 218, 222, "grid"}, width: hair})
	} else {
		level := figure.Level(c.Share)
		ink = levelText(level)
		x.fill(rectangle(field), levelTint(level), c.Note)
	}
	l := x.texts
	l.color = ink
	text := x.d.fonts.plain(c.Text)
	if w := x.d.fonts.width(text, l); l.size > 0 && w > 0 && w <= x.w {
		x.text(point{left + (x.w-w)/2, top + x.h/2 + l.size*0.36}, text, l)
	}
}

// columnNames writes the names of the columns, upwards if they are wider than the columns.
func (x *matrixSheet) columnNames() {
	l := x.names
	l.size, l.turned = tickSize, x.turned
	if x.turned {
		l.size = min(tickSize, max(leastText, x.w-0.5))
	}
	free := -1.0
	for k, name := range x.m.Columns {
		left := x.columnLeft(k)
		text := x.d.fonts.plain(name)
		if !x.turned {
			x.text(point{left + (x.w-x.d.fonts.width(text, l))/2, x.top - 3}, text, l)
			continue
		}
		if left < free {
			continue // names would touch
		}
		free = left + l.size - 0.5
		text = x.d.fonts.fit(text, l, x.d.Size.Height/4)
		x.text(point{left + x.w/2 + l.size*0.36, x.top - 3}, text, l)
	}
}

// labels writes the names of the axes: that of the columns above them, that of the rows beside
// them.
func (x *matrixSheet) labels() {
	l := letters{size: labelSize}
	above := x.top - 3 - tickSize - 3
	if x.turned {
		above = x.top - 5 - min(x.widest(x.m.Columns), x.d.Size.Height/4)
	}
	x.text(point{x.left, above}, x.d.fonts.plain(x.f.X.Caption()), l)
	l.turned = true
	text := x.d.fonts.plain(x.f.Y.Caption())
	x.text(point{margin + labelSize - 1, x.top + x.d.fonts.width(text, l)}, text, l)
}

// legend draws the levels with their ranges below the matrix.
func (x *matrixSheet) legend() {
	l := letters{size: smallSize}
	at, base := x.left, x.rowTop(len(x.m.Rows)-1)+x.h+keySize+5
	key := func(i int, text string) {
		x.fill(rectangle(box{at, base - keySize + 1.5, at + keySize, base + 1.5}), levelTint(i), "")
		x.text(point{at + keySize + 2, base}, text, l)
		at += keySize + 2 + x.d.fonts.width(text, l) + 5
	}
	levels := figure.Levels()
	texts := []string{fmt.Sprintf("≥ %.0f%%", 100*levels[0])}
	for _, least := range levels[1:] {
		texts = append(texts, fmt.Sprintf("≥ %.0f%%", 100*least))
	}
	for i, text := range append(texts, fmt.Sprintf("< %.0f%%", 100*levels[len(levels)-1])) {
		key(i, text)
	}
	if what := x.d.fonts.plain(x.m.What); at+2+x.d.fonts.width(what, l) < x.d.Size.Width-margin {
		x.text(point{at + 2, base}, what, l)
	}
}

// matrixSize returns the size of the drawing of a matrix on a page.
func matrixSize(m *figure.Matrix) Size {
	s := Size{Width: matrixWidth, Height: 2*margin + labelSize + tickSize + 5 + sumGap + keySize + 8}
	longest := 0
	for _, name := range m.Columns {
		longest = max(longest, len([]rune(name)))
	}
	const letter = 0.6 * tickSize
	cell := min(mostCell, (matrixWidth-60)/float64(max(1, len(m.Columns))))
	if float64(longest)*letter > cell {
		s.Height += min(float64(longest)*letter, 80)
	}
	s.Height += float64(len(m.Rows)) * min(bestHeight, max(8, 0.7*cell))
	return s
}
