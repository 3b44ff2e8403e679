package draw

import (
	"fmt"
	"math"
	"slices"

	"weir/internal/unit"
	"weir/loadtest/report/figure"
)

// Measures of a heat map's scale, in points.
const (
	scaleWidth = 34.0
	shades     = 24
	seam       = 0.25 // overlap of neighbors: viewers show paper between edges that only meet
)

// shade returns a color for counts: higher counts are darker, also in grey.
func shade(i int) tint {
	t := float64(i) / (shades - 1)
	class := fmt.Sprintf("h%d", 1+8*i/shades)
	mix := func(from, to float64) uint8 { return uint8(from + (to-from)*t) }
	if t < 0.5 {
		t *= 2
		return tint{mix(226, 74), mix(238, 142), mix(246, 190), class}
	}
	t = 2*t - 1
	return tint{mix(74, 8), mix(142, 28), mix(190, 74), class}
}

// level returns the shade of a count, by its logarithm: the purpose of such a map is to show a tail
// of single slow operations.
func level(count, most float64) int {
	if most <= 1 {
		return shades - 1
	}
	return int(math.Round((shades - 1) * math.Log(count) / math.Log(most)))
}

// heat draws the field, each column of it as the runs of equal shades.
func (s *sheet) heat() {
	h := s.f.Heat
	if h == nil || len(h.X) != len(h.Rows)+1 {
		return
	}
	most := 400 // columns; fewer on a page, which has many figures
	if s.d.page {
		most = 180
	}
	h = joined(h, most)
	fullest := h.Most()
	for i, row := range h.Rows {
		left, right := s.px(h.X[i]), s.px(h.X[i+1])
		for k := 0; k < len(row) && k+1 < len(h.Y); {
			if row[k] <= 0 {
				k++
				continue
			}
			shadeOf, from := level(float64(row[k]), float64(fullest)), k
			for k++; k < len(row) && k+1 < len(h.Y) && row[k] > 0 && level(float64(row[k]), float64(fullest)) == shadeOf; k++ {
			}
			s.fill(rectangle(box{left, s.py(h.Y[k]) - seam, right + seam, s.py(h.Y[from])}), shade(shadeOf), "")
		}
	}
	s.scale(fullest)
}

// joined adds neighbors up until there are at most n columns.
func joined(h *figure.Heat, n int) *figure.Heat {
	every := (len(h.Rows) + n - 1) / n
	if every <= 1 {
		return h
	}
	out := &figure.Heat{Y: h.Y, What: h.What}
	for i := 0; i < len(h.Rows); i += every {
		end := min(i+every, len(h.Rows))
		sum := slices.Clone(h.Rows[i])
		for _, row := range h.Rows[i+1 : end] {
			for k := range min(len(sum), len(row)) {
				sum[k] += row[k]
			}
		}
		out.X, out.Rows = append(out.X, h.X[i]), append(out.Rows, sum)
	}
	out.X = append(out.X, h.X[len(h.X)-1])
	return out
}

// scale draws the legend of the shades.
func (s *sheet) scale(most int64) {
	left, right := s.right+6, s.right+13
	step := (s.bottom - s.top) / shades
	for i := range shades {
		bottom := s.bottom - step*float64(i)
		s.fill(rectangle(box{left, bottom - step - seam, right, bottom}), shade(i), "")
	}
	l := letters{size: smallSize}
	count := func(y float64, n float64) {
		s.text(point{right + 2, y + smallSize*0.36}, s.d.fonts.fit(unit.Count(math.Round(n)), l, scaleWidth-14), l)
	}
	count(s.bottom-2, 1)
	if most > 1 {
		count(s.top+2, float64(most))
	}
	if most >= 9 {
		count((s.top+s.bottom)/2, math.Sqrt(float64(most)))
	}
	l.turned = true
	text := s.d.fonts.plain(s.f.Heat.What)
	w := s.d.fonts.width(text, l)
	if room := (s.bottom - s.top) / 2; w < room-16 {
		s.text(point{right + 8, s.bottom - room/2 + w/2}, text, l)
	}
}
