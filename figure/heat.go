package figure

import (
	"math"
	"strconv"

	"weir/internal/unit"
)

// heatLevels is how many colors a heat is drawn in: classes h1, for a single
// one, to h8 for the most that any cell holds, evenly on a logarithmic scale.
const heatLevels = 8

// Most returns the largest count of a cell.
func (h *Heat) Most() int64 {
	most := int64(0)
	for _, row := range h.Rows {
		for _, n := range row {
			most = max(most, n)
		}
	}
	return most
}

// heatLevel returns the color of a cell that holds n where the fullest holds most:
// 1 to heatLevels, 0 for an empty one.
func heatLevel(n, most int64) int {
	if n <= 0 {
		return 0
	}
	if most <= 1 {
		return heatLevels
	}
	return 1 + min(heatLevels-1, int(heatLevels*math.Log(float64(n))/math.Log(float64(most))))
}

// drawHeat draws the cells as one path a color: stretches of a row that have it.
// They lie in a drawing of their own, a unit of which is a cell, so that numbers
// are short; columns are equally wide but for the first and the last.
func (f *Figure) drawHeat(out *Canvas) {
	h := f.Heat
	if h == nil || len(h.Rows) == 0 || len(h.X) != len(h.Rows)+1 || len(h.Y) < 2 {
		return
	}
	from, to := max(left, f.px(h.X[0])), min(left+plotWidth, f.px(h.X[len(h.X)-1]))
	top, base := f.py(h.Y[len(h.Y)-1]), f.py(h.Y[0])
	origin, width := h.X[0], h.X[1]-h.X[0]
	if len(h.Rows) > 2 {
		width = h.X[2] - h.X[1]
		origin = h.X[1] - width
	}
	if !(width > 0) || !(to > from) || !(base > top) {
		return
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', 5, 64) }
	out.Add(`<svg class="heat" x="%.1f" y="%.1f" width="%.1f" height="%.1f" viewBox="%s 0 %s %d" preserveAspectRatio="none">`, from, top, to-from, base-top,
		number((h.X[0]-origin)/width), number((h.X[len(h.X)-1]-h.X[0])/width), len(h.Y)-1)
	for level, path := range f.Heat.paths() {
		if len(path) > 0 {
			out.Add(`<path class="h%d" d="%s"/>`, level, path)
		}
	}
	out.Add(`</svg>`)
	f.drawHeatLegend(out)
}

// paths are the cells of each level: lines in the middle of their rows, the
// first row at the bottom.
func (h *Heat) paths() [heatLevels + 1][]byte {
	var all [heatLevels + 1][]byte
	most := h.Most()
	rows := len(h.Y) - 1
	for k := range rows {
		for i := 0; i < len(h.Rows); {
			level, begin := h.level(i, k, most), i
			for i < len(h.Rows) && h.level(i, k, most) == level {
				i++
			}
			if level == 0 {
				continue
			}
			p := append(all[level], 'M')
			p = strconv.AppendInt(p, int64(begin), 10)
			p = append(p, ' ')
			p = strconv.AppendInt(p, int64(rows-1-k), 10)
			p = append(p, ".5h"...)
			all[level] = strconv.AppendInt(p, int64(i-begin), 10)
		}
	}
	return all
}

func (h *Heat) level(column, row int, most int64) int {
	if row >= len(h.Rows[column]) {
		return 0
	}
	return heatLevel(h.Rows[column][row], most)
}

// drawHeatLegend says which color stands for how many, below the axis.
func (f *Figure) drawHeatLegend(out *Canvas) {
	const box, y = 20.0, height + 8
	most := f.Heat.Most()
	x := left + plotWidth/2 - box*heatLevels/2
	for level := 1; level <= heatLevels; level++ {
		out.Add(`<rect class="h%d" x="%.1f" y="%.1f" width="%.1f" height="12"/>`, level, x+box*float64(level-1), y, box)
	}
	out.Add(`<text x="%.1f" y="%.1f" text-anchor="end">1</text>`, x-8, y+11)
	out.Add(`<text x="%.1f" y="%.1f">%s %s</text>`, x+box*heatLevels+8, y+11, Words(unit.Count(float64(most))), Words(f.Heat.What))
}
