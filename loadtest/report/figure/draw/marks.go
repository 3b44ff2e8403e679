package draw

import (
	"fmt"
	"math"
)

// spread reports whether there is an interval that can be drawn.
func spread(low, high *float64) bool {
	return low != nil && high != nil && !math.IsNaN(*low+*high) && !math.IsInf(*low, 0) && !math.IsInf(*high, 0)
}

// markIntervals shades the intervals of the positions of marks.
func (s *sheet) markIntervals() {
	for _, m := range s.f.Marks {
		if !spread(m.Low, m.High) {
			continue
		}
		low, high := s.px(*m.Low), s.px(*m.High)
		s.fill(rectangle(box{low, s.top, max(high, low+0.5), s.bottom}), tint{247, 236, 214, "zone"}, "")
		for _, edge := range []float64{low, high} {
			s.stroke([]point{{edge, s.top}, {edge, s.bottom}}, pen{color: tint{190, 160, 100, "grid"}, width: hair})
		}
	}
}

func (s *sheet) markLines() {
	for _, m := range s.f.Marks {
		x := s.px(m.X)
		s.stroke([]point{{x, s.top}, {x, s.bottom}}, pen{color: tint{60, 60, 60, "soft"}, width: 0.7, dash: []float64{2.5, 1.5}})
	}
}

// markNames writes the names of marks beside their lines, at the positions that cover the least
// ink.
func (s *sheet) markNames() {
	if len(s.f.Marks) == 0 {
		return
	}
	ink := s.ink()
	l := letters{size: smallSize}
	for _, m := range s.f.Marks {
		lines := []string{s.d.fonts.plain(m.Name)}
		if spread(m.Low, m.High) {
			lines = append(lines, s.d.fonts.plain(fmt.Sprintf("95%%: %s to %s", s.f.X.Text(math.Round(*m.Low)), s.f.X.Text(math.Round(*m.High)))))
		}
		w := 0.0
		for i := range lines {
			lines[i] = s.d.fonts.fit(lines[i], l, max(s.right-s.px(m.X), s.px(m.X)-s.left)-4)
			w = max(w, s.d.fonts.width(lines[i], l))
		}
		b, covers := s.room(s.px(m.X), w, float64(len(lines))*(smallSize+1), ink)
		if covers > 0 || spread(m.Low, m.High) {
			s.fill(rectangle(box{b.left - 1, b.top - 0.5, b.right + 1, b.bottom + 0.5}), white(), "")
		}
		for i, line := range lines {
			x := b.left
			if b.left < s.px(m.X) { // its right end is at the line
				x = b.right - s.d.fonts.width(line, l)
			}
			s.text(point{x, b.top + float64(i)*(smallSize+1) + smallSize*0.9}, line, l)
		}
		s.taken = append(s.taken, b)
	}
}

// room finds the position of that size beside x that covers the least ink, and returns the amount
// of covered ink. Histograms have free space above, curves below.
func (s *sheet) room(x, width, height float64, ink []point) (best box, least int) {
	least = math.MaxInt
	const off = 3
	for i := range 40 {
		share := float64(i) / 39
		if len(s.f.Columns) == 0 {
			share = 1 - share
		}
		top := s.top + 3 + share*(s.bottom-s.top-height-6)
		for _, left := range []float64{x + off, x - off - width} {
			b := box{left, top, left + width, top + height}
			if n := s.covered(b, ink); n < least {
				best, least = b, n
			}
		}
	}
	return best, least
}

// covered returns the amount of ink under b; other texts and the area outside of the frame have the
// highest weight.
func (s *sheet) covered(b box, ink []point) int {
	n := 0
	if b.left < s.left || b.right > s.right {
		n += 100_000 + int(max(s.left-b.left, b.right-s.right))
	}
	for _, t := range s.taken {
		if b.left < t.right+2 && b.right > t.left-2 && b.top < t.bottom+1 && b.bottom > t.top-1 {
			n += 10_000
		}
	}
	for _, p := range ink {
		if p.x > b.left-2 && p.x < b.right+2 && p.y > b.top-2 && p.y < b.bottom+2 {
			n++
		}
	}
	return n
}

// ink returns positions on the drawn lines, in steps of some points.
func (s *sheet) ink() []point {
	var all []point
	add := func(a, b point) {
		steps := max(1, int(math.Hypot(b.x-a.x, b.y-a.y)/2))
		for i := range steps + 1 {
			t := float64(i) / float64(steps)
			all = append(all, point{a.x + (b.x-a.x)*t, a.y + (b.y-a.y)*t})
		}
	}
	for i := range s.f.Lines {
		points := s.points(&s.f.Lines[i])
		for k, p := range points {
			at := point{s.px(p.X), s.py(p.Y)}
			all = append(all, at, at, at) // a marker weighs more than a line
			if k > 0 && s.styles[i].joined {
				add(point{s.px(points[k-1].X), s.py(points[k-1].Y)}, at)
			}
			if spread(p.Low, p.High) {
				add(point{at.x, s.py(*p.Low)}, point{at.x, s.py(*p.High)})
			}
		}
	}
	for _, c := range s.f.Columns {
		if c.Y > 0 {
			for y := s.py(c.Y); y < s.bottom; y += 2 {
				all = append(all, point{s.px(c.From), y}, point{s.px(c.To), y})
			}
		}
	}
	for _, m := range s.f.Marks {
		add(point{s.px(m.X), s.top}, point{s.px(m.X), s.bottom})
	}
	return all
}
